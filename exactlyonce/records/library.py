"""Documents of the library's container."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import with_config

from exactlyonce.records.answers import Answer
from exactlyonce.records.books import Book
from exactlyonce.records.outputs import Output
from exactlyonce.records.pages import Page
from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, read_shape, write_shape

UNPARKED: Final = "unparked"
"""Kind of what takes the place of a parked document."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StagedOutputs:
    """Messages that an entity keeps until they are due, written before the commit that may or may not follow."""

    entity: str
    message: str
    tx: str
    at: datetime
    outputs: tuple[Output, ...]
    kind: Literal["staged"] = "staged"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ParkedMessage:
    """A message that the host gave up on and that was never processed: kept until an operator has repaired the cause.

    Attributes:
        entity: key of the entity that it is for.
        message: key of the message.
        reason: why it cannot be processed. For people and logs, so never a part of the body.
        at: when it was parked, by the clock of its process. A new message that it is made has this time, or one that derives
            from it.
        envelope: as it came, or was to leave; a string in documents.
        destination: where an output was to go that was too old to be published; None for a message that came.
        renewed: time of the new message that it was made; None if it has the identity it came with.
        place: in its channel, as it says; None if it has none, or says one that cannot be.
    """

    entity: str
    message: str
    reason: str
    at: datetime
    envelope: Json
    destination: str | None = None
    renewed: datetime | None = None
    place: Place | None = None
    kind: Literal["parked"] = "parked"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Unparked:
    """What is left of a message that is parked no longer, so that an audit does not call it lost.

    Attributes:
        entity: key of the entity under which it was parked.
        message: key of the message.
        sent: key under which it was sent again: its own, or that of the new message it was made; None if it was discarded.
    """

    entity: str
    message: str
    sent: Annotated[str | None, absent_if(None)] = None
    kind: Literal["unparked"] = UNPARKED
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class RequestDocument:
    """A request that a caller opened: its message, and then its answer. It stays until its caller closes it.

    Attributes:
        entity: key of the entity that it is for.
        request: its id, which was made when it was opened.
        at: when it was opened, or carried out. Never used to judge age.
        envelope: the message, a string in documents; None once there is an answer.
        answer: of the commit that carried it out; None while it is open.
    """

    entity: str
    request: str
    at: datetime
    envelope: Json | None
    answer: Answer | None
    kind: Literal["request"] = "request"
    schema: int = SCHEMA


LibraryRecord = StagedOutputs | ParkedMessage | Unparked | RequestDocument | Page | Book
"""What lies in the library container."""


def read_staged(document: Any) -> StagedOutputs:
    """Read a staged document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(StagedOutputs, document, "A staged document")


def read_parked(document: Any) -> ParkedMessage:
    """Read a parked document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(ParkedMessage, document, "A parked document")


def read_request(document: Any) -> RequestDocument:
    """Read the document of a request. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(RequestDocument, document, "The document of a request")


def library_document(record: LibraryRecord) -> dict[str, Any]:
    """A record as a document of the library container, without the id and partition key its layout gives it."""
    return write_shape(record)
