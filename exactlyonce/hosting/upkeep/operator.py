"""Operators' actions on single entities and parked messages."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from exactlyonce.drivers.overdue import TOO_OLD
from exactlyonce.drivers.runtime import Clock
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import LoadParked
from exactlyonce.errors import (
    ConfigurationError,
    ExactlyOnceError,
    HandlerError,
    MessageError,
    StoredDataError,
    TryAgainLater,
)
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import require_readable
from exactlyonce.hosting.deliveries.triggers import named
from exactlyonce.protocols.outbox.judge import Proof
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.outbox.repair import TokenReset, renumber, reset_token
from exactlyonce.protocols.steps.park import Renewed, Requeued, SendLimit, discard, renew, requeue
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger, read_entity
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Sequences
from exactlyonce.stores.port import AsyncListing, ListedBook, ListedMessage, entity_named
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, message_hash
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import AHEAD, Lifetimes, Retention


@dataclass(frozen=True, slots=True)
class Inspected:
    """The stored documents of an entity, in the view that answered.

    Attributes:
        body: the user's properties; None if the entity is absent or deleted.
        belongings: ids, kinds and times of the library's documents about the entity.
    """

    body: Json | None
    ledger: Ledger | None
    belongings: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The stored evidence about a parked message.

    Attributes:
        receivers: the possible receivers. Each comes with the proof that it processed the message, or whether there is any
            proof, or the name of the error by which its documents cannot be read.
    """

    parked: ParkedMessage
    envelope: Envelope
    receivers: tuple[tuple[EntityRef, Proof | bool | str], ...]

    @property
    def hash(self) -> str:
        """The hash of the message in marks."""
        return message_hash(key_of(self.envelope))


@dataclass(frozen=True)
class Operator:
    """Carries out operators' requests. Each is safe at any time, twice, and while messages are processed.

    Every request raises `TryAgainLater` if the store does not answer, and `StoredDataError` if a document cannot be trusted;
    nothing was changed then.
    """

    maintenance: Maintenance
    listing: AsyncListing
    lifetimes: Callable[[], Lifetimes]
    entities: tuple[Entity[Any], ...] = ()

    def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        """All parked messages, in pages."""
        return self.listing.parked()

    async def requeue(self, entity: str, message: str, destination: str | None = None) -> Requeued:
        """Send a parked message again, under its own identity or the identity that `renew` gave.

        Args:
            entity: key of the entity that the message is parked under.
            message: key of the message.
            destination: logical name of the queue; None for the destination of an output that was never published.

        Raises:
            ConfigurationError: there is no destination of this name, or no name is given.
            MalformedMessage: the message cannot be read.
            TryAgainLater: the store or the queue did not answer.
        """
        require_readable(message)
        if destination is None:
            parked = await self.parked_message(entity, message)
            if parked is None:
                return Requeued("not parked", Memory())
            if parked.destination is None:
                raise ConfigurationError(
                    f"Message {message} came from a queue. Name its destination: --to DESTINATION. Nothing was sent."
                )
            destination = parked.destination
        self.require_destination(destination)
        to, ref, limit = destination, entity_named(entity), self._limit(entity)
        noted = noted_for(self.lifetimes().retention)
        return await self.maintenance.run(ref, lambda memory: requeue(ref, message, to, limit, memory, noted=noted))

    def require_destination(self, destination: str) -> None:
        """Raises `ConfigurationError` if the application has no destination of this name."""
        if destination not in self.maintenance.routes.limits:
            names = ", ".join(sorted(self.maintenance.routes.limits)) or "none"
            raise ConfigurationError(f"There is no destination {destination!r}; known are: {names}. Nothing was sent.")

    async def renew(self, entity: str, message: str) -> Renewed:
        """Give a parked message a new identity, if the receiver would refuse the present identity.

        By sending the message, the operator vouches that it was not processed: copies are no longer recognized. Raises
        `MalformedMessage` for a message that cannot be read.
        """
        require_readable(message)
        ref, limit = entity_named(entity), self._limit(entity)
        return await self.maintenance.run(ref, lambda memory: renew(ref, message, limit, memory))

    async def evidence(self, entity: str, message: str) -> Evidence | None:
        """The stored evidence about a parked message, before it gets a new identity; None for a message that is not parked.

        Raises `MalformedMessage` for a message that cannot be read.
        """
        require_readable(message)
        parked = await self.parked_message(entity, message)
        if parked is None:
            return None
        envelope = Envelope.read(parked.envelope.text, limit=MAX_DOCUMENT_BYTES)
        asked = [(ref, await self._knows(kind, ref, envelope)) for kind, ref in self._receivers(entity, envelope)]
        return Evidence(parked, envelope, tuple(asked))

    def _receivers(self, place: str, envelope: Envelope) -> Iterator[tuple[Entity[Any], EntityRef]]:
        """The entities of this application that a message may be for."""
        ref = entity_named(place)
        for kind in self.entities:
            if ref.type not in (kind.name, TOO_OLD):
                continue
            # The data may be in a blob, and the model may have changed.
            with suppress(MessageError, HandlerError, ConfigurationError):
                yield kind, ref if ref.type == kind.name and ref.partition else kind.ref_of(envelope)

    async def _knows(self, kind: Entity[Any], ref: EntityRef, envelope: Envelope) -> Proof | bool | str:
        strategy = kind.strategy
        try:
            if not isinstance(strategy, Outbox):
                return await self.maintenance.run(ref, lambda memory: strategy.knows(ref, envelope, memory))
            return await self.maintenance.run(ref, lambda memory: strategy.proof(ref, envelope, memory)) or False
        except (StoredDataError, ConfigurationError) as error:
            return named(error)

    def _limit(self, place: str) -> Callable[[Envelope], SendLimit | None]:
        """Gives the age above which the receiver refuses a parked message; None if the receiver never forgets the message."""
        type, limit = entity_named(place).type, self.lifetimes().send_limit
        receivers = [entity.strategy for entity in self.entities if entity.name == type]
        return lambda envelope: limit if all(receiver.forgets(envelope) for receiver in receivers) else None

    async def discard(self, entity: str, message: str) -> bool:
        """Delete a parked message for good. Returns whether there was such a message."""
        ref, noted = entity_named(entity), noted_for(self.lifetimes().retention)
        return await self.maintenance.run(ref, lambda memory: discard(ref, message, memory, noted=noted))

    def books(self) -> AsyncIterator[tuple[ListedBook, ...]]:
        """All books that have not ended, in pages."""
        return self.listing.books(0)

    async def renumber(self, entity: Entity[Any], ref: EntityRef) -> Sequences:
        """Begin fresh sequences for an entity restored from a backup, for receivers that take messages in order.

        Returns the former sequences. Raises `ConfigurationError` if the entity belongs to another protocol.
        """
        renumbered = await self.maintenance.run(ref, lambda memory: renumber(ref, entity.strategy, memory))
        return renumbered.forgotten

    async def parked_message(self, entity: str, message: str) -> ParkedMessage | None:
        """A parked message with its body; None for a message that is not parked."""
        ref = entity_named(entity)
        loaded = await self.maintenance.read(ref, LoadParked(ref, message))
        return None if loaded is None else loaded.message

    async def inspect(self, ref: EntityRef) -> Inspected:
        """The stored documents of an entity."""
        loaded = await self.maintenance.read(ref, LoadEntity(ref))
        view = read_entity(ref, loaded.document)
        return Inspected(view.body, view.ledger, await self.listing.belongings(ref))

    async def reset_token(self, entity: Entity[Any], ref: EntityRef) -> TokenReset:
        """Replace an entity's session token that no replica will reach: see `protocols.outbox.repair`.

        Raises `ConfigurationError` if the entity's protocol keeps no session token.
        """
        if not isinstance(entity.strategy, Outbox):
            raise ConfigurationError(f"{entity} does not use the outbox, the only protocol that keeps a session token.")
        return await self.maintenance.run(ref, lambda memory: reset_token(ref, memory))


def noted_for(retention: Retention) -> int:
    """Seconds for which a note replaces a parked message: until no mark that names the message is judged any more."""
    longest = max(retention.current, retention.previous or retention.current)
    return int((longest + 2 * AHEAD).total_seconds())


# Operators' actions on many parked messages: at a rate, several at a time, with a count of the outcomes.


AT_ONCE: Final = 16
"""Messages under way at a time."""
RATE: Final = 50.0
"""Messages begun in a second by default, on top of the usual load of their receivers."""
UNREADABLE: Final = "(cannot be read)"
"""Stands for the type of an entity whose key in the parked document is damaged."""
MOST_UNANSWERED: Final = 20
"""Messages in a row without an answer of the store or a queue, after which no further message is begun."""


@dataclass(frozen=True, slots=True)
class Selection:
    """An operator's choice of parked messages: all messages that meet every condition.

    Attributes:
        reason: a part of the reason; None for any reason.
        type: type of the entity that the message is parked under; None for any type.
    """

    reason: str | None = None
    type: str | None = None

    def has(self, message: ListedMessage) -> bool:
        """Whether a parked message meets the conditions."""
        of_type = self.type is None or _type_of(message) == self.type
        return of_type and (self.reason is None or self.reason in message.reason)


@dataclass(frozen=True, slots=True)
class Group:
    """Parked messages of one entity type with the same reason, and the times of the first and the last parking."""

    type: str
    reason: str
    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for a message.

    Attributes:
        done: whether the message is no longer parked.
        text: a text for all messages with the same outcome; the class of an error.
    """

    done: bool
    text: str
    error: ExactlyOnceError | None = None


@dataclass
class Results:
    """The outcomes for many messages.

    Attributes:
        left: number of untried messages; at the end, of messages that were given up.
        counts: number of messages by outcome.
        not_done: messages that are still parked, each with the reason.
    """

    left: int
    counts: Counter[str] = field(default_factory=Counter)
    not_done: list[tuple[ListedMessage, str]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether none of the messages is still parked."""
        return not self.left and not self.not_done

    def add(self, message: ListedMessage, outcome: Outcome) -> None:
        """Count a message."""
        self.left -= 1
        self.counts[outcome.text] += 1
        if not outcome.done:
            self.not_done.append((message, outcome.text if outcome.error is None else str(outcome.error)))


Action = Callable[[ListedMessage], Awaitable[Outcome]]


async def selected(operator: Operator, selection: Selection, limit: int | None = None) -> list[ListedMessage]:
    """Parked messages, the oldest first.

    All are listed before the first action: a message that is requeued, fails and is parked again is not tried twice.
    """
    messages = [item async for page in operator.parked() for item in page if selection.has(item)]
    return sorted(messages, key=lambda message: message.at)[:limit]


def grouped(messages: Iterable[ListedMessage]) -> list[Group]:
    """Parked messages by entity type and reason, the largest group first."""
    times: dict[tuple[str, str], list[str]] = {}
    for message in messages:
        times.setdefault((_type_of(message), message.reason), []).append(message.at)
    groups = [Group(type, reason, len(at), min(at), max(at)) for (type, reason), at in times.items()]
    return sorted(groups, key=lambda group: (-group.count, group.first))


def requeuing(operator: Operator, destination: str | None) -> Action:
    """An action that sends a parked message again. Raises `ConfigurationError` if there is no such destination.

    Without a destination, outputs that were never published go to their own.
    """
    if destination is not None:
        operator.require_destination(destination)

    async def action(message: ListedMessage) -> Outcome:
        requeued = await operator.requeue(message.entity, message.message, destination)
        return Outcome(requeued.outcome in ("sent", "not parked"), requeued.outcome)

    return action


def discarding(operator: Operator) -> Action:
    """An action that deletes a parked message for good."""

    async def action(message: ListedMessage) -> Outcome:
        there = await operator.discard(message.entity, message.message)
        return Outcome(done=True, text="discarded" if there else "not parked")

    return action


async def on_each(
    messages: Sequence[ListedMessage],
    action: Action,
    clock: Clock,
    rate: float = RATE,
    show: Callable[[Results], None] = lambda _: None,
) -> Results:
    """Apply an action to many parked messages. A failed message does not stop the rest.

    If the store or a queue answers for none of `MOST_UNANSWERED` messages in a row, no further message is begun.

    Args:
        messages: in the order of their start.
        action: applied to each.
        clock: paces the starts.
        rate: most messages begun in a second.
        show: called after each message.
    """
    results = Results(len(messages))
    waiting = deque(messages)
    starts = _starts(clock, rate)
    unanswered = 0

    async def work() -> None:
        nonlocal unanswered
        while waiting and unanswered < MOST_UNANSWERED:
            listed, pause = waiting.popleft(), next(starts)
            if pause > 0:
                await clock.sleep(pause)
                if unanswered >= MOST_UNANSWERED:
                    break
            outcome = await _outcome(listed, action)
            unanswered = unanswered + 1 if isinstance(outcome.error, TryAgainLater) else 0
            results.add(listed, outcome)
            show(results)

    workers = [asyncio.ensure_future(work()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:  # After an unexpected error the remaining workers must not go on.
        for worker in workers:
            worker.cancel()
    return results


def _type_of(message: ListedMessage) -> str:
    """The entity type of a parked message. A damaged document does not stop the list."""
    try:
        return entity_named(message.entity).type
    except (ValueError, TypeError):
        return UNREADABLE


async def _outcome(message: ListedMessage, action: Action) -> Outcome:
    if _type_of(message) == UNREADABLE:
        return Outcome(done=False, text=f"the entity {UNREADABLE}")
    try:
        return await action(message)
    except ExactlyOnceError as error:
        return Outcome(done=False, text=type(error).__name__, error=error)


def _starts(clock: Clock, rate: float) -> Iterator[float]:
    """Seconds from now until the next message may begin."""
    due = clock.now()
    while True:
        now = clock.now()
        due = max(due, now)
        yield (due - now).total_seconds()
        due += timedelta(seconds=1 / rate)
