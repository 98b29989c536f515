"""How many messages a second are processed, and how long each takes: `python -m benchmarks.throughput`.

On the local Cosmos DB in a process of its own, with a set latency for every request, so that round trips count as they do on
Azure. All contenders have the same client, store adapter and driver, and queues in memory. They take turns, in an order that is
turned round every time. Writes the result, and tables of docs/performance.md.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any, Final

from benchmarks.accounting import Bill, Till
from benchmarks.application import running
from benchmarks.contenders import Contender, contenders
from benchmarks.report import exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.servers import ours
from benchmarks.subjects import TIMED
from benchmarks.tables import throughput_tables
from benchmarks.targets import CENTRE, FEW, missed, throughput_targets
from benchmarks.traffic import GAMES, Load, Pace, Traffic
from demo.stack import create_containers
from local_cosmos.admin_client import AdminClient

WORKLOADS: Final = ("uniform", "zipf", "hot")
LATENCIES: Final = (0, 2, 5, 20)
IN_FLIGHT: Final = (16, 64, 256)
HEADLINERS: Final = (TIMED, "seven steps", "processed document", "naive")
"""Those that are compared over all latencies."""

PAIR: Final = (TIMED, "seven steps")
FLOOR: Final = (TIMED, "naive")
"""Those that are compared over all numbers in flight, and where only a few messages are."""

NOT_COMPARED: Final = ("Resequencer()", "VersionStream(), event-sourced")
"""A read model's load is another one; and events cost what the other stream costs."""


@dataclass
class Runs:
    """All runs of a contender under one load."""

    paces: list[Pace] = field(default_factory=list)
    bills: list[Bill] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Medians over the runs, and the slowest and fastest."""
        speeds = [pace.speed for pace in self.paces]
        processed = max(1, sum(pace.processed for pace in self.paces))
        return {
            "messages/s": round(median(speeds), 1),
            "slowest and fastest": [round(min(speeds), 1), round(max(speeds), 1)],
            "p50 ms": _median_of(pace.p50 for pace in self.paces),
            "p99 ms": _median_of(pace.p99 for pace in self.paces),
            "requests": round(sum(bill.requests for bill in self.bills) / processed, 3),
            "request units": round(sum(bill.units for bill in self.bills) / processed, 2),
            "conflicts": sum(bill.conflicts for bill in self.bills),
            "CPU ms": round(sum(pace.cpu for pace in self.paces) / processed * 1000, 3),
        }


def main() -> int:
    """Measure, print and write everything; report what misses its target."""
    made = parser("throughput", __doc__)
    made.add_argument("--seconds", type=float, default=0.8, help="that each run is measured; default: %(default)s")
    made.add_argument("--repeats", type=int, default=3, help="of each run; default: %(default)s")
    made.add_argument("--quick", action="store_true", help="only what the targets are about; leaves the page alone")
    options = parsed(made, "throughput")
    on = machine()
    plan = quick_plan() if options.quick else full_plan()
    loads = asyncio.run(measure(plan, options.seconds, options.repeats))
    result = {"machine": on, "seconds": options.seconds, "repeats": options.repeats, "loads": loads}
    write_result(options.output, result)
    try:
        sentences = [*missed(throughput_targets(result))]
    except ValueError as unknown:
        return exit_code([str(unknown)])
    if not options.quick:
        write_section(options.page, "throughput", throughput_tables(result))
    return exit_code(sentences)


Plan = Sequence[tuple[Load, Sequence[str]]]
"""Loads, each with the contenders that meet under it."""


def full_plan() -> Plan:
    """Latencies and numbers in flight around one load at which everybody is measured."""
    everybody = [contender.name for contender in contenders() if contender.name not in NOT_COMPARED]
    planned: list[tuple[Load, Sequence[str]]] = []
    for workload in WORKLOADS:
        for latency in LATENCIES:
            meeting = everybody if latency == CENTRE[1] else HEADLINERS
            planned.append((Load(workload, CENTRE[0], latency), meeting))
        planned += [(Load(workload, number, CENTRE[1]), PAIR) for number in IN_FLIGHT if number != CENTRE[0]]
    return [*planned, (FEW, FLOOR)]


def quick_plan() -> Plan:
    """What the targets are about."""
    return [*((Load(workload, *CENTRE), (*PAIR, "naive")) for workload in ("uniform", "hot")), (FEW, FLOOR)]


async def measure(plan: Plan, seconds: float, repeats: int, *, games: int = GAMES) -> dict[str, dict[str, Any]]:
    """Run everything that is planned.

    Args:
        plan: which contenders meet under which loads.
        seconds: that each run is measured.
        repeats: of each run.
        games: number of entities, where there are many.

    Returns:
        Load, to contender, to what came of it.
    """
    runs: dict[Load, dict[str, Runs]] = {load: defaultdict(Runs) for load, _ in plan}
    wanted = {name for _, names in plan for name in names}
    async with AsyncExitStack() as stack:
        cosmos = AdminClient(stack.enter_context(ours(tls=False, admin=True)).endpoint)
        places: dict[str, tuple[Traffic, Till]] = {}
        for contender in contenders():
            if contender.name in wanted:
                places[contender.name] = await _place(stack, cosmos, contender, f"bench-{len(places)}", games)
        for repeat in range(repeats):
            for load, names in plan:
                cosmos.set_latency(load.latency)
                for name in names if repeat % 2 else reversed(names):
                    traffic, till = places[name]
                    till.bill()
                    pace = await traffic.run(load, Random(f"{load} {repeat}"), seconds, games=games)
                    runs[load][name].paces.append(pace)
                    runs[load][name].bills.append(till.bill())
                    print(f"{load}: {name}: {pace.speed:.0f} messages/s", file=sys.stderr, flush=True)
    return {str(load): {name: runs[load][name].summary() for name in names} for load, names in plan}


async def _place(
    stack: AsyncExitStack, cosmos: AdminClient, contender: Contender, database: str, games: int
) -> tuple[Traffic, Till]:
    """A contender in a database of its own, whose entities have processed something."""
    create_containers(cosmos, database)
    application = await stack.enter_async_context(running(contender, cosmos, database))
    traffic = Traffic(contender, application)
    await traffic.prepare(games)
    return traffic, Till(cosmos, database)


def _median_of(values: Iterator[float | None]) -> float | None:
    """None if one of them is not known."""
    known = list(values)
    return None if None in known else round(median(item for item in known if item is not None), 1)


if __name__ == "__main__":
    sys.exit(main())
