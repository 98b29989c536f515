"""What an attempt is given, and what comes of it: the contract between strategies, drivers and the checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from exactlyonce.effects.effect import Step
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import Event
from exactlyonce.records.outputs import Output, OutputRef
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, message_key
from exactlyonce.values.lifetimes import RETENTION


@dataclass(frozen=True, slots=True)
class Handled:
    """What a handler made of one message.

    Attributes:
        body: the entity document without the library's property; only id and key if the entity was deleted.
        outputs: the messages to publish once it is committed.
        deleted: the document becomes a tombstone.
        sequences: the numbers given out, those of before included.
        blobs: to be written before it is committed.
        events: what happened, where the entity is event-sourced; None elsewhere.
    """

    body: Json
    outputs: tuple[Output, ...] = ()
    deleted: bool = False
    sequences: Sequences = ()
    blobs: tuple[Blob, ...] = ()
    events: tuple[Event, ...] | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """What a handler starts from, besides its message.

    Attributes:
        body: the entity document without the library's property; None if absent or deleted.
        at: time of the attempt.
        tx: transaction id of the message in this attempt.
        sequences: the numbers that the entity has given out.
        sent: where a message is handled again, what it sent the first time; None elsewhere. No handler sees it.
    """

    body: Json | None
    at: datetime
    tx: str
    sequences: Sequences = ()
    sent: tuple[OutputRef, ...] | None = field(default=None, compare=False)


Handle = Callable[[Before, Envelope], Handled]
"""What a handler starts from, and a message, to the result; raises `ExactlyOnceError`. Pure."""


Refusal = Callable[[datetime | None, datetime], ExactlyOnceError | None]
"""By the `time` of a message and the store's present: why it cannot be judged; None if it can. As `Lifetimes.refusal`."""


def never(time: datetime | None, now: datetime) -> None:
    """The `Refusal` of nothing, where nothing is ever cleaned up."""
    del time, now


Evolve = Callable[[Json | None, tuple[Event, ...]], Json]
"""The body that events lead to from another one (None if absent); raises `ExactlyOnceError`. Pure."""


@dataclass(frozen=True, slots=True)
class Work:
    """Messages for one entity, to be committed together.

    Attributes:
        entity: that they are for.
        messages: to be processed.
        handle: handles one of them.
        absent: the id and partition key properties of the entity's document, for when it has to be saved without a state.
        evolve: applies events, where the entity is event-sourced; None elsewhere.
        retention: age from which a ledger that keeps everything may forget.
        refusal: of messages that are so old that clean-up may have taken what is needed to handle them again.
    """

    entity: EntityRef
    messages: tuple[Envelope, ...]
    handle: Handle
    absent: Json
    evolve: Evolve | None = None
    retention: timedelta = RETENTION
    refusal: Refusal = never


@dataclass(frozen=True, slots=True)
class Remembered:
    """The entity document as this process last saved it, so that marking needs no read."""

    document: Json
    etag: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process knows of an entity from its own attempts. Losing it costs requests, never the guarantee.

    Attributes:
        entity_token: session token for the entity document.
        library_token: session token for the entity's partition in the library container.
        published: transactions whose outputs this process published, though the document may not say so yet.
        saved: the document, while it says that some of `published` still owe.
    """

    entity_token: str | None = None
    library_token: str | None = None
    published: frozenset[str] = frozenset()
    saved: Remembered | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """Every message of the attempt may be acknowledged, but for those that failed.

    Attributes:
        memory: for the next attempt on this entity in this process.
        processed: keys of the messages committed now.
        failed: key and error of each message that cannot be committed; none of them changed anything.
        stopped: key and error of each message that is held because its handler raised, with what follows it.
    """

    memory: Memory
    processed: tuple[str, ...] = ()
    failed: tuple[tuple[str, ExactlyOnceError], ...] = ()
    stopped: tuple[tuple[str, ExactlyOnceError], ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """The messages of the attempt may not be acknowledged yet. Start over from load, or give the deliveries back.

    Attributes:
        memory: for the next attempt; its tokens are those of the replies.
        reason: for logs, as the end of "trying again: …".
        progressed: whether it committed something, so that it is no sign of trouble to start over at once.
    """

    memory: Memory
    reason: str
    progressed: bool = False


class Strategy(Protocol):
    """A protocol that makes state changes and outputs happen exactly once."""

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        ...

    @property
    def forgets(self) -> bool:
        """Whether what tells of a message goes with age, so that a message that is not known has to be judged by its own."""
        ...

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process the messages of `work`. Bounded: it never loops over effects; trying again is the driver's."""
        ...

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Record that what this process published is published, where no commit has done so yet."""
        ...


def key_of(envelope: Envelope) -> str:
    """The key of a message, as records name it."""
    return message_key(envelope.source, envelope.id)
