"""What an attempt is given, and what comes of it: the contract between strategies, drivers and the checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol

from exactlyonce.effects.effect import Step
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.records.companions import Event
from exactlyonce.records.ledger import Ledger
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


@dataclass(frozen=True, slots=True)
class Settled:
    """A message that the host gave up on needs no further delivery.

    Attributes:
        outcome: "processed", and all its outputs are published; or "parked", kept for whoever mends the cause.
        memory: for whatever this process does next on the entity, such as marking.
    """

    outcome: Literal["processed", "parked"]
    memory: Memory


Unfinished = Literal["owing", "holding"]
"""What the sweeper looks for: entities that owe outputs, and read models that hold messages."""


class Attempts(Protocol):
    """What drivers need of a protocol: attempts at messages, and marks."""

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        ...

    @property
    def forgets(self) -> bool:
        """Whether clean-up deletes what proves a message processed, so that an unknown message has to be judged by its age."""
        ...

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process the messages of `work`. Bounded: it never loops over effects; trying again is the driver's."""
        ...

    def mark(self, entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
        """Record that what this process published is published, where no commit has done so yet."""
        ...


class Strategy(Attempts, Protocol):
    """A protocol, whole: all that is ever done on its entities.

    The steps in `exactlyonce.protocols.steps` serve strategies of an application's own as well.
    """

    @property
    def name(self) -> str:
        """As ledgers name it, for ever: a document belongs to the protocol that its ledger names."""
        ...

    @property
    def companions(self) -> bool:
        """Whether its records lie in the entity's own partition."""
        ...

    @property
    def unfinished(self) -> tuple[Unfinished, ...]:
        """What the sweeper looks for."""
        ...

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Do what is left to do about an entity: publish what it owes, and mark it. `work` has no messages."""
        ...

    def settle(self, work: Work, came: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message that the host gave up on: finish it if it was processed, or park it behind a fence.

        Args:
            work: the entity, its handler, and the one message.
            came: the message as it was delivered, its data in it or elsewhere; so it is parked, and sent again.
            reason: why it could not be processed. Operators see it, so it must not quote the message.
            memory: what this process knows of the entity.

        Raises:
            StoredDataError: a document cannot be trusted; the message stays where it is.
            HandlerError: a duplicate in a stream cannot be handled again as it was; the message stays where it is.
            ConfigurationError: the entity belongs to another protocol.
        """
        ...

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether anything proves, in the view that answers, that a message was processed.

        The absence of proof proves nothing: clean-up may have deleted it, and a commit may have yet to land.
        """
        ...

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """Those of the attempts that a record or companion proves committed, or might. One effect at most."""
        ...

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete those of the candidates that nothing needs. The deletion is not answered: count by reading.

        Args:
            entity: whose they are.
            candidates: records that are older than the retention, each with its ETag as it was read when its age was judged:
                by the key of the message in the library's container, by the id of the document in the entity's partition.
                At most 100, oldest first.
            memory: what this process knows of the entity.
        """
        ...


def key_of(envelope: Envelope) -> str:
    """The key of a message, as records name it."""
    return message_key(envelope.source, envelope.id)
