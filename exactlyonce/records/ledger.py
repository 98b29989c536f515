"""The ledger: the library's property of an entity document.

Its shape carries a schema version; a newer one is refused, never misread. What is empty is left out, since every commit pays
for each byte; `version` says how many messages the rest has to account for. Properties that are not the library's stay
untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import with_config

from exactlyonce.errors import IdTaken
from exactlyonce.records.calls import Calls
from exactlyonce.records.kept import Kept
from exactlyonce.records.marks import destinations_in, split
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.records.pages import KeptAnswer
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, damaged, read_shape, shape_json

LEDGER: Final = "_ledger"
OUTBOX: Final = "outbox"
"""The protocol whose ledgers hold marks."""
MAX_DOCUMENT_BYTES: Final = 1_500_000
"""Largest entity document that is sent. The service takes 2 MB; the rest is room for its own properties."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Ledger:
    """The library's property of an entity document.

    Attributes:
        version: number of messages committed on this entity; releases of kept messages count, too.
        type: of the entity. Two types may share a container, but a document belongs to one.
        protocol: that the entity is processed by; another one would not know its duplicates.
        entity: key of the entity. A ledger that was copied to another document names the one it is of.
        token: session token of the library's partition for this entity, at or after the last write there that this document
            relies on; None if there was none.
        deleted: the entity was deleted; the document remains as a tombstone, so that late duplicates are known.
        marks: of the latest messages, the oldest first. `version` is the number of marks and of those that have left.
        to: destinations that marks and entries name.
        complete: time of the newest mark that has left for a page, in milliseconds since 1970; -1 if none has. A timed
            message that is younger and has no mark here was never processed.
        left: how many marks have left, those that expired included.
        cut: number of its newest page; 0 if there is none.
        lost: time up to which pages may have been lost, since the library's container was restored or exchanged; -1 if none.
        answers: to requests among the marks.
        outbox: transactions whose outputs are not known to be sent.
        blobs: for messages among the marks whose handlers wrote blobs: hash, and the transaction that was committed.
        sequences: the numbers given out to receivers that take messages in order. They go on after a deletion.
        snapshot_every: how far apart the whole states in the entity's version stream are; None if it has none.
        event_sourced: whether that stream holds what happened, in place of the way back.
        receptions: how far this read model has received the channels that make it.
        calls: ids of the calls whose replies are awaited.
        kept: messages that are kept until they are due, in the order in which they were sent.
        schema: version of this shape.
    """

    version: int = 0
    type: str = ""
    protocol: Annotated[str, absent_if(OUTBOX)] = OUTBOX
    entity: Annotated[str, absent_if("")] = ""
    token: Annotated[str | None, absent_if(None)] = None
    deleted: Annotated[bool, absent_if(False)] = False
    marks: Annotated[str, absent_if("")] = ""
    to: Annotated[tuple[str, ...], absent_if(())] = ()
    complete: Annotated[int, absent_if(-1)] = -1
    left: Annotated[int, absent_if(0)] = 0
    cut: Annotated[int, absent_if(0)] = 0
    lost: Annotated[int, absent_if(-1)] = -1
    answers: Annotated[tuple[KeptAnswer, ...], absent_if(())] = ()
    outbox: Annotated[tuple[OutboxEntry, ...], absent_if(())] = ()
    blobs: Annotated[tuple[tuple[str, str], ...], absent_if(())] = ()
    sequences: Annotated[Sequences, absent_if(())] = ()
    snapshot_every: Annotated[int | None, absent_if(None)] = None
    event_sourced: Annotated[bool, absent_if(False)] = False
    receptions: Annotated[tuple[Reception, ...], absent_if(())] = ()
    calls: Annotated[Calls, absent_if(())] = ()
    kept: Annotated[tuple[Kept, ...], absent_if(())] = ()
    schema: int = SCHEMA

    @property
    def transactions(self) -> frozenset[str]:
        """What names the staged documents that the ledger relies on."""
        return frozenset(one.tx for one in self.kept)


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity document taken apart.

    Attributes:
        body: the user's properties, `id` and partition key included; None if the entity is absent or deleted.
        ledger: the library's property; an empty one if the entity is absent, None if the document has none.
    """

    body: Json | None
    ledger: Ledger | None


def read_entity(entity: EntityRef, document: Json | None) -> EntityView:
    """Take an entity document apart.

    Raises:
        DamagedDocument: the ledger cannot be read, or contradicts itself.
        IdTaken: it belongs to an entity of another type.
        NewerSchema: a newer version of the library wrote it.
    """
    if document is None:
        return EntityView(None, Ledger())
    properties = document.value
    raw = properties.pop(LEDGER, None)
    if raw is None:
        return EntityView(Json.of(properties), None)
    name = f"The ledger of entity {entity} (property {LEDGER!r})"
    ledger = read_shape(Ledger, raw, name)
    _require_consistent(ledger, entity, name)
    if ledger.type not in ("", entity.type):
        raise IdTaken(
            f"The document of entity {entity} belongs to an entity of type {ledger.type!r}. Nothing was changed. Two types "
            "that share a container need ids that differ: return such keys from key=.",
            kept="its id is that of an entity of another type",
        )
    return EntityView(None if ledger.deleted else Json.of(properties), ledger)


def entity_document(body: Json, ledger: Ledger) -> Json:
    """Put an entity document together; the ledger comes last, below what people look for."""
    return body.plus(LEDGER, shape_json(ledger))


def _require_consistent(ledger: Ledger, entity: EntityRef, name: str) -> None:
    """Raise `DamagedDocument` unless the parts of a ledger agree with one another."""
    if ledger.entity not in ("", entity.key):
        raise damaged(name, f"it is a copy of the ledger of {ledger.entity}")
    marks = split(ledger.marks)
    if ledger.protocol == OUTBOX and len(marks) + ledger.left != ledger.version:
        raise damaged(
            name, f"{len(marks)} marks and {ledger.left} that have left are not its version, {ledger.version}"
        )
    if ledger.left < 0 or ledger.cut > ledger.version:
        raise damaged(name, f"{ledger.left} marks have left in {ledger.cut} pages, at version {ledger.version}")
    if ledger.protocol == "stream" and ledger.version and ledger.snapshot_every is None:
        raise damaged(name, "it does not say what its stream holds")
    if ledger.protocol == "resequencer" and ledger.version and not ledger.receptions:
        raise damaged(name, "it does not say what was received")
    if list(marks) != sorted(marks):
        raise damaged(name, "its marks are in no order")
    try:
        named = destinations_in(marks)
    except ValueError as error:
        raise damaged(name, str(error)) from None
    owed = [output for entry in ledger.outbox for output in entry.outputs]
    named |= {output.to for output in owed}
    if max(named, default=-1) >= len(ledger.to):
        raise damaged(name, "a mark or an entry names a destination that its list does not have")
    if any(one.place is not None and one.place[0] >= len(ledger.sequences) for one in owed):
        raise damaged(name, "an entry names a sequence that its list does not have")
