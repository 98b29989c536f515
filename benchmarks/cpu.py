"""How much CPU time the library itself takes for a message: `python -m benchmarks.cpu`.

The engine is measured alone: a strategy's generator, with a world in memory that answers its effects. The library is measured
as a whole: shots of the sample's games, one at a time, through driver, lanes, strategy and handler, over a store and a queue
in memory, whose own time is taken out; and once more through the Cosmos SDK on the local Cosmos DB. Only the time of the
thread that does it counts, so neither other programs nor waiting do. Rounds of all kinds take turns.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain, count
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.application import Application, running
from benchmarks.contenders import ROUTES, Contender, competitors, own
from benchmarks.report import exit_code, machine, parser, write_result
from benchmarks.targets import cpu_targets, missed
from demo.stack import create_containers
from exactlyonce import Envelope, Outbox
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Work
from exactlyonce.effects.effect import Awaited, Effect, Opened, Step
from exactlyonce.effects.entity import PUBLISHED, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, HasPages, OpenNumbers, WritePage, Written
from exactlyonce.handling.context import Context
from exactlyonce.records.outbox import transaction
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import Origin, milliseconds
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from handlers.messages import Missed
from local_cosmos.inprocess import RunningEmulator, running_emulator

GAMES: Final = 20
TOGETHER: Final = 20 * GAMES
"""Messages of a round: a page of each game. Twice as many come before, until every game writes pages."""

MOST: Final = 0.5
"""Milliseconds of CPU time that the library and a small handler may take for a message, apart from I/O."""
LEAST: Final = 20_000
"""Messages per second of the engine without I/O, in full groups with an output each."""

SUBJECT: Final = own()[0]
NAIVE: Final = next(competitor for competitor in competitors() if competitor.name == "naive")
OUTBOX: Final = Outbox()
GAME: Final = SUBJECT.entity.ref("game-1")
TOKEN: Final = "0:-1#1"  # noqa: S105
NOW: Final = datetime.now(timezone.utc)


def main() -> int:
    """Measure, print and write everything."""
    made = parser("cpu", __doc__, page=None)
    made.add_argument("--rounds", type=int, default=30, help="default: %(default)s")
    options = made.parse_args()
    result = {"machine": machine(), **measure(options.rounds)}
    write_result(options.output, result)
    print(json.dumps(result, indent=2))
    return exit_code(chain(missed_targets(result), missed(cpu_targets(result))))


def measure(rounds: int) -> dict[str, Any]:
    """Medians over rounds, and how far the middle half of them is spread. It takes about a second and a half per round."""
    engines = {load.name: Engine(load) for load in LOADS}
    spent: dict[str, list[tuple[float, int]]] = {name: [] for name in engines}
    library: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        # The order is turned round every time, so that what grows with a round meets all alike.
        for name in engines if number % 2 else reversed(engines):
            gc.collect()
            spent[name].append(engines[name].spend(TOGETHER))
        gc.collect()
        library.append(asyncio.run(spend_in_memory(TOGETHER)))
    with running_emulator() as emulator:
        create_containers(emulator, "bench")
        create_containers(emulator, "naive")
        cosmos, naive = zip(*asyncio.run(spend_with_cosmos(emulator, TOGETHER // 4, rounds)), strict=True)
    return {
        "rounds": rounds,
        "messages": TOGETHER,
        "unit": "library, SDK: milliseconds of CPU time per message; engine: per second of it; peak: bytes",
        "engine": {name: _rates(measured[1:]) for name, measured in spent.items()},  # The first round is to warm up.
        "library": {
            "all": _milliseconds([everything for everything, _ in library[1:]]),
            "store and queue": _milliseconds([others for _, others in library[1:]]),
            "own": _milliseconds([everything - others for everything, others in library[1:]]),
        },
        "with the Cosmos SDK": _milliseconds(cosmos, TOGETHER // 4),
        "naive with the Cosmos SDK": _milliseconds(naive, TOGETHER // 4),
        "peak": asyncio.run(peak(TOGETHER)),
    }


def missed_targets(result: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each target that the result misses."""
    taken = result["library"]["own"]["median"]
    if taken >= MOST:
        yield f"The library takes {taken} ms of CPU time per message; it should be less than {MOST} ms."
    name = LOADS[0].name
    engine = result["engine"][name]["messages"]["median"]
    if engine <= LEAST:
        yield f"The engine processes {engine:,.0f} messages per second ({name}); it should be more than {LEAST:,}."


@dataclass(frozen=True)
class Load:
    """What the engine is to do.

    Attributes:
        together: how many messages each attempt commits.
        outputs: how many outputs each message has: one or none.
    """

    together: int
    outputs: int

    @property
    def name(self) -> str:
        """For the result."""
        return f"{self.together} in a commit, {'one output' if self.outputs else 'no output'} each"


LOADS: Final = (Load(16, 1), Load(16, 0), Load(1, 1), Load(1, 0))
"""Full groups, as on an entity that many messages come for at a time, and one message at a time."""


class World:
    """The newest document of one entity, and nothing else; it forgets pages, since no message comes twice.

    Attributes:
        steps: how many effects it was asked for.
        messages: how many numbers it gave out.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.messages = 0
        self._document: Json | None = None
        self._saves = 0
        self._answers: Mapping[type[Effect[Any]], Callable[[Any], Any]] = {
            OpenNumbers: self._open,
            FindPaid: lambda effect: frozenset(effect.transactions),
            CloseNumbers: lambda _: None,
            LoadEntity: self._load,
            SaveEntity: self._save,
            HasPages: lambda _: False,
            WritePage: lambda _: Written(TOKEN),
            Publish: lambda _: PUBLISHED,
        }

    def run(self, step: Step[Finished | Again]) -> Finished:
        """Run an attempt to its end. Raises `RuntimeError` if it did not finish, which nothing here gives a reason for."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                if isinstance(finished.value, Finished) and not finished.value.failed:
                    return finished.value
                raise RuntimeError(f"The attempt came to {finished.value}.") from None
            self.steps += 1
            reply = self._answer(effect)

    def _answer(self, effect: Effect[Any]) -> Any:
        return self._answers[type(effect)](effect)

    def _open(self, effect: OpenNumbers) -> Opened:
        first, self.messages = self.messages + 1, self.messages + effect.count
        return Opened(NOW, tuple(transaction("engine", number) for number in range(first, self.messages + 1)))

    def _load(self, _: LoadEntity) -> Loaded:
        if self._document is None:
            return Loaded(None, None, 0, TOKEN)
        return Loaded(self._document, str(self._saves), 1, TOKEN)

    def _save(self, effect: SaveEntity) -> Saved:
        self._document = effect.document
        self._saves += 1
        return Saved(str(self._saves), TOKEN)


class Engine:
    """An entity that is busy: its marks leave in pages, and each commit drops what the one before sent.

    Args:
        load: what it does.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._world = World()
        self._memory = Memory()
        self._handled = _handled(load.outputs)

    def spend(self, messages: int) -> tuple[float, int]:
        """Process so many new messages; return seconds of CPU time and the number of effects."""
        first, steps = self._world.messages, self._world.steps
        given = tuple(SUBJECT.message(GAME.id, number) for number in range(first + 1, first + messages + 1))
        groups = [given[begin : begin + self._load.together] for begin in range(0, messages, self._load.together)]
        began = time.thread_time()
        for group in groups:
            work = Work(GAME, group, self._handle, Json("{}"))
            self._memory = self._world.run(OUTBOX.attempt(work, self._memory)).memory
        return time.thread_time() - began, self._world.steps - steps

    def _handle(self, _: Before, __: Envelope) -> Handled:
        return self._handled


def _handled(outputs: int) -> Handled:
    """What the handler of the shooting range makes of a shot, made once: handlers are not a part of the engine."""
    body = Json.of({"id": GAME.id, "gameId": GAME.id, "target": 17, "attempts": 3, "round": 12})
    context = Context(Origin(GAME, "bench/shot-1"), Before(None, NOW, "t-1", since=milliseconds(NOW)), ROUTES)
    for _ in range(outputs):
        context.announce(Missed(id=context.new_id(), game_id=GAME.id, round=12, attempt=2))
    return Handled(body, context.outputs, sequences=context.sequences)


class Stopwatch:
    """Takes the CPU time of calls that never wait.

    Attributes:
        spent: seconds so far.
    """

    def __init__(self) -> None:
        self.spent = 0.0

    def on(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same call, its time taken."""

        async def timed(*given: Any) -> Any:
            began = time.thread_time()
            try:
                return await call(*given)
            finally:
                self.spent += time.thread_time() - began

        return timed


async def spend_in_memory(messages: int) -> tuple[float, float]:
    """Seconds of CPU time for so many messages: of everything, and of the store and the queue in memory within it."""
    everything = await over_memory(messages)
    watch = Stopwatch()
    await over_memory(messages, watch)
    return everything, watch.spent


async def spend_with_cosmos(emulator: RunningEmulator, messages: int, rounds: int) -> list[tuple[float, float]]:
    """Seconds of CPU time for so many messages in each round, through the Cosmos SDK: `Outbox()`'s, and the naive handler's.
    Only this thread's: not the server's."""
    lifetimes = Lifetimes()
    async with (
        running(SUBJECT, emulator, "bench", lifetimes=lifetimes) as ours,
        running(NAIVE, emulator, "naive", lifetimes=lifetimes) as naive,
    ):
        given = ((ours, _shots()), (naive, _shots(NAIVE)))
        for application, shots in given:
            await _spent(application, shots, 2 * TOGETHER)
        spent = []
        for _ in range(rounds):
            one, other = [await _spent(application, shots, messages) for application, shots in given]
            spent.append((one, other))
        return spent


async def peak(messages: int) -> float:
    """Bytes that processing one message needs at most at a time, besides what was there before: the median of so many."""
    peaks = []
    application, shots = Application(SUBJECT, _memory(), MemoryTransport(), lifetimes=Lifetimes()), _shots()
    await _spent(application, shots, TOGETHER)
    tracemalloc.start()
    try:
        for _ in range(messages):
            shot = next(shots)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            await application.process(shot)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
        application.crash()
    return statistics.median(peaks)


async def over_memory(messages: int, watch: Stopwatch | None = None) -> float:
    """Seconds of CPU time of everything for so many messages, over a store and a queue in memory, which `watch` times."""
    store: Any = _memory()
    transport: Any = MemoryTransport()
    if watch is not None:
        store = SimpleNamespace(perform=watch.on(store.perform))
        transport = SimpleNamespace(max_bytes=transport.max_bytes, send=watch.on(transport.send))
    application, shots = Application(SUBJECT, store, transport, lifetimes=Lifetimes()), _shots()
    try:
        await _spent(application, shots, TOGETHER)
        if watch is not None:
            watch.spent = 0.0
        return await _spent(application, shots, messages)
    finally:
        application.crash()
        await asyncio.sleep(0)


def _memory() -> Awaited:
    return Awaited(MemoryStore(SystemClock().now))


def _shots(contender: Contender = SUBJECT) -> Iterator[Envelope]:
    """New messages for all games in turn."""
    for number in count():
        yield contender.message(f"game-{number % GAMES}", number // GAMES + 1)


async def _spent(application: Application, shots: Iterator[Envelope], messages: int) -> float:
    given = [next(shots) for _ in range(messages)]
    began = time.thread_time()
    for shot in given:
        await application.process(shot)
    return time.thread_time() - began


def _rates(measured: Sequence[tuple[float, int]]) -> dict[str, Any]:
    return {
        "messages": _summary([TOGETHER / seconds for seconds, _ in measured], 0),
        "effects": _summary([effects / seconds for seconds, effects in measured], 0),
    }


def _milliseconds(seconds: Sequence[float], messages: int = TOGETHER) -> dict[str, Any]:
    return _summary([second / messages * 1000 for second in seconds], 4)


def _summary(values: Sequence[float], digits: int) -> dict[str, Any]:
    lower, median, upper = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return {"median": round(median, digits), "middle half": [round(lower, digits), round(upper, digits)]}


if __name__ == "__main__":
    sys.exit(main())
