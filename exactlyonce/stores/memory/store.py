"""A store in memory with the full semantics of the fault model: for tests, simulations and trying things out."""

from __future__ import annotations

from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    Unpark,
    Written,
)
from exactlyonce.effects.port import Busy, performs
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.library import (
    UNPARKED,
    library_document,
    read_parked,
    read_staged,
)
from exactlyonce.stores.memory.companions import MemoryCompanions
from exactlyonce.stores.memory.pages import MemoryPages
from exactlyonce.stores.memory.partitions import token_at, unless_taken
from exactlyonce.stores.memory.requests import MemoryRequests
from exactlyonce.stores.refusals import require_entity_document, unique_key_taken
from exactlyonce.values.frozen_json import Json


class MemoryStore(MemoryCompanions, MemoryRequests, MemoryPages):
    """The store. Blocking; `Awaited` in `stores.awaiting` makes it an `AsyncStore`.

    Args:
        now: the server's clock.
        trouble: what the world does to it.
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
