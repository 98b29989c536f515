"""The documents the library writes: the ledger inside the entity, and the records in the library container.

The shapes carry a schema version; a newer one is refused, never misread. Properties that are not the library's stay untouched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.errors import IdTaken
from exactlyonce.records.answers import Answer
from exactlyonce.records.calls import Calls
from exactlyonce.records.channels import Channels, Forgotten
from exactlyonce.records.kept import Kept
from exactlyonce.records.marks import KEPT, Mark, destination_place, split
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.records.outputs import Content, Output, OutputRef
from exactlyonce.records.pages import FIRST, KeptAnswer
from exactlyonce.records.receptions import Reception
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, damaged, read_shape, shape_json, write_shape
from exactlyonce.values.validation import adapter

LEDGER: Final = "_ledger"
MARKS: Final = "marks"
"""The protocol whose ledgers hold marks. They leave out what is empty, since every commit pays for each byte."""
_STATED: Final = ("type", "protocol", "schema")
MAX_DOCUMENT_BYTES: Final = 1_500_000
"""Largest entity document that is sent. The service takes 2 MB; the rest is room for its own properties."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Entry:
    """One committed transaction: one message and what came of it.

    Attributes:
        message: key of the message.
        tx: transaction id, fresh for every message of every attempt.
        version: of the entity, which this commit produced.
        at: time of the attempt, by the clock of its process. Never used to judge age.
        outputs: ids, destinations and places of all outputs.
        digest: of the outputs' content.
        staged: whether the outputs were staged, so that there is a document to delete.
        owed: the contents of the outputs, in their order, while these are not known to be published; "staged" when they lie in
            the staged document; None when published, and the answer is kept where it has to be.
        recorded: whether a record follows the entry when it leaves: of a foreign message, whose copies only entries and records
            know, and of one that wrote blobs, whose commit only these prove. Any other goes once its outputs are published.
        seen: `_ts` (seconds) of the document in which a later save found this entry; never before its commit.
        answer: to the request that the message came by; None if it came by a queue.
        request: id of the opened request that the answer is to be kept in; None if there is none. It is owed like outputs.
        content: `Envelope.content` of a foreign message; None of others, whose copies derive from one commit, or have a
            fingerprint.
    """

    message: str
    tx: str
    version: int
    at: datetime
    outputs: tuple[OutputRef, ...]
    digest: str
    staged: Annotated[bool, absent_if(False)] = False  # Lost, the document stays until clean-up takes it.
    owed: tuple[Content, ...] | Literal["staged"] | None = None
    recorded: Annotated[bool, absent_if(True)] = True  # Lost, a record more is written.
    seen: Annotated[int | None, absent_if(None)] = None  # Lost, the entry is dated later.
    answer: Annotated[Answer | None, absent_if(None)] = None  # Lost, a retry is refused.
    request: Annotated[str | None, absent_if(None)] = None
    content: Annotated[str | None, absent_if(None)] = None  # Lost, another content is not told.

    def owed_outputs(self, source: str) -> tuple[Output, ...]:
        """The outputs that it owes, but for staged ones.

        Args:
            source: of the entity that sends them.
        """
        if not isinstance(self.owed, tuple):
            return ()
        pairs = zip(self.outputs, self.owed, strict=True)
        return tuple(content.output(ref, source, self.at) for ref, content in pairs)


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Apart:
    """What an entity has in the library's partition that its ledger relies on.

    Attributes:
        records: processed records, of entries that left.
        channels: documents of channels, of those that left.
        sealed: the seal, which shows that the entity had a ledger, after clean-up has taken everything else.
        forgotten: the channels that clean-up has forgotten; None if it never forgot one.
    """

    records: bool = False
    channels: bool = False
    sealed: bool = False
    forgotten: Forgotten | None = None

    @property
    def turn(self) -> str:
        """Of the documents of channels that leave."""
        return "" if self.forgotten is None else self.forgotten.turn

    def forgets(self, channel: str) -> bool:
        """Whether a channel may have been forgotten, if it is not known."""
        return self.forgotten is not None and self.forgotten.includes(channel)


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Ledger:
    """The library's property of an entity document.

    Attributes:
        version: number of messages committed on this entity; releases of kept messages count, too.
        token: session token of the library's partition for this entity, at or after the last write there that this
            document relies on; None if there was none.
        entries: the latest transactions, oldest first.
        channels: what was received through them; those that received the latest messages come last.
        apart: what else lies in the library's partition.
        deleted: the entity was deleted; the document remains as a tombstone, so that late duplicates are known.
        schema: version of this shape.
        type: of the entity. Two types may share a container, but a document belongs to one.
        protocol: that the entity is processed by; another one would not know its duplicates.
        sequences: the numbers given out. They go on after a deletion.
        snapshot_every: how far apart the whole states in the entity's version stream are; None if it has none.
        event_sourced: whether that stream holds what happened, in place of the way back.
        receptions: how far this read model has received the channels that make it.
        calls: ids of the calls whose replies are awaited.
        kept: messages that are kept until they are due, in the order in which they were sent.
        unrecorded: how many of the messages have neither a number nor a record: replies to calls, and opened requests.
        entity: key of the entity. A ledger that was copied to another document names the one it is of.
        marks: of the latest messages, the oldest first. `version` is the number of marks and of those that have left.
        to: destinations that marks and entries name.
        complete: time of the newest mark that has left, in milliseconds since 1970; -1 if none has. A timed message that is
            younger and has no mark here was never processed.
        left: how many marks have left, those that expired included.
        cut: version of the ledger from which the newest page was cut; `FIRST` if there is none.
        until: time of the newest mark in that page; -1 if there is none.
        answers: to requests among the marks.
        outbox: transactions whose outputs are not known to be sent.
    """

    version: int = 0
    token: str | None = None
    entries: tuple[Entry, ...] = ()
    channels: Channels = ()
    apart: Apart = Apart()
    deleted: bool = False
    schema: int = SCHEMA
    type: str = ""
    protocol: str = "outbox"
    sequences: Sequences = ()
    snapshot_every: int | None = None
    event_sourced: bool = False
    receptions: tuple[Reception, ...] = ()
    calls: Calls = ()
    kept: tuple[Kept, ...] = ()
    unrecorded: Annotated[int, absent_if(0)] = 0  # Lost, the audit misses records of them.
    entity: Annotated[str, absent_if("")] = ""
    marks: Annotated[str, absent_if("")] = ""
    to: Annotated[tuple[str, ...], absent_if(())] = ()
    complete: Annotated[int, absent_if(-1)] = -1
    left: Annotated[int, absent_if(0)] = 0
    cut: Annotated[int, absent_if(FIRST)] = FIRST
    until: Annotated[int, absent_if(-1)] = -1
    answers: Annotated[tuple[KeptAnswer, ...], absent_if(())] = ()
    outbox: Annotated[tuple[OutboxEntry, ...], absent_if(())] = ()

    @property
    def owing_since(self) -> datetime | None:
        """`at` of the oldest entry that still owes outputs, or when the first kept message is due, whichever is earlier."""
        owing = (entry.at for entry in self.entries if entry.owed is not None)
        return min((*islice(owing, 1), *(one.due for one in self.kept)), default=None)

    @property
    def transactions(self) -> frozenset[str]:
        """What names the staged documents that the ledger may rely on."""
        return frozenset((*(entry.tx for entry in self.entries), *(one.tx for one in self.kept)))

    @property
    def owing(self) -> frozenset[str]:
        """Transactions that still owe outputs."""
        return frozenset(entry.tx for entry in self.entries if entry.owed is not None)

    def unpublished(self, transactions: Iterable[str]) -> tuple[Entry, ...]:
        """The entries once these transactions owe nothing, without those that nobody needs any more."""
        published = frozenset(transactions)
        kept = (entry for entry in self.entries if entry.recorded or not (entry.owed is None or entry.tx in published))
        return tuple(
            replace(entry, owed=None) if entry.owed is not None and entry.tx in published else entry for entry in kept
        )

    def with_published(self, transactions: Iterable[str]) -> Ledger:
        """The ledger in which these transactions owe nothing."""
        return replace(self, entries=self.unpublished(transactions))


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
    if isinstance(raw, dict):
        raw.pop("owing_since", None)  # Derived from the entries; stored for queries only.
        if raw.get("protocol") == MARKS:
            raw = {**_empty(), **raw}
    name = f"The ledger of entity {entity} (property {LEDGER!r})"
    ledger = read_shape(Ledger, raw, name)
    if any(isinstance(entry.owed, tuple) and len(entry.owed) != len(entry.outputs) for entry in ledger.entries):
        raise damaged(name, "an entry owes the contents of more or fewer outputs than it has")
    if ledger.protocol == MARKS:
        _require_consistent(ledger, entity, name)
    if ledger.type not in ("", entity.type):
        raise IdTaken(
            f"The document of entity {entity} belongs to an entity of type {ledger.type!r}. Nothing was changed. Two types "
            "that share a container need ids that differ: return such keys from key=.",
            kept="its id is that of an entity of another type",
        )
    return EntityView(None if ledger.deleted else Json.of(properties), ledger)


@cache
def _empty() -> dict[str, Any]:
    """What a ledger that leaves out what is empty means. Its own version, type and protocol are never left out."""
    return {name: value for name, value in write_shape(Ledger()).items() if name not in _STATED}


def _require_consistent(ledger: Ledger, entity: EntityRef, name: str) -> None:
    """Raise `DamagedDocument` unless the marks are what the rest of the ledger says of them."""
    if ledger.entity not in ("", entity.key):
        raise damaged(name, f"it is a copy of the ledger of {ledger.entity}")
    marks = split(ledger.marks)
    if len(marks) + ledger.left != ledger.version:
        raise damaged(
            name, f"{len(marks)} marks and {ledger.left} that have left are not its version, {ledger.version}"
        )
    if list(marks) != sorted(marks):
        raise damaged(name, "its marks are in no order")
    try:
        named = {destination_place(digit) for one in marks for digit in Mark.read(one).sent if digit != KEPT}
    except ValueError as error:
        raise damaged(name, str(error)) from None
    named |= {output.to for entry in ledger.outbox for output in entry.outputs}
    if named and max(named) >= len(ledger.to):
        raise damaged(name, "a mark or an entry names a destination that its list does not have")


def entity_document(body: Json, ledger: Ledger) -> Json:
    """Put an entity document together; the ledger comes last, below what people look for."""
    if ledger.protocol == MARKS:
        return body.plus(LEDGER, _slim(ledger))
    at = ledger.owing_since
    owing_since = Json.of(None if at is None else at.isoformat().replace("+00:00", "Z"))
    return body.plus(LEDGER, shape_json(ledger).plus("owing_since", owing_since))


def _slim(ledger: Ledger) -> Json:
    """A ledger without what is empty."""
    written = adapter(Ledger).dump_json(ledger, exclude_defaults=True).decode()
    return Json(written).plus("schema", Json.of(ledger.schema))


def entry_size(entry: Entry) -> int:
    """Bytes an entry takes in a document."""
    return shape_json(entry).size
