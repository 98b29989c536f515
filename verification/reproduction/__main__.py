"""`python -m verification.reproduction`: play a trace on the real stack, and print it with the model's story."""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from rich.console import Console
from rich.table import Table

from verification.checker.search import explore
from verification.explorers.trace import Event
from verification.reproduction.careless import CarelessStore
from verification.reproduction.conductor import Divergence, Reproduction, reproduce
from verification.reproduction.correspondence import TornViewError
from verification.reproduction.reality import emulator_of_the_model, opened
from verification.reproduction.walks import walk
from verification.scenarios import books, companions, kept, outbox, outbox_ages, restores
from verification.world.scenario import Scenario

Found = TypeVar("Found")

WALKED: Final[tuple[Scenario, ...]] = (
    *(*outbox.SMALL, *outbox.LARGE),
    *(*books.SMALL, *books.LARGE),
    *(*kept.SMALL, *kept.LARGE),
    *(*outbox_ages.SMALL, *outbox_ages.LARGE),
    *(*restores.SMALL, *restores.LARGE),
    *(*companions.SMALL, *companions.LARGE),
)
"""Scenarios that a random walk may be asked of."""


def main() -> int:
    """Play one trace; the exit code is 0 if reality did what the model did."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # The trouble is asked for.
    try:
        return _play(_options())
    finally:
        logging.disable(before)


def _play(options: Namespace) -> int:
    console = Console()
    scenario, trace, violation = _chosen(options)
    try:
        played = asyncio.run(_played(scenario, trace))
    except (Divergence, TornViewError) as difference:
        console.print(f"[bold]{scenario.name}[/bold]: {difference}", highlight=False)
        return 1
    console.print(_table(scenario, played))
    console.print(f"fell in the model: {violation or 'nothing'}", highlight=False)
    console.print(f"fell in reality: {', '.join(sorted(played.fallen)) or 'nothing'}", highlight=False)
    return 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m verification.reproduction", description=main.__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument(
        "--twin",
        metavar="NAME",
        help="a shortest counterexample to a broken twin; where records are companions, 'PROTOCOL, NAME'",
    )
    chosen.add_argument(
        "--walk", metavar="SCENARIO", help="a random walk of the shipped strategy; part of the name will do"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the walk (default %(default)s)")
    return parser.parse_args()


def _chosen(options: Namespace) -> tuple[Scenario, tuple[Event, ...], str | None]:
    if options.walk is not None:
        scenario = _first((item for item in WALKED if options.walk in item.name), options.walk)
        return scenario, walk(scenario, options.seed), None
    scenario = _first((make() for name, make in _twins() if name == options.twin), options.twin)
    report = explore(scenario)
    return scenario, report.trace, report.violation


def _twins() -> Iterator[tuple[str, Callable[[], Scenario]]]:
    """The zoo, which lives with the tests and is not needed for walks: names, and what makes the scenarios."""
    from tests.model.broken_memory import BROKEN_BOOKS, BROKEN_CHORES, BROKEN_MEMORY  # noqa: PLC0415
    from tests.model.broken_read_models import ZOO  # noqa: PLC0415

    yield from ((twin.name, twin.scenario_with_twin) for twin in (*BROKEN_MEMORY, *BROKEN_BOOKS, *BROKEN_CHORES))
    yield from ((f"{twin.scenario.protocol}, {twin.name}", twin.scenario_with_twin) for twin in ZOO)


def _first(fitting: Iterator[Found], name: str) -> Found:
    found = next(fitting, None)
    if found is None:
        raise SystemExit(f"There is nothing called {name!r}.")
    return found


async def _played(scenario: Scenario, trace: tuple[Event, ...]) -> Reproduction:
    with emulator_of_the_model() as emulator:
        async with opened(emulator) as reality:
            return await reproduce(scenario, trace, reality, CarelessStore)


def _table(scenario: Scenario, played: Reproduction) -> Table:
    table = Table(title=scenario.name, title_justify="left", show_lines=True)
    table.add_column("", justify="right")
    table.add_column("the model")
    table.add_column("the local Cosmos DB")
    for number, step in enumerate(played.steps, 1):
        table.add_row(str(number), step.said, "\n".join(step.requests))
    return table


if __name__ == "__main__":
    sys.exit(main())
