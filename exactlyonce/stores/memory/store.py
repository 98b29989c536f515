"""A store in memory with the full semantics of the fault model: for tests, simulations and experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

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
from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
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
from exactlyonce.effects.port import Busy, performs
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.companions import KIND, Companion, StreamEntry, companion_document, id_of, read_companion
from exactlyonce.records.ledger import Page, read_page
from exactlyonce.records.library import (
    BOOKS,
    UNPARKED,
    library_document,
    read_book,
    read_parked,
    read_request,
    read_staged,
)
from exactlyonce.records.outbox import OutputRef
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition, Version, token_at, unless_taken
from exactlyonce.stores.refusals import require_entity_document, require_one_batch, unique_key_taken
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

MOST_OWING: Final = 100
View = dict[str, Version]
Found = Iterable[tuple[dict[str, Any], str]]
"""Documents, each with its ETag."""
_PAGE = "page:"


class MemoryStore(MemoryPartitions):
    """The store. Blocking; `Awaited` makes it an `AsyncStore`.

    Args:
        now: the server's clock.
        trouble: the faults of the world.
        unique_keys: by entity type the unique keys of its container, each a list of paths such as "/name/last".
    """

    @performs(LoadEntity)
    def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        partition = self._entity(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        version = partition.newest(effect.entity.id, position)
        if version is None:
            return Loaded(None, None, 0, token_at(position))
        require_entity_document(effect.entity, version.companion or ())
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
                self._append(partition, f"staged:{document.tx}", Json.of(library_document(document)))
            return Written(partition.token)

        return self._write("stage", create)

    @performs(LoadStaged)
    def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"staged:{tx}", position) for tx in effect.transactions)
        documents = (
            version.document.value for version in versions if version is not None and version.document is not None
        )
        return FoundStaged(tuple(read_staged(document) for document in documents))

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
        partition = self._library(effect.entity)

        def upsert() -> Written:
            self._append(partition, f"parked:{effect.message.message}", Json.of(library_document(effect.message)))
            return Written(partition.token)

        return self._write("park", upsert)

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

        def replace() -> None:
            current = partition.newest(id)
            if current is not None and current.etag == effect.etag:
                self._append(partition, id, Json.of(library_document(effect.note)))

        self._write("unpark", replace)

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
        partition = self._entity(effect.entity)

        def delete() -> None:
            for id, etag in effect.companions:
                self._delete_unchanged(partition, id, etag)

        self._write("delete_companions", delete)

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
            if partition.newest(id):
                return Conflict(partition.token)
            self._append(partition, id, Json.of(library_document(effect.document)))
            return Written(partition.token)

        return self._write("open_request", create)

    @performs(LoadRequests)
    def load_requests(self, effect: LoadRequests) -> FoundRequests | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"request:{request}", position) for request in effect.requests)
        documents = (
            version.document.value for version in versions if version is not None and version.document is not None
        )
        return FoundRequests(tuple(map(read_request, documents)), token_at(position))

    @performs(KeepAnswers)
    def keep_answers(self, effect: KeepAnswers) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def replace() -> Written:
            for document in effect.documents:
                if partition.newest(f"request:{document.request}"):
                    self._append(partition, f"request:{document.request}", Json.of(library_document(document)))
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
        partition = self._library(effect.entity)

        def delete() -> None:
            for request, etag in effect.requests:
                self._delete_unchanged(partition, f"request:{request}", etag)

        self._write("delete_requests", delete)

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
            if there is None:
                self._append(partition, id, Json.of(library_document(effect.page)))
            return Written(partition.token)

        return self._write("write_page", create)

    @performs(DeletePages)
    def delete_pages(self, effect: DeletePages) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for number, etag in effect.pages:
                self._delete_unchanged(partition, f"{_PAGE}{number}", etag)

        self._write("delete_pages", delete)

    @performs(WriteBook)
    def write_book(self, effect: WriteBook) -> Written | Unknown | Busy:
        partition = self._books()

        def upsert() -> Written:
            self._append(partition, effect.book.id, Json.of(library_document(effect.book)))
            return Written(partition.token)

        return self._write("write_book", upsert)

    @performs(ReadBooks)
    def read_books(self, effect: ReadBooks) -> FoundBooks | NoAnswer | Busy:
        partition = self._books()
        view = partition.view(self._replica(partition))
        documents = (view[id].document for id in effect.books if id in view)
        return FoundBooks(tuple(read_book(document.value) for document in documents if document is not None))

    @performs(NoteSearch)
    def note_search(self, effect: NoteSearch) -> None:
        partition = self._books()

        def replace() -> None:
            current = partition.newest(effect.book.id)
            if current is not None and current.etag == effect.etag:
                self._append(partition, effect.book.id, Json.of(library_document(effect.book)))

        self._write("note_search", replace)

    def _books(self) -> Partition:
        return self.library.setdefault(BOOKS, Partition())

    def _pages(self, entity: EntityRef, token: str | None) -> tuple[tuple[Page, str], ...] | NoAnswer:
        """All pages of an entity, each with its ETag, in the view of a replica that has reached the token."""
        partition = self._library(entity)
        position = self._view(partition, token)
        if position is None:
            return BEHIND
        return tuple(
            (read_page(item.document.value), item.etag)
            for id, item in partition.view(position).items()
            if id.startswith(_PAGE) and item.document is not None
        )


def _stored(entity: EntityRef, companion: Companion) -> tuple[str, Json]:
    return id_of(entity, companion), Json.of(companion_document(entity, companion))


def _documents(versions: Iterable[Version]) -> Iterator[tuple[dict[str, Any], str]]:
    return ((version.document.value, version.etag) for version in versions if version.document is not None)


def _companions_of(entity: EntityRef, view: View) -> Iterator[tuple[dict[str, Any], str]]:
    """The companions of an entity; several entities may share a partition."""
    companions = ((version.companion, version.etag) for version in view.values())
    return ((item, etag) for item, etag in companions if item is not None and item.get("entity") == entity.key)
