"""A store in memory with the full semantics of the fault model: for tests, simulations and trying things out."""

from __future__ import annotations

from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteChannels,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindChannels,
    FindProcessed,
    Found,
    FoundChannels,
    FoundParked,
    FoundRecords,
    FoundStaged,
    HasRecords,
    LoadParked,
    LoadProcessed,
    LoadStaged,
    Park,
    Stage,
    WriteRecords,
    Written,
)
from exactlyonce.effects.port import Busy, performs
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.library import (
    ChannelDocument,
    ProcessedRecord,
    Seal,
    library_document,
    read_channel,
    read_parked,
    read_processed,
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

    @performs(FindProcessed)
    def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        found = (message for message in effect.messages if partition.newest(f"processed:{message}", position))
        return Found(frozenset(found), token_at(position))

    @performs(LoadProcessed)
    def load_processed(self, effect: LoadProcessed) -> FoundRecords | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"processed:{message}", position) for message in effect.messages)
        documents = (
            version.document.value for version in versions if version is not None and version.document is not None
        )
        return FoundRecords(tuple(read_processed(document) for document in documents))

    @performs(FindChannels)
    def find_channels(self, effect: FindChannels) -> FoundChannels | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        documents = (
            read_channel(version.document.value)
            for id, version in partition.view(position).items()
            if id.startswith("channel:") and version.document is not None
        )
        return FoundChannels(tuple(filter(effect.asks_for, documents)))

    @performs(HasRecords)
    def has_records(self, effect: HasRecords) -> bool | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._replica(partition)
        return any(
            id.startswith(("processed:", "channel:", "seal")) and partition.newest(id, position) is not None
            for id in partition.ids(position)
        )

    @performs(WriteRecords)
    def write_records(self, effect: WriteRecords) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def upsert() -> Written:
            for record in effect.records:
                self._append(partition, _id_of(record), Json.of(library_document(record)))
            return Written(partition.token)

        return self._write("write_records", upsert)

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

    @performs(DeleteChannels)
    def delete_channels(self, effect: DeleteChannels) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for id in map("channel:{}".format, effect.documents):
                if partition.newest(id):
                    self._append(partition, id, None)

        self._write("delete_channels", delete)

    @performs(DeleteProcessed)
    def delete_processed(self, effect: DeleteProcessed) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for message, etag in effect.records:
                self._delete_unchanged(partition, f"processed:{message}", etag)

        self._write("delete_processed", delete)

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
        if version is None or version.document is None:
            return FoundParked(None, None, None)
        return FoundParked(read_parked(version.document.value), version.etag, self._now())

    @performs(DeleteParked)
    def delete_parked(self, effect: DeleteParked) -> None:
        partition = self._library(effect.entity)
        self._write("delete_parked", lambda: self._delete_unchanged(partition, f"parked:{effect.message}", effect.etag))


def _id_of(record: ProcessedRecord | ChannelDocument | Seal) -> str:
    match record:
        case ProcessedRecord():
            return f"processed:{record.message}"
        case ChannelDocument():
            return f"channel:{record.name}"
        case Seal():
            return "seal"
