"""What a message costs in requests, round trips, request units and bytes: `python -m benchmarks.cost`.

On the local Cosmos DB, without trouble, for every strategy of the library and for what a user would pick instead. Everything is
counted and nothing is timed, so a busy machine changes nothing. Writes the result, and tables of docs/performance.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.accounting import RoundTrips, Till
from benchmarks.application import Application, running
from benchmarks.contenders import Contender, contenders
from benchmarks.report import exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.tables import cost_tables
from demo.stack import create_containers
from exactlyonce import Envelope
from local_cosmos.inprocess import RunningEmulator, running_emulator

BEFORE: Final = 40
"""Messages that an entity has processed before anything is counted."""

WINDOW: Final = 16
MOST_UNITS: Final = 0.6
"""Share of the seven steps' request units that `Outbox()` may take on many entities."""

HOT: Final = 64
MANY: Final = 16
"""How many messages are in flight on one entity, and on many."""

Measured = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How many messages are counted.

    Attributes:
        single: that come one by one; the windows of `Outbox()` and the intervals of a stream divide it.
        copies: of a duplicate.
        hot: on one entity.
        games: how many are many; each gets two messages.
        large: with large outputs.
    """

    single: int = 80
    copies: int = 16
    hot: int = 320
    games: int = 200
    large: int = 16


QUICK: Final = Sizes(single=16, copies=2, hot=64, games=32, large=2)
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
        await self.application.settle()
        self.till.bill()
        self.till.written()

    async def one_by_one(self, messages: Sequence[Envelope], *, quiet: bool = False) -> Measured:
        """What messages cost that come one after the other; quiet: each waits until its entity is left alone."""
        before: Counter[int] = Counter()
        acknowledged: Counter[int] = Counter()
        for envelope in messages:
            self.trips.begin()
            await self.application.process(envelope)
            acknowledged[self.trips.taken] += 1
            if self.trips.before_publishing is not None:
                before[self.trips.before_publishing] += 1
            if quiet:
                await self.application.settle()
        trips = {"before sending": _shares(before), "until acknowledged": _shares(acknowledged)}
        return self._measured(len(messages)) | {"round trips": trips}

    async def at_once(self, messages: Sequence[Envelope], in_flight: int) -> Measured:
        """What messages cost of which so many are under way at any time."""
        await self.application.feed(messages, in_flight)
        return self._measured(len(messages))

    def _measured(self, messages: int) -> Measured:
        bill = self.till.bill()
        return {
            "requests": round(bill.requests / messages, 4),
            "request units": round(bill.units / messages, 2),
            "bytes written": round(self.till.written() / messages),
            "conflicts": bill.conflicts,
        }


def main() -> int:
    """Count, print and write everything; report what misses its target."""
    options = parsed(parser("cost", __doc__), "cost")
    result: Measured = {"machine": machine(), "unit": "means per message", "contenders": {}}
    for contender in contenders():
        result["contenders"][contender.name] = asyncio.run(costs(contender))
    write_result(options.output, result)
    write_section(options.page, "cost", cost_tables(result))
    return exit_code(missed_targets(result))


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
        yield "first, quiet entity", await scene.one_by_one(following(contender, "quiet", sizes.single), quiet=True)
        await scene.prepare("copied")
        newest, oldest = contender.message("copied", BEFORE), contender.message("copied", 1)
        yield "duplicate in the window", await scene.one_by_one([newest] * sizes.copies)
        yield "duplicate outside the window", await scene.one_by_one([oldest] * sizes.copies)
        await scene.prepare("hot")
        yield "hot entity", await scene.at_once(following(contender, "hot", sizes.hot), HOT)
        yield "many entities", await scene.at_once(await _prepared(scene, sizes.games), MANY)
        if not contender.numbered:
            await scene.prepare("large")
            yield "large outputs", await scene.one_by_one([contender.large("large", n) for n in range(sizes.large)])


async def _prepared(scene: Scene, games: int) -> list[Envelope]:
    """Two messages for each of many games, whose windows are not filled alike, so that not all of them leave at once."""
    filled = {f"game-{game}": 1 + game % WINDOW if scene.contender.groups else 1 for game in range(games)}
    for game, messages in filled.items():
        await scene.prepare(game, messages)
    return [scene.contender.message(game, messages + ahead) for ahead in (1, 2) for game, messages in filled.items()]


def following(contender: Contender, game: str, messages: int) -> list[Envelope]:
    """The next messages for a game that was prepared."""
    return [contender.message(game, BEFORE + number) for number in range(1, messages + 1)]


def missed_targets(result: Mapping[str, Any]) -> Iterator[str]:
    """What misses its target, each in a sentence."""
    outbox, seven = result["contenders"]["Outbox()"], result["contenders"]["seven steps"]
    limits = (("first", 3.1), ("first, quiet entity", 4.1), ("hot entity", 0.5))
    for situation, most in limits:
        if (taken := outbox[situation]["requests"]) > most:
            yield f"Outbox(), {situation}: {taken} requests for a message; at most {most} are wanted."
    trips = outbox["first"]["round trips"]["before sending"]
    if set(trips) - {"2", "3"} or trips.get("3", 0) > 1 / WINDOW:
        yield f"Outbox() makes {trips} round trips before it sends; wanted are two, and three where records are written."
    if (taken := seven["first"]["requests"]) != 7:  # noqa: PLR2004  # By its name.
        yield f"The algorithm of seven steps makes {taken} requests."
    share = outbox["many entities"]["request units"] / seven["many entities"]["request units"]
    if share > MOST_UNITS:
        yield f"Outbox() takes {share:.0%} of the request units of the seven steps; at most {MOST_UNITS:.0%} are wanted."


def _shares(counted: Counter[int]) -> dict[str, float]:
    """Which part of the messages took how many."""
    return {str(trips): round(number / counted.total(), 4) for trips, number in sorted(counted.items())}


if __name__ == "__main__":
    sys.exit(main())
