"""A world in memory: store, queues, and processes that share them and crash on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.combining import Assignment, Combiner
from exactlyonce.drivers.publishing import Address, Publisher
from exactlyonce.drivers.retrying import Backoff, Retrying
from exactlyonce.drivers.surroundings import Clock, Surroundings
from exactlyonce.envelope import Envelope
from exactlyonce.handling.attempts import Strategy, key_of
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.handling.running import Runner
from exactlyonce.identity import EntityRef
from exactlyonce.invariants import Commit, Facts
from exactlyonce.records import Output, read_entity, read_processed
from exactlyonce.stores.awaiting import Awaited
from exactlyonce.stores.memory import MemoryStore
from exactlyonce.stores.trouble import Trouble
from exactlyonce.testing.chance import InstantClock
from exactlyonce.transports.memory import MemoryTransport


class World:
    """Everything that survives a crash.

    Args:
        destinations: where handlers may send to.
        random: source of transaction ids and jitter.
        trouble: what happens to the store's writes and reads.
        outcome: what happens to sends; see `MemoryTransport`.
        clock: of all processes and of the store.
        store: in place of a `MemoryStore` of its own.
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
    ) -> None:
        self.clock = clock or InstantClock()
        self.random = random or Random(0)
        self.store = store or MemoryStore(self.clock.now, trouble)
        self.transport = MemoryTransport(outcome=outcome)
        self.acknowledged: set[tuple[str, str]] = set()
        self._destinations = tuple(destinations)
        self._publisher = Publisher({one.name: Address(self.transport, one.name) for one in self._destinations})
        self.routes = Routes.to(self._destinations, self._publisher.limits)

    def process(self, *, mark_after: float = 10.0, backoff: Backoff | None = None) -> Process:
        """Start a process that remembers nothing."""
        surroundings = Surroundings(self.clock, self.random, lambda: f"{self.random.getrandbits(64):016x}")
        driver = AsyncDriver(Awaited(self.store), self._publisher, surroundings)
        retrying = Retrying(backoff or Backoff(), self.random)
        return Process(self, Combiner(driver, retrying, self.clock, mark_after))

    @property
    def published(self) -> tuple[Output, ...]:
        """Every copy of every output, in order of arrival within each queue."""
        return tuple(output for queue in self.transport.queues.values() for output in queue)

    def facts(self) -> Facts:
        """Everything observable, from the first write on."""
        commits: list[Commit] = []
        owing: dict[str, frozenset[str]] = {}
        for (type, *partition), log in self.store.entities.items():
            for version in log.log:
                ref = EntityRef(str(type), tuple(partition), version.id)  # type: ignore[arg-type]
                ledger = read_entity(ref, version.document).ledger
                entries = ledger.entries if ledger else ()
                commits.extend(Commit.of(ref.key, entry) for entry in entries)
                owing[ref.key] = frozenset(entry.message for entry in entries if entry.owed is not None)
        for key, log in self.store.library.items():
            records = (version.document.value for version in log.log if version.document is not None)
            commits.extend(Commit.of(key, read_processed(one)) for one in records if one["kind"] == "processed")
        still_owing = frozenset((key, message) for key, messages in owing.items() for message in messages)
        return Facts(tuple(commits), self.published, frozenset(self.acknowledged), still_owing)


class Process:
    """What does not survive a crash."""

    def __init__(self, world: World, combiner: Combiner) -> None:
        self._world = world
        self._combiner = combiner

    async def deliver(self, type: Entity[Any], envelope: Envelope, strategy: Strategy | None = None) -> None:
        """Deliver a message once; returning acknowledges it. Raises what the message would be given back for."""
        ref = type.ref_of(envelope)
        runner = Runner(type, ref, self._world.routes)
        await self._combiner.process(Assignment(ref, strategy or type.strategy, runner), envelope)
        self._world.acknowledged.add((ref.key, key_of(envelope)))

    async def close(self) -> None:
        """Finish what is under way."""
        await self._combiner.quiesce()

    async def crash(self) -> None:
        """End in the middle of whatever is under way."""
        self._combiner.abandon()
        await asyncio.sleep(0)
