"""A contender at work, fed by hand, with queues in memory, so that only the store is measured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from benchmarks.competitors.requests import CompetingStore
from benchmarks.contenders import ROUTES, Contender
from exactlyonce import Envelope, Outbox
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import BUDGET, Lanes
from exactlyonce.drivers.observer import Observer, ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Memory, Work
from exactlyonce.effects.effect import Awaited
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.stores.blobs.port import MemoryBlobs
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, EntityContainer
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.port import AsyncTransport, MemoryTransport
from exactlyonce.values.lifetimes import Lifetimes
from local_cosmos.administration import Administration


class Application:
    """One process.

    Args:
        contender: what processes.
        store: where its effects go.
        transport: takes its outputs.
        observer: sees every effect; None for nobody.
        lifetimes: by which messages are too old; None lets all be processed, those without a time, too.
    """

    def __init__(
        self,
        contender: Contender,
        store: AsyncStore,
        transport: AsyncTransport,
        observer: Observer | None = None,
        *,
        lifetimes: Lifetimes | None = None,
    ) -> None:
        self._contender = contender
        self._lifetimes = lifetimes
        self._runtime = Runtime(observer_slot=ObserverSlot(observer))
        publisher = Publisher({name: Address(transport, name) for name in ROUTES.limits})
        self._driver = AsyncDriver(store, publisher, self._runtime, Awaited(MemoryBlobs()))
        self._retrying = Retrying(Backoff(), self._runtime.random)
        self._lanes = self._new_lanes()

    async def process(self, envelope: Envelope) -> None:
        """Process one message; returns when it may be acknowledged. Raises what processing raises."""
        entity = self._contender.entity
        ref = entity.ref_of(envelope)
        runner = Runner(entity, ref, ROUTES)
        handle = runner if self._lifetimes is None else AgeCheck(runner, ref, self._lifetimes, entity.strategy.forgets)
        if self._contender.lanes:
            work = Work(ref, (), handle, runner.absent, runner.evolve)
            await self._lanes.process(entity.strategy, work, envelope)
            return
        work = Work(ref, (envelope,), handle, runner.absent, runner.evolve)
        await self._driver.process(
            self._retrying, ref, lambda memory: entity.strategy.attempt(work, memory), Memory(), ()
        )

    async def feed(self, messages: Iterable[Envelope], in_flight: int) -> None:
        """Process all messages, `in_flight` of them under way at any time. Raises what processing one of them raises."""
        waiting = iter(messages)

        async def work() -> None:
            for envelope in waiting:
                await self.process(envelope)

        await asyncio.gather(*(work() for _ in range(in_flight)))

    def forget(self) -> None:
        """Forget all entities. Nothing may be under way."""
        self._lanes = self._new_lanes()

    def crash(self) -> None:
        """End in the middle of everything."""
        self._lanes.abandon()

    def _new_lanes(self) -> Lanes:
        return Lanes(self._driver, self._retrying, self._runtime.clock, BUDGET)


@asynccontextmanager
async def running(
    contender: Contender,
    cosmos: Administration,
    database: str,
    observer: Observer | None = None,
    *,
    transport: MemoryTransport | None = None,
    lifetimes: Lifetimes | None = None,
) -> AsyncIterator[Application]:
    """A contender on the containers of a database.

    Args:
        contender: what processes.
        cosmos: where the database is.
        database: with the sample's containers and the library's.
        observer: sees every effect; None for nobody.
        transport: takes its outputs; None for one that nobody reads.
        lifetimes: as in `Application`.
    """
    entity = contender.entity
    companions = not isinstance(entity.strategy, Outbox)
    connection = CosmosConnection(cosmos.endpoint, database, key=cosmos.key)
    container = EntityContainer(entity.name, entity.container, entity.paths, companions=companions)
    store = CompetingStore(connection, [container])
    for name in (entity.container, LIBRARY_CONTAINER):
        await connection.container(name)  # What opens a container is no part of any message.
    application = Application(contender, store, transport or MemoryTransport(), observer, lifetimes=lifetimes)
    try:
        yield application
    finally:
        application.crash()
        await connection.close()
