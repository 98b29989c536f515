"""Effects on the library's container and on blobs: staged and parked messages, opened requests, books, pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer, Opened, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import Page
from exactlyonce.records.library import Book, ParkedMessage, RequestDocument, StagedOutputs, Unparked
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import RETENTION

NOTED_FOR: Final = int((2 * RETENTION).total_seconds())
"""Seconds for which a note replaces a parked document, unless the application has its own retention."""


@dataclass(frozen=True, slots=True)
class FoundStaged:
    """Existing staged documents, in a view at or after the requested token."""

    documents: tuple[StagedOutputs, ...]


@dataclass(frozen=True, slots=True)
class FoundParked:
    """A parked message, in whatever view answers.

    Attributes:
        message: None if absent on this replica.
        etag: condition of the deletion; None if absent.
        now: the present by the store's clock; None if absent. An operator's laptop may ask, and its clock must not decide
            whether a message is young enough to be sent again.
    """

    message: ParkedMessage | None
    etag: str | None
    now: datetime | None


@dataclass(frozen=True, slots=True)
class Written:
    """Applied. `token` includes this write."""

    token: str


@dataclass(frozen=True, slots=True)
class Stage(Effect[Written | Conflict | Literal[NoAnswer.UNKNOWN]]):
    """Create staged documents."""

    entity: EntityRef
    documents: tuple[StagedOutputs, ...]


@dataclass(frozen=True, slots=True)
class LoadStaged(Effect[FoundStaged | NoAnswer]):
    """Read staged documents, at or after `token`. Deleted documents are left out."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class DeleteStaged(Effect[None]):
    """Delete staged documents, best effort: clean-up takes the rest."""

    entity: EntityRef
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Park(Effect[Written | Literal[NoAnswer.UNKNOWN]]):
    """Upsert a parked message.

    Not a create: a message may come back while its requeuing is still under way. The new document then needs a new ETag, or
    the deletion at the end of that requeuing would take the only copy.
    """

    entity: EntityRef
    message: ParkedMessage


@dataclass(frozen=True, slots=True)
class LoadParked(Effect[FoundParked | NoAnswer]):
    """Read the parked document of a message, at or after `token` if given."""

    entity: EntityRef
    message: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Unpark(Effect[None]):
    """Replace the parked document of a message by a note, if the ETag still matches; best effort. One request.

    Attributes:
        entity: entity under which the message is parked.
        message: key of the message.
        sent: key of the message sent again; None if discarded.
        seconds: time for which the store keeps the note.
    """

    entity: EntityRef
    message: str
    etag: str
    sent: str | None = None
    seconds: int = NOTED_FOR

    @property
    def note(self) -> Unparked:
        return Unparked(self.entity.key, self.message, self.sent)


# The documents of opened requests.


class Closed(Enum):
    """The reply once the document of a request is gone."""

    CLOSED = "closed"


CLOSED: Final = Closed.CLOSED


@dataclass(frozen=True, slots=True)
class FoundRequests:
    """Existing documents of requests, in a view at `token`."""

    documents: tuple[RequestDocument, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class OpenRequest(Effect[Written | Conflict | Unknown]):
    """Create the document of a request, under a fresh id."""

    entity: EntityRef
    document: RequestDocument


@dataclass(frozen=True, slots=True)
class LoadRequests(Effect[FoundRequests | NoAnswer]):
    """Read the documents of requests, at or after `token` if given. Absent documents are left out."""

    entity: EntityRef
    requests: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class KeepAnswers(Effect[Written | Unknown]):
    """Write answers over the documents of their requests, where present.

    A view at the reply's token shows each document with its answer, or gone.
    """

    entity: EntityRef
    documents: tuple[RequestDocument, ...]


@dataclass(frozen=True, slots=True)
class CloseRequest(Effect[Closed | Unknown]):
    """Delete the document of a request, if present."""

    entity: EntityRef
    request: str


@dataclass(frozen=True, slots=True)
class DeleteRequests(Effect[None]):
    """Delete documents of requests whose ETag is still the one read, best effort.

    Attributes:
        requests: id and ETag of each.
    """

    entity: EntityRef
    requests: tuple[tuple[str, str], ...]


# Writing and deleting blobs.


class Kept(Enum):
    """Every blob exists."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class WriteOnce(Effect[Kept | Literal[NoAnswer.UNKNOWN]]):
    """Create blobs. Names are fresh, so an existing blob was written by an earlier send of the same request."""

    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class DeleteBlobs(Effect[None]):
    """Delete blobs, best effort: the rest are candidates for clean-up again."""

    names: tuple[str, ...]


# Books. Questions to this process's own book cost no request to the store.


@dataclass(frozen=True, slots=True)
class OpenNumbers(Effect[Opened | Unknown]):
    """Open numbers in the book of this process, and ask for the time. `UNKNOWN` if the store may not have the book.

    As `Begin`, it comes after everything that an attempt reads.

    Attributes:
        version: version of the ledger from which the attempt starts.
        messages: keys of the messages about to be handled, as delivered.
        more: further numbers: for stored messages, whose deliveries have ended.
    """

    entity: EntityRef
    version: int
    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many numbers are requested."""
        return len(self.messages) + self.more


@dataclass(frozen=True, slots=True)
class FindPaid(Effect[frozenset[str]]):
    """Find the transactions whose outputs are proved sent. The request carries the state of the entity's outbox.

    A number of this process, opened for a lower entity version and absent from the outbox, is closed. Either another commit
    on that version came first, so this transaction never commits; or the transaction committed, and its outputs were sent and
    its entry dropped.

    Books of other processes are read, and remembered, in two cases: a transaction of `needed` is not proved paid, or three or
    more unpaid transactions are older than a minute. An unreadable book pays nothing, at the cost of copies. An absent book
    pays attempts older than the store keeps books: the sweeper searched for their entries long ago.

    Attributes:
        version: version of the ledger, in the view that shows this outbox.
        transactions: all transactions in the outbox that are not paid.
        attempts: times of their attempts, in the same order.
        needed: the transactions whose copies are about to be acknowledged.
    """

    entity: EntityRef
    version: int
    transactions: tuple[str, ...]
    attempts: tuple[datetime, ...]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloseNumbers(Effect[None]):
    """Tell the book of this process: the outputs of these transactions were sent, or there are none."""

    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundBooks:
    """Existing books, in whatever view answers."""

    books: tuple[Book, ...]


@dataclass(frozen=True, slots=True)
class WriteBook(Effect[Written | Unknown]):
    """Write a book, unconditionally. A late write understates the truth, at the cost of copies at most.

    Attributes:
        seconds: time for which the store keeps the book.
    """

    book: Book
    seconds: int


@dataclass(frozen=True, slots=True)
class ReadBooks(Effect[FoundBooks | NoAnswer]):
    """Read books, in whatever view answers. Absent books are left out. One request."""

    books: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteSearch(Effect[None]):
    """Note the search of a book in the book, if the ETag still matches; best effort. Without the note, the search is repeated.

    Attributes:
        etag: ETag of the searched book.
        seconds: time for which the store keeps the book.
    """

    book: Book
    etag: str
    seconds: int


# Pages: the marks that have left a ledger.


class Other(Enum):
    """Another page has the number."""

    OTHER = "other"


OTHER: Final = Other.OTHER


@dataclass(frozen=True, slots=True)
class FoundPages:
    """Existing pages, in a view at or after the requested token; without `hashes` and `blobs`, since the marks suffice."""

    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class FindPages(Effect[FoundPages | NoAnswer]):
    """Read the pages that may know these messages, and the newest page, at or after `token`. One request for up to 32 messages.

    Attributes:
        times: milliseconds since 1970. A page matches if a time lies between its `begin` and `until`.
        hashes: hashes of messages. A page matches if its `hashes` include one of them.
        newest: number of the newest page.
        token: session token of the library's partition.
    """

    entity: EntityRef
    times: tuple[int, ...]
    hashes: tuple[str, ...]
    newest: int
    token: str | None

    def asks_for(self, page: Page) -> bool:
        """Whether a page matches."""
        within = any(page.begin <= time <= page.until for time in self.times)
        return within or page.number == self.newest or not set(self.hashes).isdisjoint(page.hashes)

    def found(self, pages: Iterable[Page]) -> FoundPages:
        """The reply, given all pages of the entity."""
        return FoundPages(tuple(replace(page, hashes=(), blobs=()) for page in pages if self.asks_for(page)))


@dataclass(frozen=True, slots=True)
class FindBlobs(Effect[frozenset[str] | NoAnswer]):
    """Find the transactions named among the `blobs` of any page, at or after `token`. For clean-up only."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class HasPages(Effect[bool | NoAnswer]):
    """Whether the entity has any page, at or after `token` if given, else in any view."""

    entity: EntityRef
    token: str | None = None


@dataclass(frozen=True, slots=True)
class WritePage(Effect[Written | Literal[Other.OTHER] | Unknown]):
    """Create a page. An existing page with the same name and content counts as written; another content is `OTHER`.

    Attributes:
        seconds: time for which the store keeps the page, independent of clean-up.
    """

    entity: EntityRef
    page: Page
    seconds: int


@dataclass(frozen=True, slots=True)
class FoundAbove:
    """Existing pages, each with its ETag, in a view at or after the requested token."""

    pages: tuple[tuple[Page, str], ...]


@dataclass(frozen=True, slots=True)
class FindPagesAbove(Effect[FoundAbove | NoAnswer]):
    """Read all pages with a number above `number`, at or after `token`."""

    entity: EntityRef
    number: int
    token: str | None


@dataclass(frozen=True, slots=True)
class DeletePages(Effect[None]):
    """Delete pages whose ETag is still the one read, best effort.

    Attributes:
        pages: number and ETag of each page.
    """

    entity: EntityRef
    pages: tuple[tuple[int, str], ...]
