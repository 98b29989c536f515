"""A store in memory with the full semantics of the fault model: for tests, simulations and trying things out.

Every logical partition is a log of writes. A read sees the log up to the position of the replica that answers; a session
token is a position in one log. Writes are judged at the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from exactlyonce.effects import (
    BEHIND,
    UNKNOWN,
    Conflict,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundStaged,
    HasRecords,
    Loaded,
    LoadEntity,
    LoadParked,
    LoadStaged,
    NoAnswer,
    Park,
    Saved,
    SaveEntity,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef
from exactlyonce.records import library_document, read_parked, read_staged
from exactlyonce.stores.port import Busy, Unknown
from exactlyonce.stores.trouble import Fate, NoTrouble, Trouble

Reply = TypeVar("Reply")
_TOKEN: Final = "0:-1#"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Version:
    """One accepted write; `document` is None if it was a delete."""

    id: str
    document: Json | None
    etag: str
    timestamp: int


@dataclass(slots=True)
class Partition:
    """The accepted writes of one logical partition, in order."""

    log: list[Version] = field(default_factory=list)

    @property
    def token(self) -> str:
        return f"{_TOKEN}{len(self.log)}"

    def newest(self, id: str, position: int | None = None) -> Version | None:
        """The newest version of a document at or before a position; None if absent or deleted."""
        written = self.log if position is None else self.log[:position]
        found = next((version for version in reversed(written) if version.id == id), None)
        return found if found is not None and found.document is not None else None

    def ids(self, position: int) -> list[str]:
        return list(dict.fromkeys(version.id for version in self.log[:position]))


class MemoryStore:
    """The store. Blocking; `Awaited` in `stores.awaiting` makes it an `AsyncStore`.

    Args:
        now: the server's clock.
        trouble: what the world does to it.
    """

    def __init__(self, now: Callable[[], datetime], trouble: Trouble | None = None) -> None:
        self._now = now
        self._trouble = trouble or NoTrouble()
        self.entities: dict[tuple[object, ...], Partition] = {}
        self.library: dict[str, Partition] = {}
        self._delayed: list[Callable[[], object]] = []
        self._writes = 0

    def land_delayed(self) -> int:
        """Let every delayed write take effect now, as far as its condition still holds; return how many there were."""
        delayed, self._delayed = self._delayed, []
        for write in delayed:
            write()
        return len(delayed)

    def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        partition = self._entity(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        version = partition.newest(effect.entity.id, position)
        if version is None:
            return Loaded(None, None, 0, f"{_TOKEN}{position}")
        return Loaded(version.document, version.etag, version.timestamp, f"{_TOKEN}{position}")

    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        partition = self._entity(effect.entity)

        def save() -> Saved | Conflict:
            current = partition.newest(effect.entity.id)
            if (current.etag if current else None) != effect.etag:
                return Conflict(partition.token)
            self._append(partition, effect.entity.id, effect.document)
            return Saved(partition.log[-1].etag, partition.token)

        return self._write("save_entity", save)

    def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        found = (message for message in effect.messages if partition.newest(f"processed:{message}", position))
        return Found(frozenset(found), f"{_TOKEN}{position}")

    def has_records(self, effect: HasRecords) -> bool | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._trouble.replica(len(partition.log))
        return any(
            id.startswith("processed:") and partition.newest(id, position) is not None for id in partition.ids(position)
        )

    def write_processed(self, effect: WriteProcessed) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def upsert() -> Written:
            for record in effect.records:
                self._append(partition, f"processed:{record.message}", Json.of(library_document(record)))
            return Written(partition.token)

        return self._write("write_processed", upsert)

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

    def delete_staged(self, effect: DeleteStaged) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for tx in effect.transactions:
                if partition.newest(f"staged:{tx}"):
                    self._append(partition, f"staged:{tx}", None)

        self._write("delete_staged", delete)

    def delete_processed(self, effect: DeleteProcessed) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for message, etag in effect.records:
                self._delete_unchanged(partition, f"processed:{message}", etag)

        self._write("delete_processed", delete)

    def park(self, effect: Park) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def upsert() -> Written:
            self._append(partition, f"parked:{effect.message.message}", Json.of(library_document(effect.message)))
            return Written(partition.token)

        return self._write("park", upsert)

    def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        version = partition.newest(f"parked:{effect.message}", position)
        if version is None or version.document is None:
            return FoundParked(None, None, 0.0)
        return FoundParked(
            read_parked(version.document.value), version.etag, self._now().timestamp() - version.timestamp
        )

    def delete_parked(self, effect: DeleteParked) -> None:
        partition = self._library(effect.entity)
        self._write("delete_parked", lambda: self._delete_unchanged(partition, f"parked:{effect.message}", effect.etag))

    def _entity(self, entity: EntityRef) -> Partition:
        return self.entities.setdefault((entity.type, *entity.partition), Partition())

    def _library(self, entity: EntityRef) -> Partition:
        return self.library.setdefault(entity.key, Partition())

    def _append(self, partition: Partition, id: str, document: Json | None) -> None:
        self._writes += 1
        partition.log.append(Version(id, document, f'"{self._writes}"', int(self._now().timestamp())))

    def _delete_unchanged(self, partition: Partition, id: str, etag: str) -> None:
        current = partition.newest(id)
        if current is not None and current.etag == etag:
            self._append(partition, id, None)

    def _view(self, partition: Partition, token: str | None) -> int | None:
        """The position of the replica that answers; None if it is behind the token."""
        position = self._trouble.replica(len(partition.log))
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
