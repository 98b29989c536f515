"""A world in memory: a store, queues, and processes that share them and crash on request."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import chain
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import BUDGET, Lanes
from exactlyonce.drivers.observer import Observer, ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.attempt import Again, Memory, Strategy, Work
from exactlyonce.effects.effect import Awaited, Step
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import OUTBOX, Ledger, Mark, read_entity, split
from exactlyonce.records.library import BOOKS, Book, read_book
from exactlyonce.records.outbox import Output, number_of
from exactlyonce.stores.memory.store import Fate, MemoryStore, Partition, Trouble, Version
from exactlyonce.testing.guarantee import Commit, Facts, Position
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, message_hash
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes

# Seeded trouble for stores, and clocks that only tests move.


class SeededTrouble:
    """Draws the fate of writes and the age of views; the same seed gives the same troubles.

    Args:
        random: the source of chance.
        fates: probability of each fate other than `ANSWERED`.
        stale: probability that a lagging replica serves a read.
        lag: most writes by which a replica lags.
    """

    def __init__(self, random: Random, fates: Mapping[Fate, float], stale: float = 0.0, lag: int = 0) -> None:
        self._random = random
        self._fates = tuple(fates)
        self._weights = tuple(fates.values())
        self._stale = stale
        self._lag = lag

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        rest = 1.0 - sum(self._weights)
        return self._random.choices((*self._fates, Fate.ANSWERED), (*self._weights, rest))[0]

    def replica(self, newest: int) -> int:
        if self._random.random() >= self._stale:
            return newest
        return max(0, newest - self._random.randint(1, self._lag))


class ManualClock:
    """A clock that stands still until `advance` is called."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._order = 0

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), self._order, woken))
        await woken

    def block(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock, and wake the sleepers whose time has come."""
        self._now += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


class InstantClock(ManualClock):
    """A clock that moves at once with every sleep."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)


# The history of a memory store, from every version of its documents, including overwritten versions.


class _Told(NamedTuple):
    """The evidence of one write of a document.

    Attributes:
        document: the written document; None for a deletion.
        commits: the commits of the write; owed commits of earlier writes are repeated.
        ledger: the ledger of an entity.
        skipped: the number that a read model gave up.
        late: a message that came for a skipped number.
        owing: by entity and message hash, the transactions whose outputs the document owes; None in companions.
    """

    document: Json | None
    commits: tuple[Commit, ...] = ()
    ledger: Ledger = Ledger()
    skipped: tuple[str, Position] | None = None
    late: tuple[str, str] | None = None
    owing: Mapping[tuple[str, str], str | None] = MappingProxyType({})


class StoreHistory:
    """The commits recorded in a store's documents.

    After a document was put back to a former content, the writes between no longer count.

    Args:
        store: the store to read.
        put_back: ETags of writes that put documents back, as a restore does.

    Attributes:
        fallen: entity and version of ledgers that went back without a restore of the document.
        undone: the commits of undone writes.
    """

    def __init__(self, store: MemoryStore, put_back: Container[str] = ()) -> None:
        self.fallen: set[tuple[str, int]] = set()
        self.undone: list[Commit] = []
        self._put_back = put_back
        self._told: dict[str, list[_Told]] = {}
        self._books = _books(store.library.get(BOOKS, Partition()))
        for (type, *partition), log in store.entities.items():
            for batch in _batches(log):
                self._read_batch(type, tuple(partition), batch)

    @property
    def commits(self) -> list[Commit]:
        """From records, marks, entries of outboxes and documents of numbers. Marks of one commit have versions by time."""
        return [commit for item in self._all for commit in item.commits]

    def facts(self, published: tuple[Output, ...] = (), acknowledged: Iterable[tuple[str, str]] = ()) -> Facts:
        """The facts of the documents, with those of queues and deliveries."""
        return Facts(
            tuple(self.commits),
            published,
            frozenset(acknowledged),
            self.owing,
            frozenset(item.skipped for item in self._all if item.skipped is not None),
            frozenset(item.late for item in self._all if item.late is not None),
            frozenset(self.fallen),
            tuple(self.undone),
        )

    @property
    def owing(self) -> frozenset[tuple[str, str]]:
        """Entity and message hash of commits that owe outputs by their newest documents, without a book that pays."""
        owing = (item for told in self._told.values() if told for item in told[-1].owing.items())
        return frozenset(commit for commit, tx in owing if tx is None or not self._is_paid(tx))

    @property
    def _all(self) -> Iterator[_Told]:
        return chain.from_iterable(self._told.values())

    def _is_paid(self, tx: str) -> bool:
        book, number = number_of(tx)
        return book in self._books and self._books[book].pays(number)

    def _read_batch(self, type: Any, partition: tuple[Any, ...], batch: list[Version]) -> None:
        entries: dict[tuple[str, str], Commit] = {}
        for version in batch:
            told = self._told.setdefault(json.dumps([type, *partition, version.id]), [])
            ref = EntityRef(type, partition, version.id)
            if version.etag in self._put_back:
                self._take_back(told, version.document)
            elif version.companion is not None:
                told.append(_of_companion(version, told, f"batch {batch[0].etag}", entries))
            else:
                told.append(self._of_entity(ref, version.document, told[-1].ledger if told else Ledger(), entries))

    def _take_back(self, told: list[_Told], document: Json | None) -> None:
        """Undo the writes since the document had this content before."""
        while told and told[-1].document != document:
            self.undone += told.pop().commits

    def _of_entity(
        self, ref: EntityRef, document: Json | None, before: Ledger, entries: dict[tuple[str, str], Commit]
    ) -> _Told:
        ledger = read_entity(ref, document).ledger or Ledger()
        if ledger.version < before.version:
            self.fallen.add((ref.key, ledger.version))
        owed = tuple(Commit.of_entry(ref, item, ledger) for item in ledger.outbox)
        entries.update({(item.entity, item.message): item for item in owed})
        owing = {(item.entity, item.message): item.tx for item in owed}
        return _Told(document, (*_marked(ref, before, ledger), *owed), ledger, owing=owing)


def _marked(ref: EntityRef, before: Ledger, ledger: Ledger) -> Iterator[Commit]:
    """The commits of the marks that a save added. The oldest marks leave: their number is the growth of `left`."""
    if ledger.protocol != OUTBOX:
        return
    stayed = split(before.marks)[max(ledger.left - before.left, 0) :]
    added = sorted((Counter(split(ledger.marks)) - Counter(stayed)).elements())
    for version, mark in enumerate(added, ledger.version - len(added) + 1):
        yield Commit.of_mark(ref, Mark.read(mark), version)


def _of_companion(version: Version, before: list[_Told], batch: str, entries: dict[tuple[str, str], Commit]) -> _Told:
    document = version.companion or {}
    type, *partition, id = json.loads(document["entity"])
    companion = read_companion(EntityRef(type, tuple(partition), id), document)
    match companion:
        case NumberedMessage(held=None, message=None):
            return _Told(version.document, skipped=(companion.entity, (companion.channel, companion.number)))
        case NumberedMessage(held=None, message=str(message)):
            if any(told.skipped is not None for told in before):
                return _Told(version.document, late=(companion.entity, message))
            # If the message sent anything, the entity in the same batch has the transaction.
            released = Commit.of(companion.entity, companion)
            commit = entries.get((companion.entity, released.message)) or replace(released, tx=batch)
            return _Told(version.document, (replace(commit, place=released.place),))
        case ColocatedRecord() | StreamEntry():
            owing = {} if companion.owed is None else {(companion.entity, message_hash(companion.message)): None}
            return _Told(version.document, (Commit.of(companion.entity, companion),), owing=owing)
    return _Told(version.document)


def _books(partition: Partition) -> dict[str, Book]:
    """The newest versions of all books, by their ids."""
    newest = partition.view(len(partition.log)).values()
    books: Iterable[Book] = (read_book(item.document.value) for item in newest if item.document is not None)
    return {book.id: book for book in books}


def _batches(partition: Partition) -> Iterator[list[Version]]:
    """The writes of a partition, grouped by batch."""
    batch: list[Version] = []
    for position, version in enumerate(partition.log):
        if position not in partition.within and batch:
            yield batch
            batch = []
        batch.append(version)
    if batch:
        yield batch


Result = TypeVar("Result")


class Backup(NamedTuple):
    """The documents of an entity's partition at a moment, by their ids."""

    entity: EntityRef
    documents: Mapping[str, Json | None]


class World:
    """The part that survives a crash: store, queues, and acknowledged messages.

    Args:
        destinations: the destinations of handlers.
        random: source of transaction ids and jitter.
        trouble: fates of the store's writes and reads.
        outcome: fates of sends; see `MemoryTransport`.
        clock, store, lifetimes: those of all processes; None for fresh ones.
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
        destinations = tuple(destinations)
        self._addresses = {destination.name: Address(self.transport, destination.name) for destination in destinations}
        self._publisher = Publisher(self._addresses)
        self.routes = Routes.to(destinations, self._publisher.limits)

    def process(self, *, backoff: Backoff | None = None, observer: Observer | None = None) -> Process:
        """Start a process without memories."""
        runtime = Runtime(
            self.clock, self.random, lambda: f"{self.random.getrandbits(128):032x}", ObserverSlot(observer)
        )
        driver = AsyncDriver(Awaited(self.store), Publisher(self._addresses), runtime, lifetimes=lambda: self.lifetimes)
        retrying = Retrying(backoff or Backoff(), self.random)
        return Process(self, driver, retrying, Lanes(driver, retrying, self.clock, BUDGET))

    @property
    def published(self) -> tuple[Output, ...]:
        """Every copy of every output, in order of arrival per queue."""
        return tuple(output for queue in self.transport.queues.values() for output in queue)

    def facts(self) -> Facts:
        """All observable facts since the first write."""
        sent = (output for output in self.published if output.envelope.value["type"] != REPLAY)
        return self._history.facts(tuple(sent), self.acknowledged)

    def backup(self, entity: EntityRef) -> Backup:
        """The present documents in the partition of an entity."""
        partition = self.store._entity(entity)  # noqa: SLF001
        return Backup(entity, {id: item.document for id, item in partition.view(len(partition.log)).items()})

    def put_back(self, backup: Backup) -> None:
        """Put the documents of a partition back, as a restore does. No process may remember them.

        Acknowledged messages count as never delivered afterwards, unless their changes are still there.
        """
        partition = self.store._entity(backup.entity)  # noqa: SLF001
        for id in partition.ids(len(partition.log)):
            was, there = backup.documents.get(id), partition.newest(id)
            if was != (there and there.document):
                self._put_back.add(self.store._append(partition, id, was).etag)  # noqa: SLF001
        history = self._history
        undone = {(item.entity, item.message) for item in history.undone}
        undone -= {(commit.entity, commit.message) for commit in history.commits}
        self.acknowledged = {item for item in self.acknowledged if (item[0], message_hash(item[1])) not in undone}

    @property
    def _history(self) -> StoreHistory:
        return StoreHistory(self.store, self._put_back)


class Process:
    """The part that a crash ends: a driver with its book, and its lanes."""

    def __init__(self, world: World, driver: AsyncDriver, retrying: Retrying, lanes: Lanes) -> None:
        self._world = world
        self._driver = driver
        self._retrying = retrying
        self._lanes = lanes
        self._jobs: set[asyncio.Future[Any]] = set()

    async def deliver(self, type: Entity[Any], envelope: Envelope, strategy: Strategy | None = None) -> None:
        """Deliver a message once. Returning acknowledges the message; raising gives it back."""
        ref, strategy, lifetimes = type.ref_of(envelope), strategy or type.strategy, self._world.lifetimes
        runner = Runner(type, ref, self._world.routes)
        handle = AgeCheck(runner, ref, lifetimes, strategy.forgets)
        retention = lifetimes.retention.kept(self._world.clock.now())
        work = Work(ref, (), handle, runner.absent, runner.evolve, retention, lifetimes.refusal)
        await self._lanes.process(strategy, work, envelope)
        self._world.acknowledged.add((ref.key, key_of(envelope)))

    async def run(
        self, entity: EntityRef, attempt: Callable[[Memory], Step[Result | Again]], memory: Memory | None = None
    ) -> Result:
        """Run maintenance of an entity: a sweep, a settlement, a replay. Raises as `Retrying.process` does."""
        return await self.end_with_me(self._driver.process(self._retrying, entity, attempt, memory or Memory()))

    async def end_with_me(self, job: Coroutine[Any, Any, Result]) -> Result:
        """Run a job that a crash of the process cancels."""
        task = asyncio.ensure_future(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
        return await task

    async def close(self) -> None:
        """Finish the work under way, and write the book, which proves the published outputs."""
        await self._lanes.quiesce()
        await self._driver.books.end()

    async def crash(self) -> None:
        """Stop in the middle of the work. The book is lost, except for its stored version."""
        self._lanes.abandon()
        self._driver.books.abandon()
        for job in self._jobs:
            job.cancel()
        await asyncio.sleep(0)
