"""Companions: documents of the library in the container of an entity, under its full partition key.

They are written in one transactional batch with the entity's document. Their id derives from what they are about, so that
writing the same thing twice collides. The reserved property `_kind` lets queries of users skip them:
`WHERE NOT IS_DEFINED(c._kind)`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.errors import DamagedDocument
from exactlyonce.records.outbox import Answer, Output, OutputRef
from exactlyonce.records.sequences import Place
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, read_shape, write_shape

KIND: Final = "_kind"
"""Property that only companions have, and no document of an entity."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST_PLAIN_ID: Final = 200


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ColocatedRecord:
    """One message processed by the co-located protocol.

    Attributes:
        entity: its key.
        message: key of the message.
        tx: transaction id, fresh for every message of every attempt.
        version: of the entity, which this commit produced.
        at: time of the attempt, by the clock of its process. Never used to judge age.
        outputs: ids, destinations and places of all outputs.
        digest: of the outputs' content.
        owed: outputs not yet known to be published; None when they are.
        owing_since: `at` while it owes, for queries; None otherwise.
        answer: to the request that the message came by; None if it came by a queue.
        content: `Envelope.content` of the message, if it came by a queue; else None.
    """

    entity: str
    message: str
    tx: str
    version: int
    at: datetime
    outputs: tuple[OutputRef, ...]
    digest: str
    owed: tuple[Output, ...] | None
    owing_since: datetime | None
    answer: Annotated[Answer | None, absent_if(None)] = None  # Lost, a retry is refused.
    content: Annotated[str | None, absent_if(None)] = None  # Lost, another content is not told.
    kind: Literal["processed"] = "processed"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Event:
    """What happened to an event-sourced entity, under its registered name."""

    type: str
    data: Json


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One message in the version stream of an entity.

    Attributes:
        entity: its key.
        message: key of the message.
        tx: transaction id, fresh for every message of every attempt.
        version: of the entity, which this commit produced.
        at: time that the handler was given.
        envelope: the message, so that it can be handled again without its sender.
        before: what the handler started from: all of it, or, if not `whole`, the RFC 6902 patch that makes it from what came
            out; None where the events of earlier entries lead to it. See `strategies.versions`.
        whole: whether it is all of it.
        outputs: ids, destinations and places of all outputs.
        digest: of the outputs' content.
        events: what happened; None if the entity is not event-sourced.
        owed: outputs not yet known to be published, if the message came by a request, which nobody delivers again; else None.
        owing_since: `at` while it owes, for queries; None otherwise.
        answer: to the request that the message came by; None if it came by a queue.
        since: time of the outputs, in milliseconds since 1970. What is handled again has it, whatever the settings are by then.
    """

    entity: str
    message: str
    tx: str
    version: int
    at: datetime
    envelope: Json
    before: Json | None
    whole: bool
    outputs: tuple[OutputRef, ...]
    digest: str
    events: tuple[Event, ...] | None = None
    owed: Annotated[tuple[Output, ...] | None, absent_if(None)] = None
    owing_since: Annotated[datetime | None, absent_if(None)] = None
    answer: Annotated[Answer | None, absent_if(None)] = None  # Lost, a retry is refused.
    since: Annotated[int | None, absent_if(None)] = None  # Lost, a duplicate is not deterministic.
    kind: Literal["entry"] = "entry"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class NumberedMessage:
    """The message that has a number in a channel that a read model receives.

    Attributes:
        entity: key of the read model.
        order: its place in the channel.
        source: of the message.
        message: its key; None where the number was skipped without one.
        at: when it came, by the clock of the process. Never used to judge age.
        held: the envelope while it waits for those before it; None once it was released or skipped.
        late: whether it was handled after a message of another source that it should have preceded.
    """

    entity: str
    order: Place
    source: str
    message: str | None
    at: datetime
    held: Json | None
    late: bool = False
    kind: Literal["numbered"] = "numbered"
    schema: int = SCHEMA

    @property
    def channel(self) -> str:
        """Of its place."""
        return self.order.channel

    @property
    def number(self) -> int:
        """Of its place."""
        return self.order.number


Companion = ColocatedRecord | StreamEntry | NumberedMessage

_SHAPES: Final[dict[str, type[Companion]]] = {
    "processed": ColocatedRecord,
    "entry": StreamEntry,
    "numbered": NumberedMessage,
}


def record_id(entity: EntityRef, message: str) -> str:
    """Id of the co-located record of a message."""
    return _id("processed", entity, message)


def entry_id(entity: EntityRef, message: str) -> str:
    """Id of the stream entry of a message."""
    return _id("entry", entity, message)


def numbered_id(entity: EntityRef, channel: str, number: int) -> str:
    """Id of the document for a number."""
    return _id("numbered", entity, channel, str(number))


def id_of(entity: EntityRef, companion: Companion) -> str:
    """Id of a companion."""
    match companion:
        case ColocatedRecord():
            return record_id(entity, companion.message)
        case StreamEntry():
            return entry_id(entity, companion.message)
        case NumberedMessage():
            return numbered_id(entity, companion.channel, companion.number)


def companion_document(entity: EntityRef, companion: Companion) -> dict[str, Any]:
    """A companion as a document, without the partition key properties that its container wants."""
    written = write_shape(companion)
    return {"id": id_of(entity, companion), KIND: written.pop("kind"), **written}


def read_companion(entity: EntityRef, document: dict[str, Any]) -> Companion:
    """Read a companion.

    Args:
        entity: whose partition it is in.
        document: with its id, without the service's properties and the partition key.

    Raises:
        DamagedDocument: it is none, or about something else than its id says.
        NewerSchema: a newer version of the library wrote it.
    """
    properties = dict(document)
    id, kind = properties.pop("id"), properties.pop(KIND, None)
    shape = _SHAPES.get(str(kind))
    if shape is None:
        raise DamagedDocument(
            f"Document {id!r} in the partition of entity {entity} has an id as the library gives, and the library did "
            "not write it. Nothing was changed. Give it another id."
        )
    companion = read_shape(shape, {**properties, "kind": kind}, f"Companion {id!r} of entity {entity}")
    if companion.entity != entity.key or id_of(entity, companion) != id:
        raise DamagedDocument(
            f"Companion {id!r} of entity {entity} has the content of another one. Nothing was changed. "
            "Restore it from a backup; or delete it, if it was put there by hand."
        )
    return companion


def _id(kind: str, entity: EntityRef, *values: str) -> str:
    """Kind, entity and values where ids may hold them, or their hash. Entities that share a partition do not collide."""
    parts = (entity.id, *values)
    plain = ":".join((kind, *parts))
    if len(plain) <= _LONGEST_PLAIN_ID and all(_PLAIN.fullmatch(part) for part in parts):
        return plain
    return f"{kind}:~{hashlib.sha256(Json.of(parts).text.encode()).hexdigest()}"
