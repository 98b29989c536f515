"""What survives a crash, as small as the specification needs it: an entity with its companions, the library's partition, and
what queues took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    CLOSED,
    KEPT,
    OTHER,
    CloseNumbers,
    CloseRequest,
    DeleteBlobs,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    KeepAnswers,
    OpenRequest,
    Park,
    Stage,
    Unpark,
    WriteOnce,
    WritePage,
    Written,
)
from exactlyonce.errors import StoredDataError
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import Companion, id_of
from exactlyonce.records.ledger import LEDGER, Ledger, Page, read_entity
from exactlyonce.records.library import LibraryRecord
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

ENTITY: Final = EntityRef("account", ("a",), "a")
NOW: Final = 1_000_000
TOKEN: Final = "0:-1#"  # noqa: S105
PAGE: Final = "page:"


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
        companions_written: accepted writes of companions, each all or nothing: the version of the entity from which on every
            view has it, and id and companion of each; None for one that was deleted.
        blobs: that were written.
        published: ids of outputs that their transport took.
        paid: transactions of which a process knows that their outputs were sent. Its book says so once it is written.
        acknowledged: keys of messages that will not be delivered again.
    """

    entity: tuple[Json, ...] = ()
    library: tuple[tuple[str, LibraryRecord | None], ...] = ()
    companions_written: tuple[tuple[int, tuple[tuple[str, Companion | None], ...]], ...] = ()
    blobs: frozenset[Blob] = frozenset()
    published: frozenset[str] = frozenset()
    paid: frozenset[str] = frozenset()
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
            processed = any(id.startswith(PAGE) for id in self.records()) or self.companions_written
            return None if processed else Ledger()
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

    def companions(self, position: int | None = None) -> dict[str, tuple[Companion, str]]:
        """The companions by id, each with its ETag, as a replica at a position in their log has them."""
        writes = enumerate(self.companions_written[:position], 1)
        found = {id: (one, str(number)) for number, (_, written) in writes for id, one in written}
        return {id: (one, etag) for id, (one, etag) in found.items() if one is not None}

    def companions_of(self, kind: type[Any]) -> Iterator[Any]:
        """The companions of one kind."""
        return (one for one, _ in self.companions().values() if isinstance(one, kind))

    def companion_views(self, token: str | None) -> Iterator[dict[str, tuple[Companion, str]]]:
        """Every view of the companions that a replica at or after a token of the entity's partition may have, newest first."""
        surely = sum(since <= position_of(token) for since, _ in self.companions_written)
        return (self.companions(position) for position in range(len(self.companions_written), surely - 1, -1))

    def with_entity(self, document: Json) -> Stored:
        """A next version, whatever wrote it."""
        return replace(self, entity=(*self.entity, document))

    def apply(self, effect: Effect[Any]) -> tuple[Any, Stored]:  # noqa: PLR0911
        """Apply a write at the end of the log: its reply, and what is stored then."""
        if isinstance(effect, Publish | WriteOnce | DeleteBlobs | CloseNumbers):
            return self._applied_elsewhere(effect)
        if isinstance(effect, SaveEntity | SaveBatch):
            return self._saved(effect)
        if isinstance(effect, ReplaceCompanions | DeleteCompanions):
            return None, self._changed(effect)
        writes = self._writes(effect)
        if isinstance(effect, Stage | OpenRequest) and writes.keys() & self.records().keys():
            return Conflict(self.library_token), self
        if isinstance(effect, WritePage) and self._is_in_the_way(effect.page):
            return OTHER, self
        after = self._with(writes)
        if isinstance(effect, CloseRequest):
            return CLOSED, after
        if isinstance(effect, KeepAnswers):
            return Written(after.library_token), after
        return Written(after.library_token) if any(writes.values()) else None, after

    def _is_in_the_way(self, page: Page) -> bool:
        """Whether another page follows the same one."""
        return self.records().get(f"{PAGE}{page.number}", page) != page

    def _applied_elsewhere(self, effect: Publish | WriteOnce | DeleteBlobs | CloseNumbers) -> tuple[Any, Stored]:
        """Apply what does not go to the store."""
        if isinstance(effect, CloseNumbers):
            entries = self.ledger.outbox if self.ledger is not None else ()
            closed = {entry.tx for entry in entries if entry.tx in effect.transactions}  # Nobody asks for others.
            return None, replace(self, paid=self.paid | closed)
        if isinstance(effect, Publish):
            return PUBLISHED, replace(self, published=self.published | {output.id for output in effect.outputs})
        if isinstance(effect, WriteOnce):
            return KEPT, replace(self, blobs=self.blobs | set(effect.blobs))
        return None, replace(self, blobs=frozenset(one for one in self.blobs if one.name not in effect.names))

    def _saved(self, effect: SaveEntity | SaveBatch) -> tuple[Saved | Conflict, Stored]:
        created, replaced = (effect.create, effect.replace) if isinstance(effect, SaveBatch) else ((), ())
        known = self.companions()
        exist = any(id_of(ENTITY, one) in known for one in created)
        changed = any(etag != known.get(id_of(ENTITY, one), (one, None))[1] for one, etag in replaced)
        if effect.etag != self.etag or exist or changed:
            return Conflict(self.entity_token), self
        after = self.with_entity(effect.document)
        written = tuple((id_of(ENTITY, one), one) for one in (*created, *(one for one, _ in replaced)))
        batch = ((len(after.entity), written),) if written else ()
        return Saved(after.etag or "", after.entity_token), replace(
            after, companions_written=(*self.companions_written, *batch)
        )

    def _changed(self, effect: ReplaceCompanions | DeleteCompanions) -> Stored:
        """After writes without a condition on the entity: views are sure to have them with its next version only."""
        known, since = self.companions(), len(self.entity) + 1
        asked: list[tuple[str, Companion | None, str | None]]
        if isinstance(effect, DeleteCompanions):
            asked = [(id, None, etag) for id, etag in effect.companions]
        else:
            asked = [(id_of(ENTITY, one), one, etag) for one, etag in effect.companions]
        written = ((since, ((id, one),)) for id, one, etag in asked if id in known and etag in (None, known[id][1]))
        return replace(self, companions_written=(*self.companions_written, *written))

    def _writes(  # noqa: C901, PLR0911  # One row for each effect.
        self, effect: Effect[Any]
    ) -> dict[str, LibraryRecord | None]:
        """What a write does to the library's documents; None for those it deletes."""
        match effect:
            case WritePage(_, page):
                return {f"{PAGE}{page.number}": page}
            case Stage(_, documents):
                return {f"staged:{document.tx}": document for document in documents}
            case Park(_, message):
                return {f"parked:{message.message}": message}
            case OpenRequest(_, document):
                return {f"request:{document.request}": document}
            case KeepAnswers(_, documents):
                there = self.records()
                return {id: one for one in documents if (id := f"request:{one.request}") in there}
            case CloseRequest(_, request):
                return {f"request:{request}": None}
            case DeleteRequests(_, read):
                etags = {f"request:{request}": etag for request, etag in read}
            case DeleteStaged(_, transactions):
                return dict.fromkeys(f"staged:{tx}" for tx in transactions)
            case DeletePages(_, found):
                etags = {f"{PAGE}{number}": etag for number, etag in found}
            case Unpark(_, message, etag):
                id = f"parked:{message}"
                return {id: effect.note} if id in self.records() and etag == self.library_etag(id) else {}
            case _:
                raise TypeError(effect)
        there = self.records()
        return dict.fromkeys(id for id, etag in etags.items() if id in there and etag == self.library_etag(id))

    def _with(self, writes: dict[str, LibraryRecord | None]) -> Stored:
        """With writes that change anything; writing again what is there leaves the log as short as it was."""
        known = self.records()
        changes = tuple((id, record) for id, record in writes.items() if known.get(id) != record)
        return replace(self, library=(*self.library, *changes))
