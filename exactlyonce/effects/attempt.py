"""Attempts: their input, their results, and the port `Strategy`. The contract between protocols, drivers and the checker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from exactlyonce.effects.effect import Step
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.records.companions import Event
from exactlyonce.records.ledger import Calls, EntityView, Ledger
from exactlyonce.records.outbox import Answer, Output, OutputRef, Sequences
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import RETENTION


@dataclass(frozen=True, slots=True)
class Handled:
    """The result of handling one message.

    Attributes:
        body: the entity document without the library's property; only id and key if the entity was deleted.
        outputs: the messages to publish after the commit.
        deleted: whether the document becomes a tombstone.
        sequences: every sequence of the entity, with the numbers given out so far.
        blobs: content to write before the commit.
        events: events of an event-sourced entity; None for a plain one.
        answer: the answer to the request; None if the message came by a queue.
        calls: ids of the outputs that are calls.
        kept: messages to keep, with due times.
        cancelled: ids of kept messages that the handler cancelled.
    """

    body: Json
    outputs: tuple[Output, ...] = ()
    deleted: bool = False
    sequences: Sequences = ()
    blobs: tuple[Blob, ...] = ()
    events: tuple[Event, ...] | None = None
    answer: Answer | None = None
    calls: Calls = ()
    kept: tuple[tuple[datetime, Output], ...] = ()
    cancelled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Before:
    """The input of a handler, besides its message.

    Attributes:
        body: the entity document without the library's property; None if absent or deleted.
        tx: transaction id of the message in the attempt.
        sequences: the numbers given out by the entity so far.
        sent: the outputs of the first time, when a message is handled again; None the first time. Hidden from handlers.
        version: entity version produced by the commit; None where the strategy keeps no calls.
        kept: ids of the kept messages; None where the strategy keeps none.
        since: stable time of the outputs, in milliseconds since 1970; None if untimed.
        folder: folder for the handler's blobs; None for `tx`.
    """

    body: Json | None
    at: datetime
    tx: str
    sequences: Sequences = ()
    sent: tuple[OutputRef, ...] | None = field(default=None, compare=False)
    version: int | None = None
    kept: frozenset[str] | None = None
    since: int | None = None
    folder: str | None = None


Handle = Callable[[Before, Envelope], Handled]
"""Handles a message. Pure; raises `ExactlyOnceError`."""


Release = Callable[[Before, Output], Handled]
"""Sends a kept message that is due: sets its time and its number. Pure; raises `ExactlyOnceError`."""


def keeps_nothing(before: Before, kept: Output) -> Handled:
    """The `Release` of entity types without kept messages."""
    raise ConfigurationError(
        f"Message {kept.id} cannot be released at {before.at}: no handler of its entity keeps messages."
    )


Refusal = Callable[[datetime | None, datetime], ExactlyOnceError | None]
"""Takes a message's `time` and the store's present; returns an error if the message's age forbids judging, else None."""


def never(time: datetime | None, now: datetime) -> None:
    """The `Refusal` of a strategy that never forgets: refuses nothing."""
    del time, now


Evolve = Callable[[Json | None, tuple[Event, ...]], Json]
"""Applies events to a body (None if absent). Pure; raises `ExactlyOnceError`."""


@dataclass(frozen=True, slots=True)
class Work:
    """Messages for one entity, to be committed together.

    Attributes:
        absent: the id and partition key properties of the entity's document, for saving it without a state.
        evolve: applies the events of an event-sourced entity; None for others.
        retention: age from which marks and pages may go.
        refusal: refuses duplicates so old that clean-up may have deleted the state before them.
        send_limit: age of a message above which its outputs are untimed.
        page_lifetime: time for which the store keeps a page after its newest mark, independent of clean-up.
        senders: entity types of this application; their messages are inner messages.
    """

    entity: EntityRef
    messages: tuple[Envelope, ...]
    handle: Handle
    absent: Json
    evolve: Evolve | None = None
    retention: timedelta = RETENTION
    refusal: Refusal = never
    release: Release = keeps_nothing
    send_limit: timedelta = RETENTION
    page_lifetime: timedelta = 2 * RETENTION
    senders: frozenset[str] = frozenset()


SHARED: Final = -2
"""Another process saved the entity, and probably will again. A failed attempt costs a request more than a load."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The entity document as this process last saw it; an attempt may start from here.

    Attributes:
        document, etag: as saved or loaded.
        right: count in a row of loads that confirmed the remembered document; `SHARED` after a refuting one.
        parts: the document taken apart, to save reading again; None if not at hand.
    """

    document: Json
    etag: str
    right: int = 0
    parts: EntityView | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Memory:
    """An entity as seen by this process's own attempts. Losing the memory costs requests, never the guarantee.

    Attributes:
        entity_token: session token for the entity document.
        library_token: session token for the entity's partition in the library container.
        saved: the document as this process last saved or loaded it; None if unseen or not needed.
    """

    entity_token: str | None = None
    library_token: str | None = None
    saved: Remembered | None = None

    def compared(self, etag: str | None) -> Memory:
        """The memory after a load of the entity with this ETag."""
        if self.saved is None:
            return self
        right = self.saved.right + 1 if self.saved.etag == etag else SHARED
        return replace(self, saved=replace(self.saved, right=right))


@dataclass(frozen=True, slots=True)
class Finished:
    """Every message of the attempt may be acknowledged, except the failed ones.

    Attributes:
        memory: for the next attempt on this entity in this process.
        processed: keys of the messages committed by this attempt.
        failed: key and error of each message that cannot be committed. Failed messages changed nothing.
        stopped: key and error of each message held because its handler raised, with the messages that follow it.
        answers: key and committed answer of each request.
        contents: key and `Envelope.content`, or its beginning, of messages processed before, where stored.
    """

    memory: Memory
    processed: tuple[str, ...] = ()
    failed: tuple[tuple[str, ExactlyOnceError], ...] = ()
    stopped: tuple[tuple[str, ExactlyOnceError], ...] = ()
    answers: tuple[tuple[str, Answer], ...] = ()
    contents: tuple[tuple[str, str], ...] = ()

    def differing(self, messages: Iterable[Envelope]) -> tuple[Envelope, ...]:
        """Copies whose content differs from the processed message: the sender gave one identity to two messages.

        Args:
            messages: the messages of the attempt, in order. Among several copies, the last is processed.
        """
        copies = tuple(messages)
        last = {copy_.key: copy_ for copy_ in copies}
        contents = {key: item.content for key, item in last.items()} if len(last) < len(copies) else {}
        contents |= dict(self.contents)
        # A request is compared by its fingerprint, and its caller is told.
        return tuple(
            copy_
            for copy_ in copies
            if copy_.asked is None and not copy_.content.startswith(contents.get(copy_.key, ""))
        )


@dataclass(frozen=True, slots=True)
class Again:
    """Not all messages of the attempt may be acknowledged yet. Make another attempt, or give the deliveries back.

    Attributes:
        memory: for the next attempt; the tokens are those of the replies.
        reason: for logs, as the end of "trying again: …".
        progressed: whether the attempt committed something; the driver then starts the next attempt at once, with a fresh
            back-off.
        processed: keys of the messages finished by this attempt; the next attempt may leave them out. They may be
            acknowledged.
        answers: key and committed answer of each finished request.
    """

    memory: Memory
    reason: str
    progressed: bool = False
    processed: tuple[str, ...] = ()
    answers: tuple[tuple[str, Answer], ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """A message that the host gave up on needs no further delivery.

    Attributes:
        outcome: "processed": all outputs are published; or "parked": stored until the cause is fixed.
    """

    outcome: Literal["processed", "parked"]
    memory: Memory


Unfinished = Literal["outbox", "companions", "holding"]
"""Entities for the sweeper: with outputs owed in an outbox, or in companions, and read models with held messages."""


class Attempts(Protocol):
    """The part of a strategy used by drivers."""

    @property
    def group_limit(self) -> int:
        """Most messages that one attempt may take."""
        ...

    def forgets(self, envelope: Envelope) -> bool:
        """Whether clean-up deletes the proof of processing, so that a message without proof is judged by age."""
        ...

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process the messages of `work`; copies of a message count once. Bounded: no loops over effects; the driver retries.

        Raises:
            StoredDataError: a document cannot be trusted.
            ConfigurationError: the entity belongs to another protocol.
        """
        ...


class Strategy(Attempts, Protocol):
    """A whole protocol: every operation on its entities.

    The steps in `exactlyonce.protocols.steps` also serve an application's own strategies.
    """

    @property
    def name(self) -> str:
        """The name in ledgers, never to be changed. A document belongs to the protocol named in its ledger."""
        ...

    @property
    def companions(self) -> bool:
        """Whether records are companions, in the entity's own partition."""
        ...

    @property
    def answers(self) -> bool:
        """Whether commits keep the answers of requests."""
        ...

    @property
    def unfinished(self) -> tuple[Unfinished, ...]:
        """The kinds of unfinished entities to list for the sweeper."""
        ...

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Release the kept messages that are due, publish the outputs owed by an entity, and drop them from the entity.

        `work` has no messages.

        Raises:
            StoredDataError: a document cannot be trusted.
        """
        ...

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message given up by the host: finish a processed message, or park the message behind a fence.

        Args:
            work: the entity, its handler, and the one message.
            delivered: the envelope as delivered, with the data inside or in a blob; parked and requeued in the same form.
            reason: why processing failed. Operators see the reason, so bodies must not be quoted.

        Raises:
            StoredDataError: a document cannot be trusted; the message stays where it is.
            HandlerError: a duplicate in a stream cannot be handled as the first time; the message stays where it is.
            ConfigurationError: the entity belongs to another protocol.
        """
        ...

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether the view that answers proves a message processed.

        The absence of proof proves nothing: clean-up may have deleted the proof, and a commit may still land.
        """
        ...

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """The attempts that a record or companion proves committed, or may prove. One effect at most."""
        ...

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete the candidates that no later step needs. The deletion has no reply: count by reading.

        Args:
            candidates: records older than the retention, with their ETags at the time of judging: keys of messages for
                records in the library's container, ids for documents in the entity's partition. At most 100, oldest first.
        """
        ...
