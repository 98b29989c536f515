"""The sweeper: finishes work that processes left behind.

It publishes outputs of processes that died, and releases kept messages that are due. It also publishes outputs that records
beside entities have owed for long, and tends read models with gaps.

A healthy process proves by its book which outputs were sent. So the sweeper searches entities only for the transactions of
silent books, and for stuck transactions. It notes the search in the book, on the condition that the book has not been written
since. A silent book is searched again after an hour and after a day, since a save may land late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.library import NoteSearch
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.records.library import KEPT_FOR, SEARCHED_AGAIN, Search
from exactlyonce.records.outbox import number_of
from exactlyonce.stores.port import AsyncListing, ListedBook
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.raised import Show, shown

AT_ONCE: Final = 32
"""Entities that one run sweeps concurrently: 20,000 reminders due at once are to be released in two minutes."""
MOST_LISTED: Final = 100_000
"""Most entities that one run lists before it sweeps them, and lists further entities."""
MOST_BOOKS: Final = 500
"""Most books that one run searches."""
LONGEST: Final = timedelta(minutes=1)
"""Time after which a run starts no further entity: a host ends functions that run for minutes."""
_LATE: Final = 3_600  # Seconds by which a listing may lag behind writes.

_log = logging.getLogger(__name__)
_Found = tuple[EntityRef, str | None]  # An entity, and the book that asks for its search.


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a run of the sweeper.

    Attributes:
        swept: number of entities without debts now.
        failed: keys of entities that may still owe outputs, each with the reason; also an entity type, or "books", that could
            not be listed.
        left: number of entities that were listed and not swept, for the next run.
    """

    swept: int
    failed: tuple[tuple[str, str], ...] = ()
    left: int = 0


@dataclass
class _Owner:
    """An entity to sweep, and the books that ask for it."""

    type: Entity[Any]
    ref: EntityRef
    books: set[str] = field(default_factory=set)


@dataclass
class _Run:
    """The progress of a run.

    Attributes:
        limit: most entities to sweep.
        waiting: the listed entities, by key: for Python the partition values 1 and True are equal.
        tried: keys of entities that were swept or failed.
        failed: reasons by key, of failed entities and failed listings.
        open: books with transactions that were not all listed and swept.
        is_cut: whether there may be more entities to list.
    """

    began: datetime
    limit: int | None
    waiting: dict[str, _Owner] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    swept: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    is_cut: bool = False

    @property
    def room(self) -> int:
        """Number of entities that may still be swept."""
        return MOST_LISTED if self.limit is None else self.limit - len(self.tried)


class Sweeper:
    """Sweeps entities. Several sweepers may run at once: a second publish makes copies, and saves are conditional.

    Entities are taken in random order, those that failed in the last run at the end. So entities that cannot be swept delay no
    other entity.
    """

    def __init__(self, maintenance: Maintenance, listing: AsyncListing, runtime: Runtime, show: Show = shown) -> None:
        self.maintenance = maintenance
        self._listing = listing
        self._runtime = runtime
        self._show = show
        self._since = 0
        self._failed: frozenset[str] = frozenset()

    async def sweep(
        self, entities: Iterable[Entity[Any]], older_than: timedelta, limit: int | None = None, *, whole: bool = True
    ) -> Swept:
        """Sweep unfinished entities.

        Args:
            entities: the entity types.
            older_than: the least age of outputs owed by records beside an entity, and of messages held by a read model.
            limit: most entities to sweep; None for as many as there is time for.
            whole: whether `entities` are all types of the application. Otherwise no book counts as searched.
        """
        types = tuple(entities)
        run = _Run(self._runtime.clock.now(), limit)
        searches = await self._searches(run)
        asked = tuple(search for _, search in searches)
        before = self._runtime.now() - older_than
        while True:
            run.is_cut, tried = False, len(run.tried)
            half = (self._elapsed(run) + LONGEST) / 2  # The other half of the time is for sweeping.
            for entity in types:
                await self._list(entity, asked, before, run, half)
            await self._sweep_all(run)
            if not run.is_cut or run.room <= 0 or self._elapsed(run) >= LONGEST or len(run.tried) == tried:
                break
        run.open.update(book for owner in run.waiting.values() for book in owner.books)
        if run.is_cut or not whole:
            run.open.update(search.book for search in asked)
        try:
            await self._note(searches, run)
        except ExactlyOnceError as error:  # The next run searches the books again.
            self._fail(run, "books", error)
        self._failed = frozenset(run.failed)
        if run.tried or run.failed:
            _log.info("swept %d entities; %d failed, %d are left", run.swept, len(run.failed), len(run.waiting))
        return Swept(run.swept, tuple(run.failed.items()), len(run.waiting))

    async def _searches(self, run: _Run) -> list[tuple[ListedBook, Search]]:
        """The books to search. The first run reads all books, later runs the books that may still need a search."""
        now, searches, since = self._runtime.now(), [], int(self._runtime.now().timestamp())
        try:
            async for page in self._listing.books(self._since):
                for item in page:
                    search = item.book.search(item.written, now)
                    if search is not None:
                        searches.append((item, search))
                    if len(item.book.searched) <= len(SEARCHED_AGAIN):
                        since = min(since, item.written)
        except ExactlyOnceError as error:
            self._fail(run, "books", error)
            return []
        self._since = max(since - _LATE, 0)
        return self._runtime.random.sample(searches, min(len(searches), MOST_BOOKS))

    async def _list(
        self, entity: Entity[Any], searches: tuple[Search, ...], before: datetime, run: _Run, half: timedelta
    ) -> None:
        """List the unfinished entities of a type. A failed listing does not stop the run."""
        try:
            for kind in entity.strategy.unfinished:
                if kind == "outbox" and searches:
                    await self._first(entity, self._owing(entity.name, searches), run, half)
                if kind == "outbox":
                    await self._first(entity, _alone(self._listing.due(entity.name, self._runtime.now())), run, half)
                else:
                    pages = self._listing.companions if kind == "companions" else self._listing.holding
                    await self._first(entity, _alone(pages(entity.name, before)), run, half)
        except ExactlyOnceError as error:
            self._fail(run, entity.name, error)
            run.open.update(search.book for search in searches)

    async def _owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[_Found, ...]]:
        async for page in self._listing.owing(type, searches):
            yield tuple((ref, number_of(tx)[0]) for ref, tx in page)

    async def _first(
        self, entity: Entity[Any], pages: AsyncIterator[tuple[_Found, ...]], run: _Run, half: timedelta
    ) -> None:
        """The first untried entities, up to a run's limits."""
        async for page in pages:
            for ref, book in page:
                if ref.key not in run.tried:
                    owner = run.waiting.setdefault(ref.key, _Owner(entity, ref))
                    owner.books.update(() if book is None else (book,))
                elif book is not None and ref.key in run.failed:
                    run.open.add(book)
            if len(run.waiting.keys() - self._failed) >= MOST_LISTED or self._elapsed(run) >= half:
                run.is_cut = True
                break

    async def _sweep_all(self, run: _Run) -> None:
        """Sweep the listed entities while there is time."""
        keys = sorted(run.waiting)
        self._runtime.random.shuffle(keys)
        keys.sort(key=lambda key: key in self._failed)
        waiting = iter(keys[: max(run.room, 0)])

        async def work() -> None:
            while self._elapsed(run) < LONGEST and (key := next(waiting, None)) is not None:
                owner = run.waiting.pop(key)
                run.tried.add(key)
                try:
                    await self._sweep(owner.type, owner.ref)
                    run.swept += 1
                except Exception as error:  # A failed entity does not stop the run.
                    self._fail(run, key, error, owner.ref)
                    run.open.update(owner.books)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def _note(self, searches: list[tuple[ListedBook, Search]], run: _Run) -> None:
        """Note in the books that they were searched, except books with outputs still owed."""
        now, seconds = self._runtime.now(), int(KEPT_FOR.total_seconds())
        for listed, search in searches:
            if listed.book.id not in run.open:
                book = listed.book.after(search, listed.written, now)
                await self.maintenance.driver.run(iter(NoteSearch(book, listed.etag, seconds)))

    def _fail(self, run: _Run, key: str, error: Exception, subject: object = None) -> None:
        reason = _reason(error)
        _log.warning("%s could not be swept: %s", subject or key, reason, exc_info=self._show(error))
        run.failed[key] = reason

    def _elapsed(self, run: _Run) -> timedelta:
        return self._runtime.clock.now() - run.began

    async def _sweep(self, entity: Entity[Any], ref: EntityRef) -> None:
        work = self.maintenance.work(entity, ref)
        finished = await self.maintenance.run(ref, lambda memory: entity.strategy.sweep(work, memory))
        for _, error in finished.stopped:
            raise error


async def _alone(
    pages: AsyncIterator[tuple[EntityRef, ...]],
) -> AsyncIterator[tuple[tuple[EntityRef, str | None], ...]]:
    """Pages of entities without books."""
    async for page in pages:
        yield tuple((ref, None) for ref in page)


def _reason(error: Exception) -> str:
    """The class of an error, and the text of the library's own errors: any other text may quote a body."""
    return f"{type(error).__name__}: {error}" if isinstance(error, ExactlyOnceError) else type(error).__name__
