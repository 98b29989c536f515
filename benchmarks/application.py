"""A contender at work on the local Cosmos DB, fed by hand, with queues in memory, so that only the store is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.competitors.requests import CompetingStore
from benchmarks.contenders import ROUTES, Contender
from benchmarks.processing import LATER
from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Memory, Work
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.drivers.observer import Observer, ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer
from exactlyonce.transports.memory import MemoryTransport
from local_cosmos.administration import Administration


class Application:
    """One process. Made by `running`.

    Args:
        contender: what processes.
        driver: performs its effects.
        runtime: time and chance.
    """

    def __init__(self, contender: Contender, driver: AsyncDriver, runtime: Runtime) -> None:
        self._contender = contender
        self._driver = driver
        self._runtime = runtime
        self._retrying = Retrying(Backoff(), runtime.random)
        self._lanes = self._new_lanes()

    async def process(self, envelope: Envelope) -> None:
        """Process one message; returns when it may be acknowledged. Raises what processing raises."""
        entity = self._contender.entity
        ref = entity.ref_of(envelope)
        runner = Runner(entity, ref, ROUTES)
        if self._contender.lanes:
            assignment = Assignment(ref, entity.strategy, runner, runner.absent, runner.evolve)
            await self._lanes.process(assignment, envelope)
            return
        work = Work(ref, (envelope,), runner, runner.absent, runner.evolve)
        await self._driver.process(
            self._retrying, ref, lambda memory: entity.strategy.attempt(work, memory), Memory(), ()
        )

    async def settle(self) -> None:
        """Let all entities fall quiet, so that what is left to mark is marked."""
        await self._lanes.quiesce()

    def crash(self) -> None:
        """End in the middle of everything, and start again with nothing remembered."""
        self._lanes.abandon()
        self._lanes = self._new_lanes()

    def _new_lanes(self) -> Lanes:
        return Lanes(self._driver, self._retrying, self._runtime.clock, LATER)


@asynccontextmanager
async def running(
    contender: Contender, cosmos: Administration, database: str, observer: Observer | None = None
) -> AsyncIterator[Application]:
    """A contender on the containers of a database.

    Args:
        contender: what processes.
        cosmos: where the database is.
        database: with the sample's containers and the library's.
        observer: is told of every effect; None for nobody.
    """
    entity, transport = contender.entity, MemoryTransport()
    beside = not isinstance(entity.strategy, Outbox)
    connection = CosmosConnection(cosmos.endpoint, database, key=cosmos.key)
    store = CompetingStore(
        connection, [EntityContainer(entity.name, entity.container, entity.paths, companions=beside)]
    )
    publisher = Publisher({name: Address(transport, name) for name in ROUTES.limits})
    runtime = Runtime(observer_slot=ObserverSlot(observer))
    application = Application(contender, AsyncDriver(store, publisher, runtime), runtime)
    try:
        yield application
    finally:
        application.crash()
        await connection.close()
