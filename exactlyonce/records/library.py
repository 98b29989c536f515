"""Documents of the library's container: books, staged and parked messages, opened requests; pages are in `ledger`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.records.ledger import Page
from exactlyonce.records.outbox import Answer, Output, Place, number_of, transaction
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, read_shape, write_shape

# Books: one document for a process proves which outputs were sent, whatever the entities' documents say.


BOOKS: Final = "books"
"""The partition of all books. Partitions of entities are arrays of JSON, so none has this name."""
BOOK_DIGITS: Final = 20
"""Hexadecimal digits in the id of a book: 80 bits of chance."""
MOST_NUMBERS: Final = 9_999_999
"""The last number of a book. Another book begins before."""
MOST_OPEN: Final = 1_000
"""Open numbers above which another book begins."""
KEPT_FOR: Final = timedelta(days=60)
"""Time for which the store keeps a book after each write."""
PROVED_WITHIN: Final = timedelta(minutes=10)
"""Time within which a process writes its book, if the stored book proves less than is true."""
SILENT: Final = timedelta(minutes=1)
"""Further time after which a book is silent: its process may have died."""
SEARCHED_AGAIN: Final = (timedelta(hours=1), timedelta(days=1))
"""Times after the first search of a silent book for further searches: a save may land late."""


@dataclass(frozen=True, slots=True)
class Search:
    """Transactions of a book whose outputs may not have been sent.

    Attributes:
        book: the book of the transactions.
        above: every higher number belongs to the search; None without an open range.
        numbers: further single numbers.
    """

    book: str
    above: int | None
    numbers: tuple[int, ...]

    @property
    def range(self) -> tuple[str, str] | None:
        """First and last name of the open range; None without one."""
        return None if self.above is None else (transaction(self.book, self.above), f"{self.book}.~")

    @property
    def transactions(self) -> tuple[str, ...]:
        """The single transactions."""
        return tuple(transaction(self.book, number) for number in self.numbers)

    def asks_for(self, tx: str) -> bool:
        """Whether a transaction belongs to the search."""
        book, number = number_of(tx)
        return book == self.book and (number in self.numbers or (self.above is not None and number > self.above))


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Book:
    """A process's statement about its transactions.

    Attributes:
        id: id of the book.
        used: the last number given out.
        open: numbers up to `used` whose outputs may not have been sent.
        stuck: open numbers to be searched although the process is alive.
        ended: whether no transaction of the book is under way, or ever will be.
        within: seconds within which the process writes the book again, if the stored book proves less than is true.
        searched: times at which the sweeper searched everything unproved, since the process's last write; in seconds since
            1970.
        written: time of the process's last write, if the sweeper has written since; else 0.
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
        """Time of the next search for everything unproved, in seconds since 1970; None if never again.

        Args:
            written: time of the process's last write.
        """
        if self.ended or len(self.searched) > len(SEARCHED_AGAIN):
            return None
        if not self.searched:
            return written + self.within + int(SILENT.total_seconds())
        return self.searched[0] + int(SEARCHED_AGAIN[len(self.searched) - 1].total_seconds())

    def search(self, written: int, now: datetime) -> Search | None:
        """The search due now; None if there is none."""
        at = self.searched_at(written)
        if at is not None and at <= now.timestamp():
            return Search(self.id, self.used, self.open)
        return Search(self.id, None, self.stuck) if self.stuck else None

    def after(self, search: Search, written: int, now: datetime) -> Book:
        """The book once the search is done."""
        searched = self.searched if search.above is None else (*self.searched, int(now.timestamp()))
        return replace(self, stuck=(), searched=searched, written=written)


def read_book(document: Any) -> Book:
    """Read a book. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Book, document, "A book")


UNPARKED: Final = "unparked"
"""Kind of the note that replaces a parked document."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StagedOutputs:
    """Messages to keep until due, written before a commit that may or may not follow."""

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
    """An unprocessed message given up by the host: stored until an operator has repaired the cause.

    Attributes:
        entity: key of the receiving entity.
        message: key of the message.
        reason: why processing failed. For people and logs, so never a part of the body.
        at: time of parking, by the clock of the process. A renewed message has this time, or a time derived from it.
        envelope: the envelope as received, or as about to leave; a string in documents.
        destination: destination of an output too old to be published; None for a received message.
        renewed: time of the renewed message; None while the message has its first identity.
        place: place stated by the message; None without a valid place.
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
    """A note in place of a parked message sent or discarded, so that an audit does not report a loss.

    Attributes:
        entity: key of the entity under which the message was parked.
        message: key of the message.
        sent: key of the message sent again: the same, or the renewed one; None if discarded.
    """

    entity: str
    message: str
    sent: Annotated[str | None, absent_if(None)] = None
    kind: Literal["unparked"] = UNPARKED
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class RequestDocument:
    """A request opened by a caller: first the message, then the answer. The document stays until the caller closes the request.

    Attributes:
        entity: key of the receiving entity.
        request: id of the request, made when opened.
        at: time of opening, or of the commit. Never used to judge age.
        envelope: the message, a string in documents; None once there is an answer.
        answer: answer of the commit; None while open.
    """

    entity: str
    request: str
    at: datetime
    envelope: Json | None
    answer: Answer | None
    kind: Literal["request"] = "request"
    schema: int = SCHEMA


LibraryRecord = StagedOutputs | ParkedMessage | Unparked | RequestDocument | Page | Book
"""Documents of the library container."""


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
    """A record as a document of the library container, without id and partition key, which the layout adds."""
    return write_shape(record)
