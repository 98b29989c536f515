"""What a message costs in requests, round trips, request units and bytes: `python -m benchmarks.cost`.

On the local Cosmos DB, without trouble, for every strategy of the library and for what a user would pick instead. Everything is
counted and nothing is timed, so a busy machine changes nothing. Writes the result, tables of docs/performance.md, and the
headline of README.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.accounting import RoundTrips, Till
from benchmarks.application import Application, running
from benchmarks.cleaning import clean_up_costs
from benchmarks.contenders import Contender, contenders
from benchmarks.report import README, exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.spread import spread_costs
from benchmarks.tables import cost_tables, headline_table
from benchmarks.targets import cost_targets, missed
from demo.stack import create_containers
from exactlyonce import Envelope
from local_cosmos.inprocess import RunningEmulator, running_emulator

BEFORE: Final = 40
"""Messages that an entity has processed before anything is counted."""

HOT: Final = 64
MANY: Final = 16
"""How many messages are in flight on one entity, and on many."""

SPREAD: Final = 20
"""Messages over which entities are spread that are many: as many as leave for a page at a time."""
LEAST: Final = 13
"""Messages that each of them has processed at least: its marks after it wrote a page."""

Measured = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How many messages are counted.

    Attributes:
        single: that come one by one; the marks of a page of `Outbox()` and the intervals of a stream divide it.
        copies: of a duplicate.
        hot: on one entity.
        games: how many are many; each gets two messages.
        large: with large outputs.
        created: entities whose first message is counted.
    """

    single: int = 340
    copies: int = 16
    hot: int = 320
    games: int = 200
    large: int = 80
    created: int = 64


QUICK: Final = Sizes(single=40, copies=16, hot=64, games=32, large=2, created=8)
"""Requests are the same."""


@dataclass(frozen=True)
class Scene:
    """A contender at work on a database of its own.

    Attributes:
        contender: what is measured.
        application: it processes.
        till: bills what that asks of the store.
        trips: counts what follows one another.
    """

    contender: Contender
    application: Application
    till: Till
    trips: RoundTrips

    async def prepare(self, game: str, messages: int = BEFORE) -> None:
        """Let a game process its first messages; together, where messages may share a commit."""
        first = [self.contender.message(game, number) for number in range(1, messages + 1)]
        await self.application.feed(first, messages if self.contender.groups else 1)
        self.till.means(messages)

    async def one_by_one(self, messages: Sequence[Envelope], *, fresh: bool = False) -> Measured:
        """What messages cost that come one after the other.

        Args:
            messages: that come.
            fresh: whether each comes to a process that knows nothing of its entity.
        """
        before: Counter[int] = Counter()
        acknowledged: Counter[int] = Counter()
        for envelope in messages:
            self.trips.begin()
            if fresh:
                self.application.forget()
            await self.application.process(envelope)
            acknowledged[self.trips.taken] += 1
            if self.trips.before_publishing is not None:
                before[self.trips.before_publishing] += 1
        trips = {"before sending": _shares(before), "until acknowledged": _shares(acknowledged)}
        return self.till.means(len(messages)) | {"round trips": trips}

    async def at_once(self, messages: Sequence[Envelope], in_flight: int) -> Measured:
        """What messages cost of which so many are under way at any time."""
        await self.application.feed(messages, in_flight)
        return self.till.means(len(messages))


def main() -> int:
    """Count, print and write everything; report what misses its target."""
    made = parser("cost", __doc__)
    made.add_argument("--readme", type=Path, default=README, help="page of the headline; default: %(default)s")
    options = parsed(made, "cost")
    result: Measured = {"machine": machine(), "unit": "means per message", "contenders": {}}
    for contender in contenders():
        result["contenders"][contender.name] = asyncio.run(costs(contender))
    result["spread"] = asyncio.run(spread_costs(contenders()[0]))
    result["clean-up"] = asyncio.run(clean_up_costs(contenders()[0]))
    write_result(options.output, result)
    write_section(options.page, "cost", cost_tables(result))
    write_section(options.readme, "cost", headline_table(result))
    return exit_code(missed(cost_targets(result)))


async def costs(contender: Contender, sizes: Sizes | None = None) -> dict[str, Measured]:
    """What a message costs in each situation, on an emulator of its own."""
    with running_emulator() as emulator:
        found = {name: measured async for name, measured in _situations(contender, emulator, sizes or Sizes())}
    print(contender.name, json.dumps(found), flush=True)
    return found


async def _situations(
    contender: Contender, emulator: RunningEmulator, sizes: Sizes
) -> AsyncIterator[tuple[str, Measured]]:
    create_containers(emulator, "bench")
    trips = RoundTrips()
    async with running(contender, emulator, "bench", trips) as application:
        scene = Scene(contender, application, Till(emulator, "bench"), trips)
        await scene.prepare("busy")
        yield "first", await scene.one_by_one(following(contender, "busy", sizes.single))
        await scene.prepare("quiet")
        quiet = following(contender, "quiet", sizes.single)
        yield "entity unknown to the process", await scene.one_by_one(quiet, fresh=True)
        scene.till.means(1)
        created = [contender.message(f"new-{game}", 1) for game in range(sizes.created)]
        yield "first of an entity", await scene.one_by_one(created)
        await scene.prepare("copied")
        newest, oldest = contender.message("copied", BEFORE), contender.message("copied", 1)
        yield "duplicate of the newest", await scene.one_by_one([newest] * sizes.copies)
        yield "duplicate of the oldest", await scene.one_by_one([oldest] * sizes.copies)
        yield "duplicate in a fresh process", await scene.one_by_one([oldest] * sizes.copies, fresh=True)
        await scene.prepare("hot")
        yield "hot entity", await scene.at_once(following(contender, "hot", sizes.hot), HOT)
        yield "many entities", await scene.at_once(await _prepared(scene, sizes.games), MANY)
        if contender.reports:
            await scene.prepare("large")
            large = [contender.large("large", BEFORE + number) for number in range(1, sizes.large + 1)]
            yield "large outputs", await scene.one_by_one(large)


async def _prepared(scene: Scene, games: int) -> list[Envelope]:
    """Two messages for each of many games, which have processed different numbers, so that not all write a page at once."""
    filled = {f"game-{game}": LEAST + game % SPREAD if scene.contender.groups else 1 for game in range(games)}
    for game, messages in filled.items():
        await scene.prepare(game, messages)
    return [scene.contender.message(game, messages + ahead) for ahead in (1, 2) for game, messages in filled.items()]


def following(contender: Contender, game: str, messages: int) -> list[Envelope]:
    """The next messages for a game that was prepared."""
    return [contender.message(game, BEFORE + number) for number in range(1, messages + 1)]


def _shares(counted: Counter[int]) -> dict[str, float]:
    """Which part of the messages took how many."""
    return {str(trips): round(number / counted.total(), 4) for trips, number in sorted(counted.items())}


if __name__ == "__main__":
    sys.exit(main())
