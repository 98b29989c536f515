"""Documents of the library's container."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import with_config

from exactlyonce.records.answers import Answer
from exactlyonce.records.books import Book
from exactlyonce.records.channels import Channel
from exactlyonce.records.ledger import Apart, Entry
from exactlyonce.records.outputs import Output, OutputRef
from exactlyonce.records.pages import Page
from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, read_shape, write_shape


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ProcessedRecord:
    """What remains of an entry that left: its message was processed, its outputs were published, and its answer."""

    entity: str
    message: str
    tx: str
    version: int
    at: datetime
    outputs: tuple[OutputRef, ...]
    digest: str
    answer: Annotated[Answer | None, absent_if(None)] = None
    kind: Literal["processed"] = "processed"
    schema: int = SCHEMA


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class StagedOutputs:
    """Outputs too large for the entity document, written before the commit that may or may not follow."""

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
        at: when it was parked, by the clock of its process. Never used to judge age.
        envelope: as it came, or was to leave; a string in documents.
        destination: where an output was to go that was too old to be published; None for a message that came.
        renewed: when it was made a new message, by the store's clock; None if it has the identity it came with.
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
class ChannelDocument:
    """A channel that left the ledger. Such documents are never changed: what several say of one channel is true together.

    Attributes:
        entity: key of the receiver.
        channel: what was received through it.
        version: of the ledger that the channel was read from. So all attempts that started from that ledger write the same.
        turn: of the clean-up that forgot channels last; "" before the first.
    """

    entity: str
    channel: Channel
    version: int
    turn: str = ""
    kind: Literal["channel"] = "channel"
    schema: int = SCHEMA

    @property
    def name(self) -> str:
        """Channel, version and turn, which name the document."""
        return ":".join((self.channel.id, str(self.version), *filter(None, [self.turn])))

    def counts(self, apart: Apart) -> bool:
        """Whether what the document says is part of what a ledger relies on."""
        return self.turn == apart.turn or not apart.forgets(self.channel.id)


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Seal:
    """Shows that an entity has a ledger. It stays for good."""

    entity: str
    kind: Literal["seal"] = "seal"
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


LibraryRecord = ProcessedRecord | StagedOutputs | ParkedMessage | ChannelDocument | Seal | RequestDocument | Page | Book
"""What lies in the library container."""


def processed_record(entity: EntityRef, entry: Entry) -> ProcessedRecord:
    """The record of an entry that leaves the window."""
    return ProcessedRecord(
        entity.key, entry.message, entry.tx, entry.version, entry.at, entry.outputs, entry.digest, entry.answer
    )


def read_processed(document: Any) -> ProcessedRecord:
    """Read a processed record. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(ProcessedRecord, document, "A processed record")


def read_staged(document: Any) -> StagedOutputs:
    """Read a staged document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(StagedOutputs, document, "A staged document")


def read_channel(document: Any) -> ChannelDocument:
    """Read the document of a channel. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(ChannelDocument, document, "A document of a channel")


def read_parked(document: Any) -> ParkedMessage:
    """Read a parked document. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(ParkedMessage, document, "A parked document")


def read_request(document: Any) -> RequestDocument:
    """Read the document of a request. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(RequestDocument, document, "The document of a request")


def library_document(record: LibraryRecord) -> dict[str, Any]:
    """A record as a document of the library container, without the id and partition key its layout gives it."""
    return write_shape(record)
