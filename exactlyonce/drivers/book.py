"""The books of a process: which of its transactions were sent, and what further processes' books say of their transactions.

A book lives in the memory of the process, and is written now and then. An old book, or a book never written, proves too little;
then outputs are sent again, as copies. But the store has to have the book before its first number is used, or no sweeper would
know of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import UNKNOWN, Opened, Unknown
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundBooks, OpenNumbers, ReadBooks, WriteBook, Written
from exactlyonce.records.library import BOOK_DIGITS, KEPT_FOR, MOST_NUMBERS, MOST_OPEN, PROVED_WITHIN, Book
from exactlyonce.records.outbox import books_of, number_of, transaction

# Books without I/O, for both drivers: open numbers of this process, and the books of further processes.


PROVED_EVERY: Final = 64
"""Closed numbers after which a book is written."""
STUCK_AFTER: Final = timedelta(minutes=2)
"""Age at which an open number is stuck: the sweeper looks for its entry, though the process is alive."""
STUCK_AGAIN: Final = (timedelta(hours=1), timedelta(days=1))
"""Later ages at which the number is stuck, the last and its multiples: its save may land late, or the sweeper be away."""
STUCK_FOR: Final = timedelta(minutes=5)
"""How long the number is stuck each time: the sweeper looks every minute."""
TRIED_AGAIN: Final = timedelta(minutes=1)
"""Pause after an unanswered write."""
_ROOM: Final = 10_000  # Numbers for attempts that wait for the same book to be written.
_UNPAID: Final = 3
"""Number of foreign unpaid transactions in an outbox from which their books are read, even without need for a copy."""
_UNPAID_FOR: Final = timedelta(minutes=1)
"""Age from which such transactions count. The openers of younger ones are likely to come back, and know their state."""
_READ_AGAIN: Final = timedelta(minutes=1)
_MOST_KNOWN: Final = 1_000
"""Foreign books that a process remembers, and as many that it looked for in vain."""
_GONE_AFTER: Final = KEPT_FOR + timedelta(days=1)
"""Age of an attempt above which the store may have expired its book, even if written after the attempt."""
_MOST_PAID: Final = 10_000
"""Foreign transactions that a process paid, and remembers."""


class ProcessBook:
    """A book of a process.

    Args:
        secret: origin of names that nobody may guess.

    Attributes:
        closed: how many numbers were closed.
        written: time of the last answered write; None if never.
        promised: seconds until the next write, as the last write promised.
        tried: time of a failed write since then; None without a failure.
        retired: whether the book gives out no more numbers.
        over: whether the store knows that the book has ended.
    """

    def __init__(self, id: str, secret: str) -> None:
        self.id = id
        self.secret = secret
        self.closed = 0
        self.written: datetime | None = None
        self.promised = 0
        self.tried: datetime | None = None
        self.retired = False
        self.over = False
        self._used = 0
        self._open: dict[int, datetime] = {}
        self._begun: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._entity: dict[int, str] = {}
        self._proved = 0
        self._unproved_since = datetime.max.replace(tzinfo=timezone.utc)

    @property
    def is_full(self) -> bool:
        """Whether a further book has to begin."""
        return self._used > MOST_NUMBERS - _ROOM or len(self._open) > MOST_OPEN

    @property
    def unproved(self) -> int:
        """How many closed numbers the written book does not have."""
        return self.closed - self._proved

    @property
    def is_behind(self) -> bool:
        """Whether the store's book proves less than is true."""
        return self.written is not None and (self.unproved > 0 or (self._is_at_an_end and not self.over))

    @property
    def _is_at_an_end(self) -> bool:
        return self.retired and not self._open

    def open(self, effect: OpenNumbers, at: datetime) -> Opened:
        """Give out numbers."""
        first, self._used = self._used + 1, self._used + len(effect.messages) + effect.more
        numbers = range(first, self._used + 1)
        for number in numbers:
            self._open[number] = at
            self._entity[number] = effect.entity.key
            self._begun[effect.entity.key][number] = effect.version
        return Opened(at, tuple(transaction(self.id, number) for number in numbers), self.secret)

    def compare(self, entity: str, version: int, here: frozenset[int], now: datetime) -> None:
        """Close the numbers opened for a lower version of an entity, except those in its outbox."""
        begun = self._begun.get(entity, {})
        for number in [item for item, base in begun.items() if base < version and item not in here]:
            self.close(number, now)

    def close(self, number: int, now: datetime) -> None:
        """Close a number."""
        if self._open.pop(number, None) is None:
            return
        if not self.unproved:
            self._unproved_since = now
        self.closed += 1
        entity = self._entity.pop(number)
        del self._begun[entity][number]
        if not self._begun[entity]:
            del self._begun[entity]

    def pays(self, number: int) -> bool:
        """Whether the outputs of a transaction of this book were sent."""
        return 0 < number <= self._used and number not in self._open

    def document(self, now: datetime, within: timedelta) -> Book:
        """The book to write now."""
        stuck = tuple(number for number, at in self._open.items() if _is_stuck(now - at))
        ended, seconds = self._is_at_an_end, int(within.total_seconds())
        return Book(self.id, self._used, tuple(self._open), stuck, ended=ended, within=seconds)

    def noted(self, book: Book, closed: int, now: datetime) -> None:
        """Note a write of the book, made when `closed` numbers had been closed."""
        self.written, self.promised, self.tried, self.over = now, book.within, None, book.ended
        self._proved, self._unproved_since = closed, now

    def due(self, within: timedelta) -> datetime | None:
        """Time of the next write; None if the book has nothing more to say."""
        if self.written is None or self.over:
            return None
        stuck = (_stuck_after(at, self.written) for at in self._open.values())
        proof = self.proof_due(within)
        due = min((*stuck, *(() if proof is None else (proof,))), default=None)
        return due if due is None or self.tried is None else max(due, self.tried + TRIED_AGAIN)

    def proof_due(self, within: timedelta) -> datetime | None:
        """Time of the next write for missing proofs; None if the book proves everything that is true.

        The time counts from a recent write before: so a book in occasional use is never silent for longer.
        """
        if not self.is_behind or self.written is None:
            return None
        since, last = self._unproved_since, self.written + within
        due = since + within if since > last else last
        if self.unproved >= PROVED_EVERY or self._is_at_an_end:
            due = self.written
        return due if self.tried is None else max(due, self.tried + TRIED_AGAIN)


class Shelf:
    """The books of a process, and the foreign books it has read.

    A book stays, even after its successor began, until none of its numbers is open and the store knows.

    Args:
        within: longest time before a book that proves less than is true is written.

    Attributes:
        within: the argument. If it gets shorter, the store's book has to say so before it is used again.
    """

    def __init__(self, new_transaction: Callable[[], str], within: timedelta) -> None:
        self._new = new_transaction
        self.within = within
        self._own: ProcessBook | None = None
        self._mine: dict[str, ProcessBook] = {}
        self._others: dict[str, tuple[Book, datetime]] = {}
        self._absent: dict[str, None] = {}
        self._paid: dict[str, None] = {}

    @property
    def mine(self) -> tuple[ProcessBook, ...]:
        """The books of this process."""
        return tuple(self._mine.values())

    def current(self) -> ProcessBook:
        """The book that gives out numbers; a further book once it is full."""
        if self._own is not None and self._own.is_full:
            self.retire()
        if self._own is None:
            self._own = ProcessBook(self._new()[:BOOK_DIGITS], self._new())
            self._mine[self._own.id] = self._own
        return self._own

    def retire(self) -> None:
        """Give out no more numbers of this book."""
        if self._own is not None:
            self._own.retired = True
            if self._own.written is None:  # The book has given out no number.
                del self._mine[self._own.id]
            self._own = None

    def is_stored(self, book: ProcessBook, now: datetime) -> bool:
        """Whether the store has a book, and will have it for long. Otherwise no sweeper would know of the next commits."""
        soon = book.promised <= self.within.total_seconds()
        return book.written is not None and soon and now - book.written <= KEPT_FOR / 2

    def compare(self, effect: FindPaid, now: datetime) -> tuple[str, ...]:
        """Close numbers of this process by the contents of an outbox; return the foreign books that have to be read."""
        places = list(map(number_of, effect.transactions))
        for book in self.mine:
            here = frozenset(number for id, number in places if id == book.id)
            book.compare(effect.entity.key, effect.version, here, now)
        unpaid = {
            tx: at
            for tx, at, (id, _) in zip(effect.transactions, effect.attempts, places, strict=True)
            if id not in self._mine and not self._is_paid(tx, at, now)
        }
        needed = books_of(tx for tx in unpaid if tx in effect.needed)
        old = [tx for tx, at in unpaid.items() if now - at >= _UNPAID_FOR]
        if len(old) < _UNPAID:
            return needed
        return tuple(dict.fromkeys((*needed, *(item for item in books_of(old) if not self._was_read(item, now)))))

    def learn(self, reply: object, now: datetime, asked: tuple[str, ...] = ()) -> None:
        """Remember the foreign books in a reply, and the requested books that are absent."""
        if not isinstance(reply, FoundBooks):
            return
        for book in reply.books:
            self._others.pop(book.id, None)
            self._others[book.id] = book, now
            self._absent.pop(book.id, None)
        there = {book.id for book in reply.books}
        self._absent.update((item, None) for item in asked if item not in there)
        _shorten(self._others, _MOST_KNOWN)
        _shorten(self._absent, _MOST_KNOWN)

    def close(self, effect: CloseNumbers, now: datetime) -> None:
        """Close numbers of this process, and remember foreign transactions that it paid."""
        for tx in effect.transactions:
            id, number = number_of(tx)
            if id in self._mine:
                self._mine[id].close(number, now)
            else:
                self._paid[tx] = None
        _shorten(self._paid, _MOST_PAID)

    def pays(self, tx: str) -> bool:
        """Whether the outputs of a transaction were certainly sent."""
        id, number = number_of(tx)
        if id in self._mine:
            return self._mine[id].pays(number)
        return tx in self._paid or (id in self._others and self._others[id][0].pays(number))

    def paid(self, effect: FindPaid, now: datetime) -> frozenset[str]:
        """The transactions whose outputs were certainly sent, or can no longer be sent."""
        attempts = zip(effect.transactions, effect.attempts, strict=True)
        return frozenset(tx for tx, at in attempts if self._is_paid(tx, at, now))

    def writing(self, book: ProcessBook, now: datetime) -> WriteBook:
        """The effect that writes a book in its present state."""
        return WriteBook(book.document(now, self.within), int(KEPT_FOR.total_seconds()))

    def noted(self, book: ProcessBook, written: Book, closed: int, now: datetime) -> None:
        """Note a write of a book. An ended book leaves, and is remembered like a foreign book."""
        book.noted(written, closed, now)
        if book.over:
            self._mine.pop(book.id, None)
            self.learn(FoundBooks((written,)), now)

    def due(self) -> Iterator[tuple[datetime, ProcessBook]]:
        """The books to write, with the times of the writes."""
        return ((at, book) for book in self.mine if (at := book.due(self.within)) is not None)

    def _is_paid(self, tx: str, at: datetime, now: datetime) -> bool:
        """Whether a transaction owes nothing any more.

        If an attempt is so old that its book has expired, the sweeper searched the book long ago.
        """
        return self.pays(tx) or (number_of(tx)[0] in self._absent and now - at > _GONE_AFTER)

    def _was_read(self, book: str, now: datetime) -> bool:
        return book in self._others and now - self._others[book][1] < _READ_AGAIN


def _is_stuck(age: timedelta) -> bool:
    rest = age % STUCK_AGAIN[-1] if age >= STUCK_AGAIN[-1] else age
    starts = (timedelta(0),) if age >= STUCK_AGAIN[-1] else (STUCK_AFTER, *STUCK_AGAIN[:-1])
    return any(start <= rest < start + STUCK_FOR for start in starts)


def _stuck_after(opened: datetime, written: datetime) -> datetime:
    """When a number is stuck for the first time after its book was written."""
    day = STUCK_AGAIN[-1]
    days = max((written - opened) // day + 1, 1)
    starts = (*(opened + start for start in (STUCK_AFTER, *STUCK_AGAIN[:-1])), opened + days * day)
    return next(start for start in starts if start > written)


def _shorten(memory: dict[str, Any], most: int) -> None:
    """Forget the oldest entries."""
    for item in [*memory][: max(len(memory) - most, 0)]:
        del memory[item]


_log = logging.getLogger(__name__)


class Books:
    """The books of this process, for the async driver. All its drivers share them.

    A timer of the event loop writes a book, with a single request at a time: numbers closed meanwhile are in the next request.
    An unanswered request may land later, over a newer book. Then the store's book proves less than is true for a while.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        within: longest time before a book that proves less than is true is written.
    """

    def __init__(
        self, perform: Callable[[Any], Awaitable[Any]], runtime: Runtime, within: timedelta = PROVED_WITHIN
    ) -> None:
        self._perform = perform
        self._runtime = runtime
        self._shelf = Shelf(runtime.new_transaction, within)
        self._writes: dict[str, asyncio.Task[bool]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._abandoned = False

    @property
    def within(self) -> timedelta:
        """Longest time before a book that proves less than is true is written."""
        return self._shelf.within

    @within.setter
    def within(self, within: timedelta) -> None:
        self._shelf.within = within

    def begin(self) -> None:
        """Begin to write the first book, while an entity is loaded. `open` waits until it is written."""
        book = self._shelf.current()
        if book.written is None and book.tried is None and not self._abandoned:
            self._written(book)

    async def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`."""
        while not self._abandoned:
            book, now = self._shelf.current(), self._runtime.now()
            if self._shelf.is_stored(book, now):
                self._wake_at(now + STUCK_AFTER, now)
                return book.open(effect, now)
            if not await asyncio.shield(self._written(book)):
                break
        return UNKNOWN

    async def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`."""
        now = self._runtime.now()
        if others := self._shelf.compare(effect, now):
            reply, now = await self._perform(ReadBooks(others)), self._runtime.now()
            self._shelf.learn(reply, now, others)
        self._plan(now)
        return self._shelf.paid(effect, now)

    async def close(self, effect: CloseNumbers) -> None:
        """Perform `CloseNumbers`."""
        now = self._runtime.now()
        self._shelf.close(effect, now)
        self._plan(now)

    async def write(self) -> None:
        """Write the books that prove less than is true, and wait for success or failure."""
        await self._written_so_far()
        for book in self._shelf.mine:
            if book.is_behind and not self._abandoned:
                self._written(book)
        await self._written_so_far()

    async def end(self) -> None:
        """Give out no more numbers of these books, and say so where no number is open. A further `open` begins a book."""
        self._shelf.retire()
        await self.write()
        self._cancel()

    def abandon(self) -> None:
        """Stop writing, as if the process had died."""
        self._abandoned = True
        self._cancel()
        for task in self._writes.values():
            task.cancel()

    def _plan(self, now: datetime) -> None:
        """Write due proofs, or set the timer for them."""
        for book in self._shelf.mine:
            at = book.proof_due(self._shelf.within)
            if at is None or self._abandoned:
                continue
            if at <= now:
                self._written(book)
            else:
                self._wake_at(at, now)

    def _wake(self) -> None:
        """Write due books, and set the timer for the next."""
        self._cancel()
        if self._abandoned:
            return
        now = self._runtime.now()
        for at, book in self._shelf.due():
            if at <= now:
                self._written(book)
            else:
                self._wake_at(at, now)

    def _wake_at(self, at: datetime, now: datetime) -> None:
        """Wake at a time, or before."""
        loop, seconds = asyncio.get_running_loop(), max((at - now).total_seconds(), 0.0)
        if self._abandoned or (self._timer is not None and self._timer.when() <= loop.time() + seconds):
            return
        self._cancel()
        self._timer = loop.call_later(seconds, self._wake)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _written(self, book: ProcessBook) -> asyncio.Task[bool]:
        """The running request that writes a book; a new request, if none is running."""
        task = self._writes.get(book.id)
        if task is None:
            task = self._writes[book.id] = asyncio.create_task(self._write(book), name="exactlyonce book")
            task.add_done_callback(lambda done: self._done(book, done))
        return task

    async def _write(self, book: ProcessBook) -> bool:
        now, closed = self._runtime.now(), book.closed
        effect = self._shelf.writing(book, now)
        reply = await self._perform(effect)
        if not isinstance(reply, Written):
            return False
        self._shelf.noted(book, effect.book, closed, now)
        return True

    def _done(self, book: ProcessBook, task: asyncio.Task[bool]) -> None:
        del self._writes[book.id]
        if self._abandoned or task.cancelled():
            return
        error = task.exception()
        if error is not None or not task.result():
            book.tried = self._runtime.now()
            _log.info(
                "the book of this process could not be written (%s)", type(error).__name__ if error else "no answer"
            )
        self._wake()

    async def _written_so_far(self) -> None:
        while self._writes:
            await asyncio.wait(self._writes.values())
            await asyncio.sleep(0)  # Their callbacks follow.


class BlockingBooks:
    """The books of this process, for the blocking driver. Without a timer, they are written during calls.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        within: longest time before a book that proves less than is true is written.
    """

    def __init__(self, perform: Callable[[Any], Any], runtime: Runtime, within: timedelta = PROVED_WITHIN) -> None:
        self._perform = perform
        self._runtime = runtime
        self._shelf = Shelf(runtime.new_transaction, within)

    def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`."""
        book = self._shelf.current()
        if not self._shelf.is_stored(book, self._runtime.now()) and not self._write(book):
            return UNKNOWN
        return book.open(effect, self._runtime.now())

    def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`."""
        others = self._shelf.compare(effect, self._runtime.now())
        if others:
            self._shelf.learn(self._perform(ReadBooks(others)), self._runtime.now(), others)
        return self._shelf.paid(effect, self._runtime.now())

    def close(self, effect: CloseNumbers) -> None:
        """Perform `CloseNumbers`."""
        self._shelf.close(effect, self._runtime.now())
        for at, book in self._shelf.due():
            if at <= self._runtime.now():
                self._write(book)

    def end(self) -> None:
        """Give out no more numbers of these books, and say so where no number is open."""
        self._shelf.retire()
        for book in self._shelf.mine:
            if book.is_behind:
                self._write(book)

    def _write(self, book: ProcessBook) -> bool:
        now, closed = self._runtime.now(), book.closed
        effect = self._shelf.writing(book, now)
        if not isinstance(self._perform(effect), Written):
            book.tried = now
            return False
        self._shelf.noted(book, effect.book, closed, now)
        return True
