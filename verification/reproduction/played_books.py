"""The books of a process as they ship, but for what the model leaves out: time, and what was read that nobody asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from exactlyonce.drivers.book import Books, Shelf
from exactlyonce.drivers.runtime import Clock, Runtime, SystemClock
from exactlyonce.effects.effect import UNKNOWN, Opened, Unknown
from exactlyonce.effects.library import FindPaid, OpenNumbers, WriteBook, Written
from exactlyonce.records.outbox import number_of, transaction
from verification.world.scenario import AT

_LATER: Final = AT + timedelta(days=10)
"""So late that transactions are old, and not so late that their books are gone. Books are written as traces say."""


class _Late(SystemClock):
    """A clock that stands still."""

    def now(self) -> datetime:
        return _LATER


class PlayedBooks(Books):
    """The books of one process.

    Args:
        perform: performs `WriteBook` and `ReadBooks`.
        new: makes unique ids.
        clock: the present of the process.
        shelf: `Shelf`, or a broken twin of it.

    Attributes:
        given: the transactions that were given out since the last step, in their order.
        paid: the reply to the last `FindPaid`.
    """

    def __init__(
        self, perform: Callable[[Any], Awaitable[Any]], new: Callable[[], str], clock: Clock, shelf: type[Shelf]
    ) -> None:
        runtime = Runtime(_Late(), Random(0), new)
        super().__init__(perform, runtime)
        self._shelf = shelf(new, self.within)
        self._clock = clock
        self.given: list[str] = []
        self.paid: frozenset[str] = frozenset()

    @property
    def open_now(self) -> frozenset[str]:
        """The transactions that are open."""
        return frozenset(transaction(book.id, number) for book in self._shelf.mine for number in book._open)  # noqa: SLF001

    async def open(self, effect: OpenNumbers) -> Opened | Unknown:
        """Perform `OpenNumbers`, at the present of the process."""
        opened = await super().open(effect)
        if not isinstance(opened, Opened):
            return opened
        self.given += opened.given
        return replace(opened, at=self._clock.now())

    async def find_paid(self, effect: FindPaid) -> frozenset[str]:
        """Perform `FindPaid`. Of what was read of other books nothing is kept but what is asked about, as in the model."""
        self.paid = await super().find_paid(effect)
        self._shelf._others.clear()  # noqa: SLF001
        mine = {book.id for book in self._shelf.mine}
        self._shelf._paid.update(dict.fromkeys(sorted(tx for tx in self.paid if number_of(tx)[0] not in mine)))  # noqa: SLF001
        return self.paid

    def known(self, transactions: tuple[str, ...]) -> frozenset[str]:
        """Those of the transactions that the process knows to be paid."""
        return frozenset(filter(self._shelf.pays, transactions))

    async def write_down(self, perform: Callable[[WriteBook], Awaitable[Written | Unknown]]) -> Written | Unknown:
        """Write the book as it is now, whether it is due or not."""
        book, now = self._shelf.current(), self._runtime.now()
        closed, effect = book.closed, self._shelf.writing(book, now)
        reply = await perform(effect)
        if reply is not UNKNOWN:
            self._shelf.noted(book, effect.book, closed, now)
        return reply

    def is_there(self) -> None:
        """The store has the book, though that was not answered. The model spares a second writing, which says the same."""
        book, now = self._shelf.current(), self._runtime.now()
        self._shelf.noted(book, self._shelf.writing(book, now).book, book.closed, now)
