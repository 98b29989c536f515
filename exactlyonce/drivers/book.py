"""The book of a process: which of its transactions were sent, and what the books of others say of theirs.

It is in the memory of the process, and written now and then. What a book that is old, or was never written, does not prove is
sent once more, as copies. But the store has to have the book before its first number is used, or no sweeper would know of it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.books import CloseNumbers, FindPaid, FoundBooks, Opened, OpenNumbers, ReadBooks, WriteBook
from exactlyonce.effects.effect import UNKNOWN, Unknown
from exactlyonce.effects.library import Written
from exactlyonce.records.books import BOOK_DIGITS, MOST_NUMBERS, MOST_OPEN, Book, books_of, number_of, transaction

PROVED_EVERY: Final = 64
"""Closed numbers after which a book is written."""
PROVED_WITHIN: Final = timedelta(minutes=10)
"""Time after which a book is written that proves less than is true."""
STUCK_AFTER: Final = timedelta(minutes=2)
"""Age from which an open number is stuck: the sweeper looks for its entry, though the process is alive."""
KEPT_FOR: Final = timedelta(days=60)
"""Time for which the store keeps a book after it was written."""
_SILENT: Final = KEPT_FOR / 2
_UNPAID: Final = 3
"""Unpaid transactions of others in one outbox from which their books are read though no copy needs it."""
_MOST_KNOWN: Final = 1_000
"""Books of others that a process remembers."""


class ProcessBook:
    """The state of a process's book, without I/O.

    Args:
        id: of the book.
        secret: from which names derive that nobody is to guess.
    """

    def __init__(self, id: str, secret: str) -> None:
        self.id = id
        self.secret = secret
        self.closed = 0
        self._used = 0
        self._open: dict[int, datetime] = {}
        self._begun: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._entity: dict[int, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether another book has to begin."""
        return self._used >= MOST_NUMBERS or len(self._open) > MOST_OPEN

    def open(self, effect: OpenNumbers, at: datetime) -> Opened:
        """Give out numbers."""
        numbers = range(self._used + 1, self._used + effect.count + 1)
        self._used += effect.count
        for number in numbers:
            self._open[number] = at
            self._entity[number] = effect.entity.key
            self._begun[effect.entity.key][number] = effect.version
        return Opened(at, tuple(transaction(self.id, number) for number in numbers), self.secret)

    def compare(self, entity: str, version: int, transactions: Iterable[str]) -> None:
        """Close the numbers that were opened for a lower version of an entity and that its outbox does not hold."""
        here = {number for book, number in map(number_of, transactions) if book == self.id}
        begun = self._begun.get(entity, {})
        for number in [one for one, base in begun.items() if base < version and one not in here]:
            self.close(number)

    def close(self, number: int) -> None:
        """Close a number."""
        if self._open.pop(number, None) is None:
            return
        self.closed += 1
        entity = self._entity.pop(number)
        del self._begun[entity][number]
        if not self._begun[entity]:
            del self._begun[entity]

    def pays(self, number: int) -> bool:
        """Whether the outputs of one of its transactions were sent."""
        return 0 < number <= self._used and number not in self._open

    def document(self, now: datetime, *, ended: bool = False) -> Book:
        """The book as it is written now."""
        stuck = tuple(number for number, at in self._open.items() if now - at >= STUCK_AFTER)
        return Book(self.id, self._used, tuple(self._open), stuck, ended=ended and not self._open)


class Books:
    """The book of this process, and those of others as far as they were read.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        runtime: time and chance.
        proved_within: time after which a book is written that proves less than is true.
    """

    def __init__(
        self, perform: Callable[[Any], Awaitable[Any]], runtime: Runtime, proved_within: timedelta = PROVED_WITHIN
    ) -> None:
        self._perform = perform
        self._runtime = runtime
        self._proved_within = proved_within
        self._own = self._begin()
        self._written: datetime | None = None
        self._closed_when_written = 0
        self._writing: asyncio.Task[bool] | None = None
        self._timer: asyncio.Task[None] | None = None
        self._others: dict[str, Book] = {}
        self._paid: set[str] = set()

    def _begin(self) -> ProcessBook:
        return ProcessBook(self._runtime.new_transaction()[:BOOK_DIGITS], self._runtime.new_transaction())

    async def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`."""
        if self._own.is_full:
            await self.write(ended=True)
            self._own, self._written, self._closed_when_written = self._begin(), None, 0
        if self._written is None or self._runtime.now() - self._written > _SILENT:
            if not await self._written_once():
                return UNKNOWN
        return self._own.open(effect, self._runtime.now())

    async def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`."""
        self._own.compare(effect.entity.key, effect.version, effect.transactions)
        unpaid = [tx for tx in effect.transactions if not self._pays(tx)]
        if len(unpaid) >= _UNPAID or not {*unpaid}.isdisjoint(effect.needed):
            others = tuple(book for book in books_of(unpaid) if book != self._own.id)
            if others:
                self._learn(await self._perform(ReadBooks(others)))
        return frozenset(tx for tx in effect.transactions if self._pays(tx))

    async def close(self, effect: CloseNumbers) -> None:
        """Perform `CloseNumbers`."""
        for tx in effect.transactions:
            book, number = number_of(tx)
            if book == self._own.id:
                self._own.close(number)
            else:
                self._paid.add(tx)
        unproved = self._own.closed - self._closed_when_written
        if unproved >= PROVED_EVERY:
            self._start()
        elif unproved and self._timer is None:
            self._timer = asyncio.create_task(self._prove(), name="exactlyonce book")

    async def write(self, *, ended: bool = False) -> bool:
        """Write the book; whether that was answered."""
        own, closed, now = self._own, self._own.closed, self._runtime.now()
        reply = await self._perform(WriteBook(own.document(now, ended=ended), int(KEPT_FOR.total_seconds())))
        if not isinstance(reply, Written):
            return False
        if own is self._own:
            self._written, self._closed_when_written = now, closed
        return True

    async def end(self) -> None:
        """Write the book a last time, if it proves less than is true."""
        self.stop()
        if self._written is not None:
            await self.write(ended=True)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pays(self, tx: str) -> bool:
        book, number = number_of(tx)
        if book == self._own.id:
            return self._own.pays(number)
        return tx in self._paid or (book in self._others and self._others[book].pays(number))

    def _learn(self, found: object) -> None:
        if isinstance(found, FoundBooks):
            self._others |= {book.id: book for book in found.books}
            for book in [*self._others][: max(len(self._others) - _MOST_KNOWN, 0)]:
                del self._others[book]

    async def _written_once(self) -> bool:
        """Write the book once for all that wait for it."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self.write(), name="exactlyonce book")
        return await asyncio.shield(self._writing)

    def _start(self) -> None:
        """Begin to write the book, unless that is under way."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self.write(), name="exactlyonce book")

    async def _prove(self) -> None:
        await self._runtime.clock.sleep(self._proved_within.total_seconds())
        self._timer = None
        await self.write()
