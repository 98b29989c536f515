"""The book of a process: which of its transactions were sent, and what the books of others say of theirs.

It is in the memory of the process, and written now and then. What a book that is old, or was never written, does not prove is
sent once more, as copies. But the store has to have the book before its first number is used, or no sweeper would know of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.drivers.shelf import STUCK_AFTER, ProcessBook, Shelf
from exactlyonce.effects.books import CloseNumbers, FindPaid, Opened, OpenNumbers, ReadBooks
from exactlyonce.effects.effect import UNKNOWN, Unknown
from exactlyonce.effects.library import Written
from exactlyonce.records.books import PROVED_WITHIN

_log = logging.getLogger(__name__)


class Books:
    """The books of this process, for the async driver. All its drivers share them.

    A book is written by a timer of the event loop, and by one request at a time: what closes meanwhile is in the next one. A
    request that was not answered may land later, over a newer book. Then the store's book proves less than is true for a while.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        runtime: time and chance.
        within: time within which a book is written that proves less than is true.
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
        """Time within which a book is written that proves less than is true."""
        return self._shelf.within

    @within.setter
    def within(self, within: timedelta) -> None:
        self._shelf.within = within

    def begin(self) -> None:
        """Begin to write the first book, while an entity is loaded. Whoever opens a number waits until it is written."""
        book = self._shelf.current()
        if book.written is None and book.tried is None and not self._abandoned:
            self._written(book)

    async def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`."""
        while not self._abandoned:
            book = self._shelf.current()
            if self._shelf.is_stored(book, self._runtime.now()):
                opened = book.open(effect, self._runtime.now())
                self._wake_at(opened.at + STUCK_AFTER)
                return opened
            if not await asyncio.shield(self._written(book)):
                break
        return UNKNOWN

    async def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`."""
        others = self._shelf.compare(effect, self._runtime.now())
        if others:
            self._shelf.learn(await self._perform(ReadBooks(others)), self._runtime.now(), others)
        self._plan()
        return self._shelf.paid(effect, self._runtime.now())

    async def close(self, effect: CloseNumbers) -> None:
        """Perform `CloseNumbers`."""
        self._shelf.close(effect, self._runtime.now())
        self._plan()

    async def write(self) -> None:
        """Write the books that say less than is true, and wait until that is done or has failed."""
        await self._written_so_far()
        for book in self._shelf.mine:
            if book.is_behind and not self._abandoned:
                self._written(book)
        await self._written_so_far()

    async def end(self) -> None:
        """Give out no more numbers of these books, and say so where nothing is open. Others begin if any is asked for."""
        self._shelf.retire()
        await self.write()
        self._cancel()

    def abandon(self) -> None:
        """Write nothing any more, as if the process had died."""
        self._abandoned = True
        self._cancel()
        for task in self._writes.values():
            task.cancel()

    def _plan(self) -> None:
        """Write what is to be proved, if it is time, or see to it that it is done in time."""
        now = self._runtime.now()
        for book in self._shelf.mine:
            at = book.proof_due(self._shelf.within)
            if at is None or self._abandoned:
                continue
            if at <= now:
                self._written(book)
            else:
                self._wake_at(at)

    def _wake(self) -> None:
        """Write what is due, and wait for what is due next."""
        self._cancel()
        if self._abandoned:
            return
        now = self._runtime.now()
        for at, book in self._shelf.due():
            if at <= now:
                self._written(book)
            else:
                self._wake_at(at)

    def _wake_at(self, at: datetime) -> None:
        """Wake at a time, or before."""
        loop, seconds = asyncio.get_running_loop(), max((at - self._runtime.now()).total_seconds(), 0.0)
        if self._abandoned or (self._timer is not None and self._timer.when() <= loop.time() + seconds):
            return
        self._cancel()
        self._timer = loop.call_later(seconds, self._wake)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _written(self, book: ProcessBook) -> asyncio.Task[bool]:
        """The request under way that writes a book; a new one, if there is none."""
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
    """The books of this process, for the blocking driver. Without a timer, they are written when something is asked of them.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        runtime: time and chance.
        within: time within which a book is written that proves less than is true.
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
        """Give out no more numbers of these books, and say so where nothing is open."""
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
