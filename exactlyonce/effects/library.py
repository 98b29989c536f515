"""Requests to the library's partition of an entity: staged messages, parked messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import Page
from exactlyonce.records.library import Book, Opened, ParkedMessage, RequestDocument, StagedOutputs, Unparked
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import RETENTION

NOTED_FOR: Final = int((2 * RETENTION).total_seconds())
"""Seconds for which a note of a message that is parked no longer stays, unless the application's retention is another."""


@dataclass(frozen=True, slots=True)
class FoundStaged:
    """The staged documents that exist, in a view at or after the token asked with."""

    documents: tuple[StagedOutputs, ...]


@dataclass(frozen=True, slots=True)
class FoundParked:
    """A parked message, in whatever view answers.

    Attributes:
        message: None if this replica has no such document.
        etag: what its deletion is conditional on; None if absent.
        now: the present by the store's clock; None if absent. An operator's laptop may ask, and its clock would decide how old
            a message may be that is sent again.
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
    """Read staged documents, at or after `token`. Those that are gone are left out of the reply."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class DeleteStaged(Effect[None]):
    """Delete staged documents, best effort: whatever remains is clean-up's."""

    entity: EntityRef
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Park(Effect[Written | Literal[NoAnswer.UNKNOWN]]):
    """Upsert a parked message.

    Not a create: a message that comes back while its requeuing is still under way has to get a new ETag, or the deletion
    at the end of that requeuing would take the only copy there is.
    """

    entity: EntityRef
    message: ParkedMessage


@dataclass(frozen=True, slots=True)
class LoadParked(Effect[FoundParked | NoAnswer]):
    """Read the parked document of a message; at or after `token`, if one is given."""

    entity: EntityRef
    message: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Unpark(Effect[None]):
    """Put a note in the place of the parked document of a message, if that still has this ETag; best effort. One request.

    Attributes:
        entity: under which it is parked.
        message: key of the message.
        etag: of its document, as it was read.
        sent: key under which it was sent again; None if it was discarded.
        seconds: for which the store is to keep the note.
    """

    entity: EntityRef
    message: str
    etag: str
    sent: str | None = None
    seconds: int = NOTED_FOR

    @property
    def note(self) -> Unparked:
        """What stays."""
        return Unparked(self.entity.key, self.message, self.sent)


# Requests to the library's partition of an entity: the documents of requests that callers opened.


class Closed(Enum):
    """The reply when the document of a request is gone."""

    CLOSED = "closed"


CLOSED: Final = Closed.CLOSED


@dataclass(frozen=True, slots=True)
class FoundRequests:
    """The documents of requests that exist, in a view that is at `token`."""

    documents: tuple[RequestDocument, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class OpenRequest(Effect[Written | Conflict | Unknown]):
    """Create the document of a request. Its id is fresh."""

    entity: EntityRef
    document: RequestDocument


@dataclass(frozen=True, slots=True)
class LoadRequests(Effect[FoundRequests | NoAnswer]):
    """Read the documents of these requests, at or after `token`, if one is given. Absent ones are left out."""

    entity: EntityRef
    requests: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class KeepAnswers(Effect[Written | Unknown]):
    """Write these over the documents of their requests, as far as they are there.

    The token of the reply shows each of them with its answer, or gone.
    """

    entity: EntityRef
    documents: tuple[RequestDocument, ...]


@dataclass(frozen=True, slots=True)
class CloseRequest(Effect[Closed | Unknown]):
    """Delete the document of a request, if it is there."""

    entity: EntityRef
    request: str


@dataclass(frozen=True, slots=True)
class DeleteRequests(Effect[None]):
    """Delete documents of requests that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose partition they lie in.
        requests: id and ETag of each.
    """

    entity: EntityRef
    requests: tuple[tuple[str, str], ...]


# Writing and deleting blobs.


class Kept(Enum):
    """Every blob is there."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class WriteOnce(Effect[Kept | Literal[NoAnswer.UNKNOWN]]):
    """Create blobs. One that exists was written by an earlier send of the same request, since names are fresh."""

    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class DeleteBlobs(Effect[None]):
    """Delete blobs, best effort: what remains is a candidate for clean-up again."""

    names: tuple[str, ...]


# Requests to the book of this process, and for the books of all.
#
# What the book of this process is asked, and told, costs no request of the store: the process knows it.


@dataclass(frozen=True, slots=True)
class OpenNumbers(Effect[Opened | Unknown]):
    """Open numbers in the book of this process, and ask for the time. `UNKNOWN` if the store may not have the book.

    As `Begin`, it comes after everything that an attempt reads.

    Attributes:
        entity: that the transactions are on.
        version: of its ledger, as the attempt starts from it.
        messages: keys of the messages that are about to be handled, as they were delivered.
        more: how many numbers are wanted besides: for messages that the store holds, whose deliveries are over.
    """

    entity: EntityRef
    version: int
    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many numbers are asked for."""
        return len(self.messages) + self.more


@dataclass(frozen=True, slots=True)
class FindPaid(Effect[frozenset[str]]):
    """Those of the transactions whose outputs are known to be sent. It is told what the entity's outbox holds.

    A number of this process that was opened for a lower version of the entity, and that the outbox does not hold, is closed: a
    commit on that version came first, so this one never comes; or it came, and somebody sent its outputs and dropped its entry.

    Books of other processes are read, and remembered, if one of `needed` is not known to be paid, or three or more that are
    older than a minute. What cannot be read pays nothing, which costs copies at most. One that is not there pays an attempt
    that is older than the store keeps books: the sweeper searched for its entry long ago.

    Attributes:
        entity: whose outbox it is.
        version: of its ledger, in the view that shows this.
        transactions: all that the outbox holds and that are not paid.
        attempts: when their attempts were made, in the same order.
        needed: those of them that a copy is about to be acknowledged for.
    """

    entity: EntityRef
    version: int
    transactions: tuple[str, ...]
    attempts: tuple[datetime, ...]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloseNumbers(Effect[None]):
    """Tell the book of this process that the outputs of transactions were sent, or that they have none."""

    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundBooks:
    """The books that exist, in whatever view answers."""

    books: tuple[Book, ...]


@dataclass(frozen=True, slots=True)
class WriteBook(Effect[Written | Unknown]):
    """Write a book over what there is of it. One that lands late says less than is true, which costs copies at most.

    Attributes:
        book: what to write.
        seconds: for which the store is to keep it.
    """

    book: Book
    seconds: int


@dataclass(frozen=True, slots=True)
class ReadBooks(Effect[FoundBooks | NoAnswer]):
    """Read books, in whatever view answers. Absent ones are left out. One request."""

    books: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteSearch(Effect[None]):
    """Write into a book that it was searched, if it still has this ETag, best effort. Otherwise it is searched once more.

    Attributes:
        book: what to write.
        etag: of the book that was searched.
        seconds: for which the store is to keep it.
    """

    book: Book
    etag: str
    seconds: int


# Requests for pages: the marks that have left a ledger.


class Other(Enum):
    """Another page has the number."""

    OTHER = "other"


OTHER: Final = Other.OTHER


@dataclass(frozen=True, slots=True)
class FoundPages:
    """Pages that exist, in a view at or after the token asked with; without `hashes` and `blobs`, of which marks say enough."""

    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class FindPages(Effect[FoundPages | NoAnswer]):
    """Read the pages that may know some messages, and the newest one, at or after `token`. One request for up to 32 messages.

    Attributes:
        entity: whose pages they are.
        times: milliseconds since 1970. Asked for are pages whose `begin` and `until` enclose one of them.
        hashes: of messages. Asked for are pages that have one of them among their `hashes`.
        newest: number of the newest page.
        token: of the library's partition.
    """

    entity: EntityRef
    times: tuple[int, ...]
    hashes: tuple[str, ...]
    newest: int
    token: str | None

    def asks_for(self, page: Page) -> bool:
        """Whether a page is among those that are asked for."""
        within = any(page.begin <= time <= page.until for time in self.times)
        return within or page.number == self.newest or not set(self.hashes).isdisjoint(page.hashes)

    def found(self, pages: Iterable[Page]) -> FoundPages:
        """The reply where these are all pages of the entity."""
        return FoundPages(tuple(replace(one, hashes=(), blobs=()) for one in pages if self.asks_for(one)))


@dataclass(frozen=True, slots=True)
class FindBlobs(Effect[frozenset[str] | NoAnswer]):
    """Those of the transactions that some page names among its `blobs`, at or after `token`. For clean-up only."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class HasPages(Effect[bool | NoAnswer]):
    """Whether the entity has any page, at or after `token`; without one, in whatever view answers."""

    entity: EntityRef
    token: str | None = None


@dataclass(frozen=True, slots=True)
class WritePage(Effect[Written | Literal[Other.OTHER] | Unknown]):
    """Create a page. One of the same name and content was written before, so that is as good. Another content is `OTHER`.

    Attributes:
        entity: whose page it is.
        page: what to write.
        seconds: for which the store is to keep it, whatever clean-up does.
    """

    entity: EntityRef
    page: Page
    seconds: int


@dataclass(frozen=True, slots=True)
class FoundAbove:
    """Pages that exist, each with its ETag, in a view at or after the token asked with."""

    pages: tuple[tuple[Page, str], ...]


@dataclass(frozen=True, slots=True)
class FindPagesAbove(Effect[FoundAbove | NoAnswer]):
    """Read all pages with a number above this one, at or after `token`."""

    entity: EntityRef
    number: int
    token: str | None


@dataclass(frozen=True, slots=True)
class DeletePages(Effect[None]):
    """Delete pages that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose pages they are.
        pages: number of each, and its ETag.
    """

    entity: EntityRef
    pages: tuple[tuple[int, str], ...]
