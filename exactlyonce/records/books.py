"""Books: how far a process has numbered its transactions, and which of these numbers are open.

A transaction id is a book and a number in it. A number is open until the outputs of its transaction were sent, or it is certain
that the transaction was never committed. So a book proves, in one document for a process, which of its outputs were sent: an
entry that a book pays owes nothing, whatever the entity's document says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, read_shape

BOOKS: Final = "books"
"""The partition of all books. Partitions of entities are arrays of JSON, so none has this name."""
BOOK_DIGITS: Final = 20
"""Hexadecimal digits in the id of a book: 80 bits of chance."""
MOST_NUMBERS: Final = 9_999_999
"""The last number of a book. Before it is used up, another book begins."""
MOST_OPEN: Final = 1_000
"""Open numbers above which another book begins."""
_NUMBER: Final = 7


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Book:
    """What a process says of its transactions.

    Attributes:
        id: of the book.
        used: the last number that was given out.
        open: numbers up to that whose outputs may not have been sent.
        stuck: those of them that have been open for long.
        ended: whether the process ended in order, so that nothing of it is under way.
    """

    id: str
    used: int = 0
    open: tuple[int, ...] = ()
    stuck: Annotated[tuple[int, ...], absent_if(())] = ()
    ended: Annotated[bool, absent_if(False)] = False
    kind: Literal["book"] = "book"
    schema: int = SCHEMA

    def pays(self, number: int) -> bool:
        """Whether the outputs of a transaction of this book were sent."""
        return number <= self.used and number not in self.open


def transaction(book: str, number: int) -> str:
    """The id of a transaction. Those of one book are in the order of their numbers."""
    return f"{book}.{number:0{_NUMBER}d}"


def number_of(tx: str) -> tuple[str, int]:
    """Book and number of a transaction; the number of what is none is 0, which no book pays."""
    book, _, number = tx.partition(".")
    return book, int(number) if number.isdecimal() else 0


def books_of(transactions: Iterable[str]) -> tuple[str, ...]:
    """The books of transactions, each once."""
    return tuple(dict.fromkeys(number_of(tx)[0] for tx in transactions))


def read_book(document: Any) -> Book:
    """Read a book. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Book, document, "A book")
