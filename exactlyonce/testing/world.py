"""A world in memory: a store, queues, and processes that share them and crash on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from random import Random
from typing import Any, NamedTuple, TypeVar

from exactlyonce.attempt import Again, Memory, Strategy, key_of
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.drivers.memories import BUDGET
from exactlyonce.drivers.observer import Observer, ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.effect import Step
from exactlyonce.effects.port import Awaited
from exactlyonce.handling.age import AgeCheck
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.records.outputs import Output
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.memory.trouble import Trouble
from exactlyonce.testing.chance import InstantClock
from exactlyonce.testing.guarantee import Facts
from exactlyonce.testing.history import StoreHistory
from exactlyonce.transports.memory import MemoryTransport
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, message_hash
from exactlyonce.values.lifetimes import Lifetimes

Result = TypeVar("Result")


class Backup(NamedTuple):
    """The documents of an entity's partition at a moment, by their ids."""

    entity: EntityRef
    documents: Mapping[str, Json | None]


class World:
    """The part that survives a crash: store, queues, and acknowledged messages.

    Args:
        destinations: where handlers may send to.
        random: source of transaction ids and jitter.
        trouble: fates of the store's writes and reads.
        outcome: fates of sends; see `MemoryTransport`.
        clock: of all processes and of the store.
        store: in place of a `MemoryStore` of its own.
        lifetimes: of messages.
    """

    def __init__(
        self,
        destinations: Iterable[Destination] = (),
        *,
        random: Random | None = None,
        trouble: Trouble | None = None,
        outcome: Callable[[Output], tuple[bool, bool]] = lambda _: (True, True),
        clock: Clock | None = None,
        store: MemoryStore | None = None,
        lifetimes: Lifetimes | None = None,
    ) -> None:
        self.lifetimes = lifetimes or Lifetimes()
        self.clock = clock or InstantClock()
        self.random = random or Random(0)
        self.store = store or MemoryStore(self.clock.now, trouble)
        self.transport = MemoryTransport(outcome=outcome)
        self.acknowledged: set[tuple[str, str]] = set()
        self._put_back: set[str] = set()
        self._destinations = tuple(destinations)
        self._addresses = {one.name: Address(self.transport, one.name) for one in self._destinations}
        self._publisher = Publisher(self._addresses)
        self.routes = Routes.to(self._destinations, self._publisher.limits)

    def process(
        self,
        *,
        memory: int = BUDGET,
        backoff: Backoff | None = None,
        observer: Observer | None = None,
    ) -> Process:
        """Start a process that remembers nothing yet; `memory` is the budget of its memories, in bytes."""
        runtime = Runtime(
            self.clock, self.random, lambda: f"{self.random.getrandbits(128):032x}", ObserverSlot(observer)
        )
        driver = AsyncDriver(Awaited(self.store), Publisher(self._addresses), runtime, lifetimes=lambda: self.lifetimes)
        retrying = Retrying(backoff or Backoff(), self.random)
        return Process(self, driver, retrying, Lanes(driver, retrying, self.clock, memory))

    @property
    def published(self) -> tuple[Output, ...]:
        """Every copy of every output, in order of arrival per queue."""
        return tuple(output for queue in self.transport.queues.values() for output in queue)

    def facts(self) -> Facts:
        """All observable facts since the first write."""
        history = self._history
        sent = (output for output in self.published if output.envelope.value["type"] != REPLAY)
        return Facts(
            tuple(history.commits),
            tuple(sent),
            frozenset(self.acknowledged),
            history.owing,
            frozenset(history.skipped),
            frozenset(history.late),
            frozenset(history.fallen),
            tuple(history.undone),
        )

    def backup(self, entity: EntityRef) -> Backup:
        """What the partition of an entity holds now."""
        partition = self.store._entity(entity)  # noqa: SLF001
        return Backup(entity, {id: one.document for id, one in partition.view(len(partition.log)).items()})

    def put_back(self, backup: Backup) -> None:
        """Put the documents of a partition back, as a restore does. No process may remember them.

        What was acknowledged since counts as never delivered, unless its change is still there.
        """
        partition = self.store._entity(backup.entity)  # noqa: SLF001
        for id in partition.ids(len(partition.log)):
            was, there = backup.documents.get(id), partition.newest(id)
            if was != (there and there.document):
                self._put_back.add(self.store._append(partition, id, was).etag)  # noqa: SLF001
        history = self._history
        undone = {(one.entity, one.message) for one in history.undone}
        undone -= {(one.entity, one.message) for one in history.commits}
        self.acknowledged = {one for one in self.acknowledged if (one[0], message_hash(one[1])) not in undone}

    @property
    def _history(self) -> StoreHistory:
        return StoreHistory(self.store, self._put_back)


class Process:
    """The part that does not survive a crash: a driver with its book, and its lanes."""

    def __init__(self, world: World, driver: AsyncDriver, retrying: Retrying, lanes: Lanes) -> None:
        self._world = world
        self._driver = driver
        self._retrying = retrying
        self._lanes = lanes
        self._jobs: set[asyncio.Future[Any]] = set()

    async def deliver(self, type: Entity[Any], envelope: Envelope, strategy: Strategy | None = None) -> None:
        """Deliver a message once. Returning acknowledges it; raising gives it back."""
        ref = type.ref_of(envelope)
        runner, strategy, lifetimes = (
            Runner(type, ref, self._world.routes),
            strategy or type.strategy,
            self._world.lifetimes,
        )
        handle = AgeCheck(runner, ref, lifetimes, strategy.forgets)
        retention = lifetimes.retention.kept(self._world.clock.now())
        await self._lanes.process(
            Assignment(ref, strategy, handle, runner.absent, runner.evolve, retention, lifetimes.refusal), envelope
        )
        self._world.acknowledged.add((ref.key, key_of(envelope)))

    async def run(
        self, entity: EntityRef, attempt: Callable[[Memory], Step[Result | Again]], memory: Memory | None = None
    ) -> Result:
        """Run maintenance of an entity: sweep it, settle a message, replay its stream. Raises as `Retrying.process` does."""
        return await self.end_with_me(self._driver.process(self._retrying, entity, attempt, memory or Memory()))

    async def end_with_me(self, job: Coroutine[Any, Any, Result]) -> Result:
        """Run a job that is cancelled if the process crashes."""
        task = asyncio.ensure_future(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
        return await task

    async def close(self) -> None:
        """Finish what is under way, and write the book, which proves what was published."""
        await self._lanes.quiesce()
        await self._driver.books.end()

    async def crash(self) -> None:
        """Stop at once, whatever is under way. The book is lost, but for what the store has of it."""
        self._lanes.abandon()
        self._driver.books.abandon()
        for job in self._jobs:
            job.cancel()
        await asyncio.sleep(0)
