"""Companions: documents of the library in the container of an entity, under the entity's full partition key.

Companions are written in one transactional batch with the entity's document. The id of a companion derives from its subject,
so writing the same thing twice collides. The reserved property `_kind` lets queries of users skip companions:
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
from exactlyonce.records.outbox import Answer, Output, OutputRef, Place
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import EXACT, SCHEMA, Json, absent_if, read_shape, write_shape

KIND: Final = "_kind"
"""Property of companions only, never of an entity's document."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST_PLAIN_ID: Final = 200


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ColocatedRecord:
    """One message processed by the co-located protocol.

    Attributes:
        entity: key of the entity.
        message: key of the message.
        tx: transaction id, fresh for every message of every attempt.
        version: entity version produced by the commit.
        at: time of the attempt, by the clock of its process. Never used to judge age.
        outputs: ids, destinations and places of all outputs.
        digest: digest of the outputs' content.
        owed: outputs not yet proved published; None once published.
        owing_since: `at` while outputs are owed, for queries; None otherwise.
        answer: the answer to the request; None if the message came by a queue.
        content: `Envelope.content` of a message from a queue; None for a request.
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
    """An event of an event-sourced entity, under its registered name."""

    type: str
    data: Json


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One message in the version stream of an entity.

    Attributes:
        entity: key of the entity.
        message: key of the message.
        tx: transaction id, fresh for every message of every attempt.
        version: entity version produced by the commit.
        at: time given to the handler.
        envelope: the message, so that it can be handled again without its sender.
        before: the handler's starting state: all of it, or, if not `whole`, the RFC 6902 patch that leads there from the
            result; None where the events of earlier entries lead there. See `protocols.stream`.
        whole: whether `before` is the whole state.
        outputs: ids, destinations and places of all outputs.
        digest: digest of the outputs' content.
        events: the events; None if the entity is not event-sourced.
        owed: outputs of a request not yet proved published, since nobody delivers a request again; else None.
        owing_since: `at` while outputs are owed, for queries; None otherwise.
        answer: the answer to the request; None if the message came by a queue.
        since: time of the outputs, in milliseconds since 1970. Handling the message again uses the same time, whatever the
            settings are by then.
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
    """The message at one number of a channel received by a read model.

    Attributes:
        entity: key of the read model.
        order: place of the message in the channel.
        source: source of the message.
        message: key of the message; None for a skipped number without a message.
        at: time of arrival, by the clock of the process. Never used to judge age.
        held: the envelope while it waits for lower numbers; None once released or skipped.
        late: whether the message was handled after a message of another source that should have followed.
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
        return self.order.channel

    @property
    def number(self) -> int:
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
    """Id of the document of a number."""
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
    """A companion as a document, without the partition key properties, which the container adds."""
    written = write_shape(companion)
    return {"id": id_of(entity, companion), KIND: written.pop("kind"), **written}


def read_companion(entity: EntityRef, document: dict[str, Any]) -> Companion:
    """Read a companion.

    Args:
        entity: owner of the partition.
        document: the document with its id, without the service's properties and the partition key.

    Raises:
        DamagedDocument: the document is no companion, or its content contradicts its id.
        NewerSchema: a newer version of the library wrote it.
    """
    properties = dict(document)
    id, kind = properties.pop("id"), properties.pop(KIND, None)
    shape = _SHAPES.get(str(kind))
    if shape is None:
        raise DamagedDocument(
            f"Document {id!r} in the partition of entity {entity} has an id of the library's form, but the library "
            "did not write the document. Nothing was changed. Give the document another id."
        )
    companion = read_shape(shape, {**properties, "kind": kind}, f"Companion {id!r} of entity {entity}")
    if companion.entity != entity.key or id_of(entity, companion) != id:
        raise DamagedDocument(
            f"Companion {id!r} of entity {entity} has the content of another companion. Nothing was changed. "
            "Restore the companion from a backup; or delete it, if it was put there by hand."
        )
    return companion


def _id(kind: str, entity: EntityRef, *values: str) -> str:
    """Kind, entity and values where ids may hold them, else their hash. Entities that share a partition do not collide."""
    parts = (entity.id, *values)
    plain = ":".join((kind, *parts))
    if len(plain) <= _LONGEST_PLAIN_ID and all(_PLAIN.fullmatch(part) for part in parts):
        return plain
    return f"{kind}:~{hashlib.sha256(Json.of(parts).text.encode()).hexdigest()}"
