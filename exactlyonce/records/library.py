"""Documents of the library's container."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.records.ledger import Page
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.records.sequences import Place
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, read_shape, write_shape

# Books: how far a process has numbered its transactions, and which of these numbers are open.
#
# A transaction id is a book and a number in it. A number is open until the outputs of its transaction were sent, or it is
# certain that the transaction was never committed. So a book proves, in one document for a process, which of its outputs were
# sent: an entry that a book pays owes nothing, whatever the entity's document says.


BOOKS: Final = "books"
"""The partition of all books. Partitions of entities are arrays of JSON, so none has this name."""
BOOK_DIGITS: Final = 20
"""Hexadecimal digits in the id of a book: 80 bits of chance."""
MOST_NUMBERS: Final = 9_999_999
"""The last number of a book. Before it is used up, another book begins."""
MOST_OPEN: Final = 1_000
"""Open numbers above which another book begins."""
KEPT_FOR: Final = timedelta(days=60)
"""Time for which the store keeps a book after it was written."""
PROVED_WITHIN: Final = timedelta(minutes=10)
"""Time within which a process writes its book, if that proves less than is true."""
SILENT: Final = timedelta(minutes=1)
"""Time beyond that after which a book is silent: its process may have died."""
SEARCHED_AGAIN: Final = (timedelta(hours=1), timedelta(days=1))
"""Times after the first search of a silent book at which it is searched again: a save may land late."""
_NUMBER: Final = 7


@dataclass(frozen=True, slots=True)
class Search:
    """Transactions of a book whose outputs may not have been sent.

    Attributes:
        book: their book.
        above: all numbers above it are among them; None if none is.
        numbers: that are among them, too.
    """

    book: str
    above: int | None
    numbers: tuple[int, ...]

    @property
    def range(self) -> tuple[str, str] | None:
        """Every transaction between these two is meant; None if there is no such range."""
        return None if self.above is None else (transaction(self.book, self.above), f"{self.book}.~")

    @property
    def transactions(self) -> tuple[str, ...]:
        """The single ones."""
        return tuple(transaction(self.book, number) for number in self.numbers)

    def asks_for(self, tx: str) -> bool:
        """Whether a transaction is among them."""
        book, number = number_of(tx)
        return book == self.book and (number in self.numbers or (self.above is not None and number > self.above))


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Book:
    """What a process says of its transactions.

    Attributes:
        id: of the book.
        used: the last number that was given out.
        open: numbers up to that whose outputs may not have been sent.
        stuck: those of them that are to be searched though the process is alive.
        ended: whether nothing of it is under way, nor ever will be.
        within: seconds within which the process writes it again, if it proves less than is true.
        searched: when the sweeper searched all that it does not prove, since the process wrote it; in seconds since 1970.
        written: when the process wrote it, if the sweeper has written it since; 0 if it has not.
    """

    id: str
    used: int = 0
    open: tuple[int, ...] = ()
    stuck: Annotated[tuple[int, ...], absent_if(())] = ()
    ended: Annotated[bool, absent_if(False)] = False
    within: int = int(PROVED_WITHIN.total_seconds())
    searched: Annotated[tuple[int, ...], absent_if(())] = ()
    written: Annotated[int, absent_if(0)] = 0
    kind: Literal["book"] = "book"
    schema: int = SCHEMA

    def pays(self, number: int) -> bool:
        """Whether the outputs of a transaction of this book were sent."""
        return 0 < number <= self.used and number not in self.open

    def searched_at(self, written: int) -> int | None:
        """When all that it does not prove is to be searched, in seconds since 1970; None if never again.

        Args:
            written: when the process wrote it.
        """
        if self.ended or len(self.searched) > len(SEARCHED_AGAIN):
            return None
        if not self.searched:
            return written + self.within + int(SILENT.total_seconds())
        return self.searched[0] + int(SEARCHED_AGAIN[len(self.searched) - 1].total_seconds())

    def search(self, written: int, now: datetime) -> Search | None:
        """What is to be searched now; None if nothing is."""
        at = self.searched_at(written)
        if at is not None and at <= now.timestamp():
            return Search(self.id, self.used, self.open)
        return Search(self.id, None, self.stuck) if self.stuck else None

    def after(self, search: Search, written: int, now: datetime) -> Book:
        """The book once the search is done."""
        searched = self.searched if search.above is None else (*self.searched, int(now.timestamp()))
        return replace(self, stuck=(), searched=searched, written=written)


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


UNPARKED: Final = "unparked"
"""Kind of what takes the place of a parked document."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StagedOutputs:
    """Messages that an entity keeps until they are due, written before the commit that may or may not follow."""

    entity: str
    message: str
    tx: str
    at: datetime
    outputs: tuple[Output, ...]
    kind: Literal["staged"] = "staged"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ParkedMessage:
    """A message that the host gave up on and that was never processed: kept until an operator has repaired the cause.

    Attributes:
        entity: key of the entity that it is for.
        message: key of the message.
        reason: why it cannot be processed. For people and logs, so never a part of the body.
        at: when it was parked, by the clock of its process. A new message that it is made has this time, or one that derives
            from it.
        envelope: as it came, or was to leave; a string in documents.
        destination: where an output was to go that was too old to be published; None for a message that came.
        renewed: time of the new message that it was made; None if it has the identity it came with.
        place: in its channel, as it says; None if it has none, or says one that cannot be.
    """

    entity: str
    message: str
    reason: str
    at: datetime
    envelope: Json
    destination: str | None = None
    renewed: datetime | None = None
    place: Place | None = None
    kind: Literal["parked"] = "parked"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Unparked:
    """What is left of a message that is parked no longer, so that an audit does not call it lost.

    Attributes:
        entity: key of the entity under which it was parked.
        message: key of the message.
        sent: key under which it was sent again: its own, or that of the new message it was made; None if it was discarded.
    """

    entity: str
    message: str
    sent: Annotated[str | None, absent_if(None)] = None
    kind: Literal["unparked"] = UNPARKED
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class RequestDocument:
    """A request that a caller opened: its message, and then its answer. It stays until its caller closes it.

    Attributes:
        entity: key of the entity that it is for.
        request: its id, which was made when it was opened.
        at: when it was opened, or carried out. Never used to judge age.
        envelope: the message, a string in documents; None once there is an answer.
        answer: of the commit that carried it out; None while it is open.
    """

    entity: str
    request: str
    at: datetime
    envelope: Json | None
    answer: Answer | None
    kind: Literal["request"] = "request"
    schema: int = SCHEMA


LibraryRecord = StagedOutputs | ParkedMessage | Unparked | RequestDocument | Page | Book
"""What lies in the library container."""


def read_staged(document: Any) -> StagedOutputs:
    """Read a staged document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(StagedOutputs, document, "A staged document")


def read_parked(document: Any) -> ParkedMessage:
    """Read a parked document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(ParkedMessage, document, "A parked document")


def read_request(document: Any) -> RequestDocument:
    """Read the document of a request. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(RequestDocument, document, "The document of a request")


def library_document(record: LibraryRecord) -> dict[str, Any]:
    """A record as a document of the library container, without the id and partition key its layout gives it."""
    return write_shape(record)
