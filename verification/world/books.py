"""Processes and their books: which transactions each has numbered, closed and written down, and what each knows of others.

Of numbers that nothing refers to any more nothing is kept, and they are given out again. So a state says for each number that
is left whether its process holds it open, and what each writing of its book says of it: that it is open, that it is paid, or,
of one that was given out later, nothing.
"""
# ruff: noqa: SLF001  # A shelf is made as drivers would have it after any number of requests.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import count, islice, product
from typing import Final

from exactlyonce.drivers.book import ProcessBook, Shelf
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundBooks, OpenNumbers
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import number_of, transaction

_SOME_TIME: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
_LATER: Final = _SOME_TIME + timedelta(days=10_000)
"""So late that all transactions are old."""
_WITHIN: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class BookWritten:
    """One writing of a book."""

    open: frozenset[int] = frozenset()
    paid: frozenset[int] = frozenset()

    def within(self, numbers: frozenset[int]) -> BookWritten:
        return BookWritten(self.open & numbers, self.paid & numbers)


@dataclass(frozen=True, slots=True)
class BookState:
    """A process's book: in its memory, and in the store.

    Attributes:
        open: the numbers that are open: each with the key of its entity, and the version of its ledger that it was opened for.
        known: transactions of others that the process knows to be paid.
    """

    id: str
    open: tuple[tuple[int, str, int], ...] = ()
    closed: frozenset[int] = frozenset()
    known: frozenset[str] = frozenset()
    written: tuple[BookWritten, ...] = ()
    lives: bool = True

    @property
    def now(self) -> BookWritten:
        return BookWritten(frozenset(number for number, _, _ in self.open), self.closed)

    @property
    def numbers(self) -> frozenset[int]:
        said = self.now
        return said.open | said.paid | frozenset().union(*(item.open | item.paid for item in self.written))

    def opened(self, effect: OpenNumbers, numbers: tuple[int, ...] | None = None) -> tuple[BookState, tuple[str, ...]]:
        """The book once it has given out numbers, and the transactions.

        Args:
            numbers: to give out, though it may have given them out before; None for numbers of which it keeps nothing.
        """
        if numbers is None:
            taken = self.numbers
            numbers = tuple(islice((item for item in count(1) if item not in taken), effect.count))
        fresh = ((number, effect.entity.key, effect.version) for number in numbers)
        still = (item for item in self.open if item[0] not in numbers)
        opened = tuple(sorted((*still, *fresh)))
        book = replace(self, open=opened, closed=self.closed.difference(numbers), lives=True)
        return book, tuple(transaction(self.id, number) for number in numbers)

    def wrote(self, value: BookWritten) -> BookState:
        return replace(self, written=(*(item for item in self.written if item != value), value))

    def within(self, used: frozenset[str]) -> BookState:
        """The book without what it says of transactions that nothing refers to."""
        numbers = frozenset(number for book, number in map(number_of, used) if book == self.id)
        if numbers >= self.numbers and used >= self.known:
            return self
        written = dict.fromkeys(item.within(numbers) for item in reversed(self.written))
        return replace(
            self,
            open=tuple(item for item in self.open if item[0] in numbers),
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
    return next((book for book in books if book.id == id), BookState(id))


def with_book(books: Books, book: BookState) -> Books:
    return tuple(sorted((*(item for item in books if item.id != book.id), book), key=lambda item: item.id))


def fresh_id(books: Books) -> str:
    taken = {book.id for book in books}
    return next(id for number in range(len(taken) + 1) if (id := f"b{number}") not in taken)


class Clerk:
    """What a driver does with books, by the code that ships.

    Args:
        shelf: `Shelf`, or a broken twin of it.
        process_book: `ProcessBook`, or a broken twin of it.
        book: `Book`, or a broken twin of it.
    """

    def __init__(
        self, shelf: type[Shelf] = Shelf, process_book: type[ProcessBook] = ProcessBook, book: type[Book] = Book
    ) -> None:
        self._shelf = shelf
        self._process_book = process_book
        self._book = book

    def closed(self, book: BookState, effect: CloseNumbers) -> BookState:
        """The book once outputs of transactions were sent, or are known to be none."""
        shelf = self._shelf_with(book)
        shelf.close(effect, _LATER)
        return _as_on(shelf, book)

    def compared(self, book: BookState, effect: FindPaid) -> tuple[BookState, tuple[str, ...]]:
        """The book once it was told what the outbox of an entity holds, and the books of others that are to be read."""
        shelf = self._shelf_with(book)
        others = shelf.compare(effect, _LATER)
        return _as_on(shelf, book), others

    def paid(self, book: BookState, transactions: tuple[str, ...]) -> frozenset[str]:
        return frozenset(filter(self._shelf_with(book).pays, transactions))

    def looks(
        self, books: Books, ids: tuple[str, ...], transactions: tuple[str, ...]
    ) -> Iterator[tuple[frozenset[str], bool]]:
        """What reads of books may prove of transactions, the newest view first, each with whether it is old."""
        written = [(None, *book_in(books, id).written) for id in ids]
        for views in product(*(tuple(reversed(item)) for item in written)):
            read = dict(zip(ids, views, strict=True))
            proved = frozenset(tx for tx in transactions if number_of(tx)[0] in read and self.proves(read, tx))
            yield proved, any(view is not versions[-1] for view, versions in zip(views, written, strict=True))

    def proves(self, read: Mapping[str, BookWritten | None], tx: str) -> bool:
        name, number = number_of(tx)
        written = read[name]
        if written is None:
            return False
        used = number if number in written.open | written.paid else number - 1
        shelf = self._shelf(str, _WITHIN)
        shelf.learn(FoundBooks((self._book(name, used, tuple(sorted(written.open))),)), _LATER)
        return shelf.pays(tx)

    def _shelf_with(self, book: BookState) -> Shelf:
        own = self._process_book(book.id, "")
        own._used = max(book.numbers, default=0)
        for number, entity, version in book.open:
            own._open[number] = _SOME_TIME
            own._entity[number] = entity
            own._begun[entity][number] = version
        shelf = self._shelf(str, _WITHIN)
        shelf._mine[book.id] = own
        shelf._paid.update(dict.fromkeys(sorted(book.known)))
        return shelf


def _as_on(shelf: Shelf, book: BookState) -> BookState:
    open = shelf._mine[book.id]._open
    gone = frozenset(item[0] for item in book.open if item[0] not in open)
    still = tuple(item for item in book.open if item[0] in open)
    return replace(book, open=still, closed=book.closed | gone, known=frozenset(shelf._paid))
