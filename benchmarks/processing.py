"""Processing one message at a time on the local Cosmos DB, and counting what that asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from benchmarks.seeding import History
from benchmarks.subjects import GAME, Subject, shot
from exactlyonce import Outbox
from exactlyonce.attempt import key_of
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.transports.memory import MemoryTransport
from handlers.leader_board import leader_board
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.request_log import LoggedRequest

LATER: Final = 3600.0
"""Seconds. To mark what was published is left to the next commit, as on an entity that is busy."""

ROUTES: Final = Routes.to((leader_board,), {leader_board.name: MemoryTransport().max_bytes})
Requests = Sequence[LoggedRequest]
Cost = dict[str, float]


class Meter:
    """An application of its own, fed by hand, so that nothing else adds to the count. Made by `metering`."""

    def __init__(self, subject: Subject, emulator: RunningEmulator, lanes: Lanes, transport: MemoryTransport) -> None:
        self._subject = subject
        self._emulator = emulator
        self._lanes = lanes
        self._transport = transport
        self._seen = 0

    async def process(self, number: int) -> Requests:
        """Process the message of this number; return what that asked of the store. Raises what processing raises."""
        before = max((one.n for one in self._emulator.requests(self._seen)), default=self._seen)
        self._seen = before
        entity = self._subject.entity
        ref = entity.ref(GAME)
        runner = Runner(entity, ref, ROUTES)
        assignment = Assignment(ref, entity.strategy, runner, runner.absent, runner.evolve)
        await self._lanes.process(assignment, shot(number))
        return self._emulator.requests(before)

    async def verify(self, history: History) -> None:
        """Let the library process duplicates of messages that it never saw; raise unless it knows them, and what they sent."""
        for number in (1, (history.messages + 1) // 2, history.messages):
            self._transport.queues.clear()
            requests = await self.process(number)
            sent = [output.id for queue in self._transport.queues.values() for output in queue]
            if any(one.applied for one in requests) or sent != history.sent_again(key_of(shot(number))):
                raise RuntimeError(f"{self._subject.name}: message {number} of {history.messages} was not a duplicate.")

    async def measure(self, messages: int) -> dict[str, Cost]:
        """What a message costs after so many: means over a round, after a round to warm up."""
        costs: dict[str, list[Requests]] = {"first": [], "duplicate of the newest": [], "duplicate of the oldest": []}
        newest = messages + self._subject.round
        for number in range(messages + 1, newest + 1):
            await self.process(number)
        for number in range(newest + 1, newest + self._subject.round + 1):
            for kind, given in zip(costs, (number, number, 1), strict=True):
                costs[kind].append(await self.process(given))
        return {kind: _mean(measured) for kind, measured in costs.items()}


@asynccontextmanager
async def metering(subject: Subject, emulator: RunningEmulator, database: str) -> AsyncIterator[Meter]:
    """A meter on the containers of a database."""
    entity, transport = subject.entity, MemoryTransport()
    beside = not isinstance(entity.strategy, Outbox)
    connection = CosmosConnection(emulator.endpoint, database, key=emulator.key)
    store = CosmosStore(connection, [EntityContainer(entity.name, entity.container, entity.paths, companions=beside)])
    runtime = Runtime()
    publisher = Publisher({leader_board.name: Address(transport, leader_board.name)})
    retrying = Retrying(Backoff(), runtime.random)
    lanes = Lanes(AsyncDriver(store, publisher, runtime), retrying, runtime.clock, LATER)
    try:
        yield Meter(subject, emulator, lanes, transport)
    finally:
        lanes.abandon()
        await connection.close()


def _mean(measured: Sequence[Requests]) -> Cost:
    requests = sum(map(len, measured)) / len(measured)
    charge = sum(one.charge for each in measured for one in each) / len(measured)
    return {"requests": round(requests, 3), "request units": round(charge, 2)}
