"""What a message costs after 100 to 100,000 others on the same entity: `python -m benchmarks.growth`.

On the local Cosmos DB, one message at a time and without trouble, on every strategy: requests and request units for a message
that comes for the first time, for a duplicate of the newest, and for a duplicate of the oldest. Writes the result, and
tables and chart of docs/performance.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from azure.cosmos.aio import CosmosClient

from benchmarks.charts import growth_chart
from benchmarks.contenders import ROUTES
from benchmarks.processing import Cost, metering
from benchmarks.report import exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.seeding import History
from benchmarks.subjects import Subject, subjects
from benchmarks.tables import growth_tables
from benchmarks.targets import growth_targets, missed
from demo.stack import create_containers
from local_cosmos.inprocess import RunningEmulator, running_emulator

HISTORIES: Final = (100, 1_000, 10_000, 100_000)
MOST_GROWTH: Final = 0.05
"""By how much more request units may cost after the longest history than after the shortest, where nothing bounds it."""


def main() -> int:
    """Measure, print and write everything."""
    made = parser("growth", __doc__)
    made.add_argument("--largest", type=int, default=max(HISTORIES), choices=HISTORIES, help="default: %(default)s")
    options = parsed(made, "growth")
    result: dict[str, Any] = {"machine": machine(), "unit": "means per message", "strategies": {}}
    for subject in subjects():
        histories = [number for number in HISTORIES if number <= options.largest]
        result["strategies"][subject.name] = asyncio.run(_measure(subject, histories))
    write_result(options.output, result)
    options.page.with_name("growth.svg").write_text(growth_chart(result), encoding="utf-8")
    write_section(options.page, "growth", growth_tables(result))
    return exit_code(chain(growing_costs(result), missed(growth_targets(result))))


def growing_costs(result: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each cost that is higher after the longest history than after the shortest."""
    for name, measured in result["strategies"].items():
        costs = measured["after"]
        first, last = min(costs, key=int), max(costs, key=int)
        for kind, cost in costs[last].items():
            before = costs[first][kind]
            dearer = cost["request units"] > before["request units"] * (1 + MOST_GROWTH)
            if cost["requests"] > before["requests"] or dearer:
                yield f"{name}, {kind}: {before} has become {cost}."


async def _measure(subject: Subject, histories: list[int]) -> dict[str, Any]:
    """Costs of a strategy by history, and the bytes that it leaves."""
    costs: dict[str, Any] = {}
    stored: dict[str, dict[str, int]] = {}
    for messages in histories:
        history = History(subject, ROUTES)
        with running_emulator() as emulator:
            costs[str(messages)] = await cost_after(subject, messages, emulator, history=history)
        stored[str(messages)] = history.stored
    return {"after": costs, "bytes": stored}


async def cost_after(
    subject: Subject,
    messages: int,
    emulator: RunningEmulator,
    *,
    history: History | None = None,
) -> dict[str, Cost]:
    """What a message costs after so many. Raises `RuntimeError` if the history is none.

    Args:
        subject: what is measured.
        messages: how many were processed before.
        emulator: where, with nothing in it.
        history: without messages; None for one that is right.
    """
    history = history or History(subject, ROUTES)
    history.grow(messages)
    create_containers(emulator, "bench")
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        await history.store(client.get_database_client("bench"))
    async with metering(subject, emulator, "bench") as meter:
        await meter.verify(history)
        costs = await meter.measure(messages)
    print(subject.name, messages, json.dumps(costs), flush=True)
    return costs


if __name__ == "__main__":
    sys.exit(main())
