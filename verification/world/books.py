"""Processes and their books: which transactions each has numbered, closed and written down, and what each knows of others.

Of numbers that nothing refers to any more nothing is kept, and they are given out again. So a state says for each number that is
left whether its process holds it open, and what each writing of its book says of it: that it is open, that it is paid, or, of one
that was given out later, nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import product
from typing import Final

from exactlyonce.drivers.book import _UNPAID, ProcessBook
from exactlyonce.effects.books import FindPaid, OpenNumbers
from exactlyonce.records.books import Book, books_of, number_of, transaction

_SOME_TIME: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class BookWritten:
    """One writing of a book.

    Attributes:
        open: the numbers that it says are open.
        paid: the numbers that it proves to be paid.
    """

    open: frozenset[int] = frozenset()
    paid: frozenset[int] = frozenset()

    def within(self, numbers: frozenset[int]) -> BookWritten:
        """What it says of some numbers."""
        return BookWritten(self.open & numbers, self.paid & numbers)


@dataclass(frozen=True, slots=True)
class BookState:
    """A process's book: in its memory, and in the store.

    Attributes:
        id: of the book.
        open: the numbers that are open: each with the key of its entity, and the version of its ledger that it was opened for.
        closed: the numbers that are closed.
        known: transactions of others that the process knows to be paid.
        written: what was ever written, the latest last.
        lives: whether its process does.
    """

    id: str
    open: tuple[tuple[int, str, int], ...] = ()
    closed: frozenset[int] = frozenset()
    known: frozenset[str] = frozenset()
    written: tuple[BookWritten, ...] = ()
    lives: bool = True

    @property
    def now(self) -> BookWritten:
        """What would be written now."""
        return BookWritten(frozenset(number for number, _, _ in self.open), self.closed)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of which anything is kept."""
        said = self.now
        return said.open | said.paid | frozenset().union(*(one.open | one.paid for one in self.written))

    def opened(self, effect: OpenNumbers) -> tuple[BookState, tuple[str, ...]]:
        """The book once it has given out numbers, and the transactions."""
        taken, numbers = self.numbers, []
        number = 0
        while len(numbers) < effect.count:
            number += 1
            if number not in taken:
                numbers.append(number)
        fresh = ((one, effect.entity.key, effect.version) for one in numbers)
        opened = tuple(sorted((*self.open, *fresh)))
        return replace(self, open=opened, lives=True), tuple(transaction(self.id, one) for one in numbers)

    def wrote(self, value: BookWritten) -> BookState:
        """The book once this was written."""
        return replace(self, written=(*(one for one in self.written if one != value), value))

    def within(self, used: frozenset[str]) -> BookState:
        """The book without what it says of transactions that nothing refers to."""
        numbers = frozenset(number for book, number in map(number_of, used) if book == self.id)
        if numbers >= self.numbers and used >= self.known:
            return self
        written = dict.fromkeys(one.within(numbers) for one in reversed(self.written))
        return replace(
            self,
            open=tuple(one for one in self.open if one[0] in numbers),
            closed=self.closed & numbers,
            known=self.known & used,
            written=tuple(reversed(written)),
        )

    def dead(self) -> BookState:
        """The book when its process has crashed: what was written stays."""
        return BookState(self.id, written=self.written, lives=False)


Books = tuple[BookState, ...]


def book_in(books: Books, id: str) -> BookState:
    """The book with this id; one that says nothing if there is none."""
    return next((one for one in books if one.id == id), BookState(id))


def with_book(books: Books, book: BookState) -> Books:
    """The books with this one in place of what it was."""
    return tuple(sorted((*(one for one in books if one.id != book.id), book), key=lambda one: one.id))


def fresh_id(books: Books) -> str:
    """An id that no book has."""
    taken = {one.id for one in books}
    return next(id for number in range(len(taken) + 1) if (id := f"b{number}") not in taken)


class Clerk:
    """What a driver does with books, by the code that ships.

    Args:
        process_book: `ProcessBook`, or a broken twin of it.
        book: `Book`, or a broken twin of it.
    """

    def __init__(self, process_book: type[ProcessBook] = ProcessBook, book: type[Book] = Book) -> None:
        self._process_book = process_book
        self._book = book

    def closed(self, book: BookState, transactions: tuple[str, ...]) -> BookState:
        """The book once outputs of transactions were sent, or are known to be none."""
        own = self._process(book)
        for tx in transactions:
            name, number = number_of(tx)
            if name == book.id:
                own.close(number)
        known = book.known.union(tx for tx in transactions if number_of(tx)[0] != book.id)
        return self._with(replace(book, known=known), own)

    def compared(self, book: BookState, effect: FindPaid) -> BookState:
        """The book once it was told what the outbox of an entity holds."""
        own = self._process(book)
        own.compare(effect.entity.key, effect.version, effect.transactions)
        return self._with(book, own)

    def paid(self, book: BookState, transactions: tuple[str, ...]) -> frozenset[str]:
        """Those of the transactions that the process knows to be paid."""
        own = self._process(book)
        numbers = ((tx, *number_of(tx)) for tx in transactions)
        return frozenset(tx for tx, name, number in numbers if (own.pays(number) if name == book.id else tx in book.known))

    def asks(self, book: BookState, effect: FindPaid) -> tuple[str, ...]:
        """The books of others that a driver reads."""
        unpaid = [tx for tx in effect.transactions if tx not in self.paid(book, effect.transactions)]
        if len(unpaid) < _UNPAID and {*unpaid}.isdisjoint(effect.needed):
            return ()
        return tuple(name for name in books_of(unpaid) if name != book.id)

    def looks(self, books: Books, ids: tuple[str, ...], transactions: tuple[str, ...]) -> Iterator[tuple[frozenset[str], bool]]:
        """What reads of books may prove of transactions, the newest view first, each with whether it is old."""
        written = [(None, *book_in(books, id).written) for id in ids]
        for views in product(*(tuple(reversed(one)) for one in written)):
            read = dict(zip(ids, views, strict=True))
            proved = frozenset(tx for tx in transactions if self._proves(read, tx))
            yield proved, any(view is not versions[-1] for view, versions in zip(views, written, strict=True))

    def _proves(self, read: dict[str, BookWritten | None], tx: str) -> bool:
        name, number = number_of(tx)
        written = read.get(name)
        if written is None:
            return False
        used = number if number in written.open | written.paid else number - 1
        return self._book(name, used, tuple(sorted(written.open))).pays(number)

    def _process(self, book: BookState) -> ProcessBook:
        """The book as drivers have it."""
        own = self._process_book(book.id, "")
        own._used = max(book.numbers, default=0)
        for number, entity, version in book.open:
            own._open[number] = _SOME_TIME
            own._entity[number] = entity
            own._begun[entity][number] = version
        return own

    def _with(self, book: BookState, own: ProcessBook) -> BookState:
        still = tuple(one for one in book.open if one[0] in own._open)
        gone = frozenset(one[0] for one in book.open if one[0] not in own._open)
        return replace(book, open=still, closed=book.closed | gone) if gone else book
