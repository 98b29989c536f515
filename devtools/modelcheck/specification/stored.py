"""What survives a crash, as small as the specification needs it: one entity, the library's partition, what queues took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from exactlyonce.effects import (
    PUBLISHED,
    Conflict,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    Effect,
    Park,
    Publish,
    Saved,
    SaveEntity,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.errors import StoredDataError
from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef
from exactlyonce.records import LEDGER, Ledger, LibraryRecord, ProcessedRecord, read_entity

ENTITY: Final = EntityRef("account", ("a",), "a")
NOW: Final = 1_000_000
TOKEN: Final = "0:-1#"  # noqa: S105


def position_of(token: str | None) -> int:
    """The position in a log that a session token stands for; 0 without one."""
    return int(token.removeprefix(TOKEN)) if token else 0


@cache
def ledger_of(document: Json | None) -> Ledger | None:
    """The ledger of a document, an empty one of none; None if it has none or a damaged one."""
    try:
        return read_entity(ENTITY, document).ledger
    except StoredDataError:
        return None


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything that survives a crash.

    Attributes:
        entity: every version of the entity document, oldest first.
        library: accepted writes of the library's partition in order: id, and the record or None for a delete.
        published: ids of outputs that their transport took.
        acknowledged: keys of messages that will not be delivered again.
    """

    entity: tuple[Json, ...] = ()
    library: tuple[tuple[str, LibraryRecord | None], ...] = ()
    published: frozenset[str] = frozenset()
    acknowledged: frozenset[str] = frozenset()

    @property
    def etag(self) -> str | None:
        return str(len(self.entity)) if self.entity else None

    @property
    def entity_token(self) -> str:
        return f"{TOKEN}{len(self.entity)}"

    @property
    def library_token(self) -> str:
        return f"{TOKEN}{len(self.library)}"

    @property
    def ledger(self) -> Ledger | None:
        """That of the newest version; None if it is damaged, or was removed."""
        ledger = ledger_of(self.entity[-1] if self.entity else None)
        if ledger is None and self.entity and LEDGER not in self.entity[-1].value:
            return None if any(self.library_documents(ProcessedRecord)) else Ledger()
        return ledger

    def records(self, position: int | None = None) -> dict[str, LibraryRecord]:
        """The library's documents by id, as a replica at a position has them."""
        found = dict(self.library if position is None else self.library[:position])
        return {id: record for id, record in found.items() if record is not None}

    def library_documents(self, kind: type[Any]) -> Iterator[Any]:
        """The library's documents of one kind."""
        return (record for record in self.records().values() if isinstance(record, kind))

    def library_etag(self, id: str) -> str:
        """Changes with every write."""
        return str(max(number for number, (written, _) in enumerate(self.library) if written == id))

    def with_entity(self, document: Json) -> Stored:
        """A next version, whatever wrote it."""
        return replace(self, entity=(*self.entity, document))

    def apply(self, effect: Effect[Any]) -> tuple[Any, Stored]:
        """Apply a write at the end of the log: its reply, and what is stored then."""
        if isinstance(effect, Publish):
            return PUBLISHED, replace(self, published=self.published | {output.id for output in effect.outputs})
        if isinstance(effect, SaveEntity):
            if effect.etag != self.etag:
                return Conflict(self.entity_token), self
            after = self.with_entity(effect.document)
            return Saved(after.etag or "", after.entity_token), after
        writes = self._writes(effect)
        if isinstance(effect, Stage) and writes.keys() & self.records().keys():
            return Conflict(self.library_token), self
        after = self._with(writes)
        return Written(after.library_token) if any(writes.values()) else None, after

    def _writes(self, effect: Effect[Any]) -> dict[str, LibraryRecord | None]:
        """What a write does to the library's documents; None for those it deletes."""
        match effect:
            case WriteProcessed(_, records):
                return {f"processed:{record.message}": record for record in records}
            case Stage(_, documents):
                return {f"staged:{document.tx}": document for document in documents}
            case Park(_, message):
                return {f"parked:{message.message}": message}
            case DeleteStaged(_, transactions):
                return dict.fromkeys(f"staged:{tx}" for tx in transactions)
            case DeleteProcessed(_, read):
                etags = {f"processed:{message}": etag for message, etag in read}
            case DeleteParked(_, message, etag):
                etags = {f"parked:{message}": etag}
            case _:
                raise TypeError(effect)
        return dict.fromkeys(id for id, etag in etags.items() if etag == self.library_etag(id))

    def _with(self, writes: dict[str, LibraryRecord | None]) -> Stored:
        """With writes that change anything; writing again what is there leaves the log as short as it was."""
        known = self.records()
        changes = tuple((id, record) for id, record in writes.items() if known.get(id) != record)
        return replace(self, library=(*self.library, *changes))
