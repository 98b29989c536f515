"""The whole library at work, one message at a time: driver, lanes, strategy, and the shooting range's handlers."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from statistics import median
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.cpu_engine import ROUTES
from exactlyonce import Envelope
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime, SystemClock
from exactlyonce.effects.port import Awaited
from exactlyonce.handling.age import AgeCheck
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.memory import MemoryTransport
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from handlers.leader_board import leader_board
from handlers.shooting_range import ranges
from local_cosmos.inprocess import RunningEmulator

LATER: Final = 3600.0
"""Seconds. To mark what was published is left to the next commit, as on an entity that is busy."""
GAMES: Final = 20
WARM: Final = 16 * GAMES
"""Messages until every game's window is full."""

Process = Callable[[Envelope], Awaitable[None]]


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


async def spend_with_cosmos(emulator: RunningEmulator, messages: int, rounds: int) -> list[float]:
    """Seconds of CPU time for so many messages in each round, through the Cosmos SDK. Only this thread's: not the server's."""
    connection = CosmosConnection(emulator.endpoint, "bench", key=emulator.key)
    store = CosmosStore(connection, [EntityContainer(ranges.name, ranges.container, ranges.paths)])
    try:
        async with _application(store, MemoryTransport()) as process:
            shots = _shots()
            await _spent(process, shots, WARM)
            return [await _spent(process, shots, messages) for _ in range(rounds)]
    finally:
        await connection.close()


async def peak(messages: int) -> float:
    """Bytes that processing one message needs at most at a time, besides what was there before: the median of so many."""
    peaks = []
    async with _application(_memory(), MemoryTransport()) as process:
        shots = _shots()
        await _spent(process, shots, WARM)
        tracemalloc.start()
        try:
            for _ in range(messages):
                shot = next(shots)
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                await process(shot)
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    return median(peaks)


async def over_memory(messages: int, watch: Stopwatch | None = None) -> float:
    """Seconds of CPU time of everything for so many messages, over a store and a queue in memory, which `watch` times."""
    store: Any = _memory()
    transport: Any = MemoryTransport()
    if watch is not None:
        store = SimpleNamespace(perform=watch.on(store.perform))
        transport = SimpleNamespace(max_bytes=transport.max_bytes, send=watch.on(transport.send))
    async with _application(store, transport) as process:
        shots = _shots()
        await _spent(process, shots, WARM)
        if watch is not None:
            watch.spent = 0.0
        return await _spent(process, shots, messages)


def _memory() -> AsyncStore:
    return Awaited(MemoryStore(SystemClock().now))


@asynccontextmanager
async def _application(store: AsyncStore, transport: AsyncTransport) -> AsyncIterator[Process]:
    """Gives what processes one message, and returns when it may be acknowledged."""
    runtime = Runtime()
    publisher = Publisher({leader_board.name: Address(transport, leader_board.name)})
    driver = AsyncDriver(store, publisher, runtime)
    lanes = Lanes(driver, Retrying(Backoff(), runtime.random), runtime.clock, LATER)

    async def process(envelope: Envelope) -> None:
        ref = ranges.ref_of(envelope)
        runner = Runner(ranges, ref, ROUTES)
        handle = AgeCheck(runner, ref, Lifetimes())
        await lanes.process(Assignment(ref, ranges.strategy, handle, runner.absent, runner.evolve), envelope)

    try:
        yield process
    finally:
        lanes.abandon()
        await asyncio.sleep(0)


def _shots() -> Iterator[Envelope]:
    """New messages for all games in turn."""
    for number in count():
        data = Json.of({"game_id": f"game-{number % GAMES}", "position": number % 100})
        yield Envelope("bench", f"shot-{number}", "shooting-range.fire-at", data, SystemClock().now())


async def _spent(process: Process, shots: Iterator[Envelope], messages: int) -> float:
    given = [next(shots) for _ in range(messages)]
    began = time.thread_time()
    for shot in given:
        await process(shot)
    return time.thread_time() - began
