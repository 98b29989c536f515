"""A store in memory with the full semantics of the fault model: for tests, simulations and experiments.

Every logical partition is a log of writes. A read sees the log up to the position of the answering replica; a session token is
a position in a log. Writes are judged at the end of the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeVar

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Adapter, Busy, NoAnswer, Unknown, performs
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    CLOSED,
    OTHER,
    Closed,
    CloseRequest,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundBooks,
    FoundPages,
    FoundParked,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadParked,
    LoadRequests,
    LoadStaged,
    NoteSearch,
    OpenRequest,
    Other,
    Park,
    ReadBooks,
    Stage,
    Unpark,
    WriteBook,
    WritePage,
    Written,
)
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.companions import KIND, Companion, StreamEntry, companion_document, id_of, read_companion
from exactlyonce.records.ledger import Page, read_page
from exactlyonce.records.library import (
    BOOKS,
    UNPARKED,
    LibraryRecord,
    read_book,
    read_parked,
    read_request,
    read_staged,
)
from exactlyonce.records.outbox import OutputRef
from exactlyonce.stores.refusals import not_an_entity, require_one_batch, unique_key_taken
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json, shape_json

# The fault model as a port of the memory store: possible outcomes of a write or a read.


class Fate(Enum):
    """The outcome of a write."""

    ANSWERED = "answered"
    LOST_BEFORE = "lost before applying"
    LOST_AFTER = "applied, the reply lost"
    REPEATED = "applied, the reply lost, sent again by the client library"
    DELAYED = "takes effect later, whatever its sender does meanwhile"
    BUSY = "refused, not applied"


class Trouble(Protocol):
    """Decides the fate of writes and the age of views. Injected, so that a test can script or seed it."""

    def fate(self, operation: str) -> Fate:
        """The fate of a write; `operation` is the name of the store's method."""
        ...

    def replica(self, newest: int) -> int:
        """The position of the replica that answers a read: 0 (empty) to `newest`."""
        ...


class NoTrouble:
    """A world without faults: every write is answered and every read is fresh."""

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        return Fate.ANSWERED

    def replica(self, newest: int) -> int:
        return newest


Reply = TypeVar("Reply")
_TOKEN: Final = "0:-1#"  # noqa: S105
_MARK: Final = f'"{KIND}":'


@dataclass(frozen=True, slots=True)
class Version:
    """An accepted write; `document` is None for a delete."""

    id: str
    document: Json | None
    etag: str
    timestamp: int

    @property
    def companion(self) -> dict[str, Any] | None:
        """The document, if it is a companion."""
        if self.document is None or _MARK not in self.document.text:  # Cheaper than to take every document apart.
            return None
        properties: dict[str, Any] = self.document.value
        return properties if KIND in properties else None


@dataclass(slots=True)
class Partition:
    """The accepted writes of a logical partition, in order.

    Attributes:
        log: the writes.
        within: positions inside a batch. A batch arrives at a replica as a whole, so no view ends there.
        places: for each id the positions of its versions in the log.
        reached: a position that no replica is behind.
    """

    log: list[Version] = field(default_factory=list)
    within: set[int] = field(default_factory=set)
    places: dict[str, list[int]] = field(default_factory=dict)
    reached: int = 0

    @property
    def token(self) -> str:
        return token_at(len(self.log))

    def newest(self, id: str, position: int | None = None) -> Version | None:
        """The newest version of a document at or before a position; None if absent or deleted."""
        places = self.places.get(id, [])
        before = bisect_left(places, len(self.log) if position is None else position)
        version = self.log[places[before - 1]] if before else None
        return version if version is not None and version.document is not None else None

    def append(self, version: Version) -> None:
        """Add a write to the log."""
        self.places.setdefault(version.id, []).append(len(self.log))
        self.log.append(version)

    def ids(self, position: int) -> list[str]:
        return list(dict.fromkeys(version.id for version in self.log[:position]))

    def view(self, position: int) -> dict[str, Version]:
        """The newest version of each document at a position, by id, without deleted documents."""
        newest = {version.id: version for version in self.log[:position]}
        return {id: version for id, version in newest.items() if version.document is not None}


def unless_taken(reply: Reply | UniqueKeyTaken) -> Reply:
    """The reply to a save. A reply of a taken unique key is raised; the reply may have been lost before."""
    if isinstance(reply, UniqueKeyTaken):
        raise reply
    return reply


def token_at(position: int) -> str:
    """The session token of a position."""
    return f"{_TOKEN}{position}"


def _values(document: Json, paths: Sequence[str]) -> str:
    """The values of a document at some paths, as a text; equal values have equal texts."""
    values: list[object] = []
    for path in paths:
        value: Any = document.value
        for name in path[1:].split("/"):
            value = value.get(name) if isinstance(value, dict) else None
        values.append(int(value) if isinstance(value, float) and value.is_integer() else value)
    return Json.of(values).text


MOST_OWING: Final = 100
View = dict[str, Version]
Found = Iterable[tuple[dict[str, Any], str]]
"""Documents, each with its ETag."""
_PAGE = "page:"


class MemoryStore(Adapter):
    """The store. Blocking; `Awaited` makes it an `AsyncStore`.

    Args:
        now: the server's clock.
        trouble: the faults of the world.
        unique_keys: by entity type the unique keys of its container, each a list of paths such as "/name/last".
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        trouble: Trouble | None = None,
        unique_keys: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> None:
        self._now = now
        self._trouble = trouble or NoTrouble()
        self._unique_keys = unique_keys or {}
        self.entities: dict[tuple[object, ...], Partition] = {}
        self.library: dict[str, Partition] = {}
        self._delayed: list[Callable[[], object]] = []
        self._writes = 0

    @property
    def writes(self) -> int:
        """How many writes were accepted so far."""
        return self._writes

    def land_delayed(self) -> int:
        """Let every delayed write take effect now, if its condition still holds; return the number of delayed writes."""
        delayed, self._delayed = self._delayed, []
        for write in delayed:
            write()
        return len(delayed)

    @performs(LoadEntity)
    def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        partition = self._entity(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        version = partition.newest(effect.entity.id, position)
        if version is None:
            return Loaded(None, None, 0, token_at(position))
        if version.companion is not None:
            raise not_an_entity(effect.entity)
        return Loaded(version.document, version.etag, version.timestamp, token_at(position))

    @performs(SaveEntity)
    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        partition = self._entity(effect.entity)

        def save() -> Saved | Conflict | UniqueKeyTaken:
            current = partition.newest(effect.entity.id)
            if (current.etag if current else None) != effect.etag:
                return Conflict(partition.token)
            if self._is_taken(effect.entity, effect.document):
                return unique_key_taken(effect.entity)
            self._append(partition, effect.entity.id, effect.document)
            return Saved(partition.log[-1].etag, partition.token)

        return unless_taken(self._write("save_entity", save))

    @performs(Stage)
    def stage(self, effect: Stage) -> Written | Conflict | Unknown | Busy:
        partition = self._library(effect.entity)

        def create() -> Written | Conflict:
            transactions = {document.tx for document in effect.documents}
            if len(transactions) < len(effect.documents) or any(
                partition.newest(f"staged:{tx}") for tx in transactions
            ):
                return Conflict(partition.token)
            for document in effect.documents:
                self._put(partition, f"staged:{document.tx}", document)
            return Written(partition.token)

        return self._write("stage", create)

    @performs(LoadStaged)
    def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"staged:{tx}", position) for tx in effect.transactions)
        return FoundStaged(tuple(read_staged(document) for document, _ in _documents(versions)))

    @performs(DeleteStaged)
    def delete_staged(self, effect: DeleteStaged) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for tx in effect.transactions:
                if partition.newest(f"staged:{tx}"):
                    self._append(partition, f"staged:{tx}", None)

        self._write("delete_staged", delete)

    @performs(Park)
    def park(self, effect: Park) -> Written | Unknown | Busy:
        partition, id = self._library(effect.entity), f"parked:{effect.message.message}"
        return self._write("park", lambda: self._put(partition, id, effect.message))

    @performs(LoadParked)
    def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        version = partition.newest(f"parked:{effect.message}", position)
        if version is None or version.document is None or version.document.value.get("kind") == UNPARKED:
            return FoundParked(None, None, None)
        return FoundParked(read_parked(version.document.value), version.etag, self._now())

    @performs(Unpark)
    def unpark(self, effect: Unpark) -> None:
        partition, id = self._library(effect.entity), f"parked:{effect.message}"
        self._put_over("unpark", partition, id, effect.etag, effect.note)

    # Companions in memory: they lie in their entity's partition, in the same log.

    @performs(SaveBatch)
    def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown | Busy:
        require_one_batch(effect)
        entity, partition = effect.entity, self._entity(effect.entity)
        created = ((*_stored(entity, item), None) for item in effect.create)
        replaced = ((*_stored(entity, item), etag) for item, etag in effect.replace)
        writes = ((entity.id, effect.document, effect.etag), *created, *replaced)

        def save() -> Saved | Conflict | UniqueKeyTaken:
            current = {id: partition.newest(id) for id, _, _ in writes}
            etags = {id: version.etag if version else None for id, version in current.items()}
            # The second of two writes of the same document would meet the first.
            if len(etags) < len(writes) or any(etags[id] != etag for id, _, etag in writes):
                return Conflict(partition.token)
            if self._is_taken(entity, effect.document):
                return unique_key_taken(entity)
            begin = len(partition.log)
            saved, *_ = [self._append(partition, id, document) for id, document, _ in writes]
            partition.within.update(range(begin + 1, len(partition.log)))
            return Saved(saved.etag, partition.token)

        return unless_taken(self._write("save_batch", save))

    @performs(LoadCompanions)
    def load_companions(self, effect: LoadCompanions) -> FoundCompanions | NoAnswer | Busy:
        if not effect.ids:
            return FoundCompanions(())
        ids = dict.fromkeys(effect.ids)
        return self._found(effect.entity, effect.token, lambda view: _documents(view[id] for id in ids if id in view))

    @performs(FindEntries)
    def find_entries(self, effect: FindEntries) -> FoundCompanions | NoAnswer | Busy:
        if not effect.ranges:
            return FoundCompanions(())

        def asked(document: dict[str, Any]) -> bool:
            version = document.get("version")
            wanted = isinstance(version, int) and any(first <= version <= last for first, last in effect.ranges)
            return wanted and document[KIND] == "entry"

        def entries_in(view: View) -> Found:
            entries = (item for item in _companions_of(effect.entity, view) if asked(item[0]))
            return sorted(entries, key=lambda entry: entry[0]["version"])

        return self._found(effect.entity, effect.token, entries_in)

    @performs(FindNumbered)
    def find_numbered(self, effect: FindNumbered) -> FoundNumbered | NoAnswer | Busy:
        first, last = effect.numbers

        def asked(output: OutputRef) -> bool:
            place = output.place
            return place is not None and place.channel == effect.channel and first <= place.number <= last

        def entries_in(view: View) -> Found:
            return (item for item in _companions_of(effect.entity, view) if item[0][KIND] == "entry")

        reply = self._found(effect.entity, effect.token, entries_in)
        if not isinstance(reply, FoundCompanions):
            return reply
        entries = (entry for entry, _ in reply.companions if isinstance(entry, StreamEntry))
        return FoundNumbered(tuple(sorted(entry.version for entry in entries if any(map(asked, entry.outputs)))))

    @performs(FindOwing)
    def find_owing(self, effect: FindOwing) -> FoundCompanions | NoAnswer | Busy:
        def owes(document: dict[str, Any]) -> bool:
            return isinstance(document.get("owing_since"), str)

        def owing_in(view: View) -> Found:
            return [item for item in _companions_of(effect.entity, view) if owes(item[0])][:MOST_OWING]

        return self._found(effect.entity, None, owing_in)

    @performs(HasCompanions)
    def has_companions(self, effect: HasCompanions) -> bool | NoAnswer | Busy:
        partition = self._entity(effect.entity)
        return any(True for _ in _companions_of(effect.entity, partition.view(self._replica(partition))))

    @performs(ReplaceCompanions)
    def replace_companions(self, effect: ReplaceCompanions) -> None:
        partition = self._entity(effect.entity)

        def replace() -> None:
            for companion, etag in effect.companions:
                id, document = _stored(effect.entity, companion)
                current = partition.newest(id)
                if current is not None and etag in (None, current.etag):
                    self._append(partition, id, document)

        self._write("replace_companions", replace)

    @performs(DeleteCompanions)
    def delete_companions(self, effect: DeleteCompanions) -> None:
        self._delete("delete_companions", self._entity(effect.entity), effect.companions)

    def _found(self, entity: EntityRef, token: str | None, find: Callable[[View], Found]) -> FoundCompanions | NoAnswer:
        """The results of a search in the view of a replica that has reached the token."""
        partition = self._entity(entity)
        position = self._view(partition, token)
        if position is None:
            return BEHIND
        documents = find(partition.view(position))
        return FoundCompanions(tuple((read_companion(entity, document), etag) for document, etag in documents))

    # Documents of requests in memory: they lie in the library's partition of their entity.

    @performs(OpenRequest)
    def open_request(self, effect: OpenRequest) -> Written | Conflict | Unknown | Busy:
        partition, id = self._library(effect.entity), f"request:{effect.document.request}"

        def create() -> Written | Conflict:
            return Conflict(partition.token) if partition.newest(id) else self._put(partition, id, effect.document)

        return self._write("open_request", create)

    @performs(LoadRequests)
    def load_requests(self, effect: LoadRequests) -> FoundRequests | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"request:{request}", position) for request in effect.requests)
        return FoundRequests(tuple(read_request(document) for document, _ in _documents(versions)), token_at(position))

    @performs(KeepAnswers)
    def keep_answers(self, effect: KeepAnswers) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def replace() -> Written:
            for document in effect.documents:
                if partition.newest(f"request:{document.request}"):
                    self._put(partition, f"request:{document.request}", document)
            return Written(partition.token)

        return self._write("keep_answers", replace)

    @performs(CloseRequest)
    def close_request(self, effect: CloseRequest) -> Closed | Unknown | Busy:
        partition, id = self._library(effect.entity), f"request:{effect.request}"

        def delete() -> Closed:
            if partition.newest(id):
                self._append(partition, id, None)
            return CLOSED

        return self._write("close_request", delete)

    @performs(DeleteRequests)
    def delete_requests(self, effect: DeleteRequests) -> None:
        documents = tuple((f"request:{request}", etag) for request, etag in effect.requests)
        self._delete("delete_requests", self._library(effect.entity), documents)

    # Pages and books in memory.

    @performs(FindPages)
    def find_pages(self, effect: FindPages) -> FoundPages | NoAnswer | Busy:
        pages = self._pages(effect.entity, effect.token)
        return pages if isinstance(pages, NoAnswer) else effect.found(item for item, _ in pages)

    @performs(FindPagesAbove)
    def find_pages_above(self, effect: FindPagesAbove) -> FoundAbove | NoAnswer | Busy:
        pages = self._pages(effect.entity, effect.token)
        return (
            pages
            if isinstance(pages, NoAnswer)
            else FoundAbove(tuple(page for page in pages if page[0].number > effect.number))
        )

    @performs(FindBlobs)
    def find_blobs(self, effect: FindBlobs) -> frozenset[str] | NoAnswer | Busy:
        pages = self._pages(effect.entity, effect.token)
        if isinstance(pages, NoAnswer):
            return pages
        return frozenset(tx for item, _ in pages for tx in item.blobs if tx in effect.transactions)

    @performs(HasPages)
    def has_pages(self, effect: HasPages) -> bool | NoAnswer | Busy:
        pages = self._pages(effect.entity, effect.token)
        return pages if isinstance(pages, NoAnswer) else bool(pages)

    @performs(WritePage)
    def write_page(self, effect: WritePage) -> Written | Literal[Other.OTHER] | Unknown | Busy:
        partition, id = self._library(effect.entity), f"{_PAGE}{effect.page.number}"

        def create() -> Written | Literal[Other.OTHER]:
            there = partition.newest(id)
            if there is not None and there.document is not None and read_page(there.document.value) != effect.page:
                return OTHER
            return self._put(partition, id, effect.page) if there is None else Written(partition.token)

        return self._write("write_page", create)

    @performs(DeletePages)
    def delete_pages(self, effect: DeletePages) -> None:
        documents = tuple((f"{_PAGE}{number}", etag) for number, etag in effect.pages)
        self._delete("delete_pages", self._library(effect.entity), documents)

    @performs(WriteBook)
    def write_book(self, effect: WriteBook) -> Written | Unknown | Busy:
        partition = self._books()
        return self._write("write_book", lambda: self._put(partition, effect.book.id, effect.book))

    @performs(ReadBooks)
    def read_books(self, effect: ReadBooks) -> FoundBooks | NoAnswer | Busy:
        partition = self._books()
        view = partition.view(self._replica(partition))
        documents = _documents(view[id] for id in effect.books if id in view)
        return FoundBooks(tuple(read_book(document) for document, _ in documents))

    @performs(NoteSearch)
    def note_search(self, effect: NoteSearch) -> None:
        self._put_over("note_search", self._books(), effect.book.id, effect.etag, effect.book)

    def _books(self) -> Partition:
        return self.library.setdefault(BOOKS, Partition())

    def _pages(self, entity: EntityRef, token: str | None) -> tuple[tuple[Page, str], ...] | NoAnswer:
        """All pages of an entity, each with its ETag, in the view of a replica that has reached the token."""
        partition = self._library(entity)
        position = self._view(partition, token)
        if position is None:
            return BEHIND
        return tuple(
            (read_page(document), etag)
            for document, etag in _documents(
                item for id, item in partition.view(position).items() if id.startswith(_PAGE)
            )
        )

    # Partitions, and the fates of requests.

    def _entity(self, entity: EntityRef) -> Partition:
        return self.entities.setdefault((entity.type, *entity.partition), Partition())

    def _library(self, entity: EntityRef) -> Partition:
        return self.library.setdefault(entity.key, Partition())

    def _is_taken(self, entity: EntityRef, document: Json) -> bool:
        """Whether another document of the logical partition has the same values for a unique key; an absent value is null."""
        keys = self._unique_keys.get(entity.type, ())
        partition = self._entity(entity)
        wanted = [_values(document, key) for key in keys]
        others = partition.view(len(partition.log)) if keys else {}
        return any(
            _values(version.document, key) == values
            for id, version in others.items()
            if id != entity.id and version.document is not None
            for key, values in zip(keys, wanted, strict=True)
        )

    def _append(self, partition: Partition, id: str, document: Json | None) -> Version:
        self._writes += 1
        written = Version(id, document, f'"{self._writes}"', int(self._now().timestamp()))
        partition.append(written)
        return written

    def _put(self, partition: Partition, id: str, record: LibraryRecord) -> Written:
        """Write a document of the library over any other."""
        self._append(partition, id, shape_json(record))
        return Written(partition.token)

    def _put_over(self, operation: str, partition: Partition, id: str, etag: str, record: LibraryRecord) -> None:
        """Write a document of the library over the version with this ETag; best effort."""

        def replace() -> None:
            if _is_at(partition, id, etag):
                self._put(partition, id, record)

        self._write(operation, replace)

    def _delete(self, operation: str, partition: Partition, documents: tuple[tuple[str, str], ...]) -> None:
        """Delete the documents whose ETag is still as read; best effort."""

        def delete() -> None:
            for id, etag in documents:
                if _is_at(partition, id, etag):
                    self._append(partition, id, None)

        self._write(operation, delete)

    def _replica(self, partition: Partition) -> int:
        """The position of the answering replica."""
        position = max(self._trouble.replica(len(partition.log)), partition.reached)
        while position in partition.within:
            position -= 1
        return position

    def _view(self, partition: Partition, token: str | None) -> int | None:
        """The position of the answering replica; None if it is behind the token."""
        position = self._replica(partition)
        needed = int(token.removeprefix(_TOKEN)) if token else 0
        return position if position >= needed else None

    def _write(self, operation: str, apply: Callable[[], Reply]) -> Reply | Unknown | Busy:
        fate = self._trouble.fate(operation)
        if fate is Fate.BUSY:
            return Busy()
        if fate is Fate.ANSWERED:
            return apply()
        if fate is Fate.REPEATED:
            apply()
            return apply()
        if fate is Fate.DELAYED:
            self._delayed.append(apply)
        elif fate is Fate.LOST_AFTER:
            apply()
        return UNKNOWN


def _is_at(partition: Partition, id: str, etag: str) -> bool:
    current = partition.newest(id)
    return current is not None and current.etag == etag


def _stored(entity: EntityRef, companion: Companion) -> tuple[str, Json]:
    return id_of(entity, companion), Json.of(companion_document(entity, companion))


def _documents(versions: Iterable[Version | None]) -> Iterator[tuple[dict[str, Any], str]]:
    return ((item.document.value, item.etag) for item in versions if item is not None and item.document is not None)


def _companions_of(entity: EntityRef, view: View) -> Iterator[tuple[dict[str, Any], str]]:
    """The companions of an entity; several entities may share a partition."""
    companions = ((version.companion, version.etag) for version in view.values())
    return ((item, etag) for item, etag in companions if item is not None and item.get("entity") == entity.key)
