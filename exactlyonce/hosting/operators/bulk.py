"""Operators' actions on many parked messages: at a rate, several at a time, with a count of the outcomes."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from exactlyonce.drivers.retry import Clock
from exactlyonce.errors import ExactlyOnceError, TryAgainLater
from exactlyonce.hosting.operators.operator import Operator
from exactlyonce.stores.port import ListedMessage, entity_named

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

    def has(self, one: ListedMessage) -> bool:
        """Whether a parked message meets the conditions."""
        of_type = self.type is None or _type_of(one) == self.type
        return of_type and (self.reason is None or self.reason in one.reason)


@dataclass(frozen=True, slots=True)
class Group:
    """Parked messages of one entity type with the same reason.

    Attributes:
        type: the entity type.
        reason: the reason for parking.
        count: number of messages.
        first, last: the times of the first and the last parking.
    """

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
        error: the error, if there was one.
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

    Args:
        operator: lists parked messages.
        selection: the conditions.
        limit: most messages; None for all.

    Raises:
        TryAgainLater, ConfigurationError: as `Operator.parked` does.
    """
    messages = [one async for page in operator.parked() for one in page if selection.has(one)]
    return sorted(messages, key=lambda one: one.at)[:limit]


def grouped(messages: Iterable[ListedMessage]) -> list[Group]:
    """Parked messages by entity type and reason, the largest group first."""
    times: dict[tuple[str, str], list[str]] = {}
    for one in messages:
        times.setdefault((_type_of(one), one.reason), []).append(one.at)
    groups = [Group(type, reason, len(at), min(at), max(at)) for (type, reason), at in times.items()]
    return sorted(groups, key=lambda one: (-one.count, one.first))


def requeuing(operator: Operator, destination: str | None) -> Action:
    """An action that sends a parked message again.

    Args:
        operator: sends the messages.
        destination: logical name of the queue; None for the destination of an output that was never published.

    Raises:
        ConfigurationError: there is no such destination.
    """
    if destination is not None:
        operator.require_destination(destination)

    async def action(one: ListedMessage) -> Outcome:
        requeued = await operator.requeue(one.entity, one.message, destination)
        return Outcome(requeued.outcome in ("sent", "not parked"), requeued.outcome)

    return action


def discarding(operator: Operator) -> Action:
    """An action that deletes a parked message for good."""

    async def action(one: ListedMessage) -> Outcome:
        there = await operator.discard(one.entity, one.message)
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
        messages: the messages, in the order of their start.
        action: the action.
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
            one, pause = waiting.popleft(), next(starts)
            if pause > 0:
                await clock.sleep(pause)
                if unanswered >= MOST_UNANSWERED:
                    break
            outcome = await _outcome(one, action)
            unanswered = unanswered + 1 if isinstance(outcome.error, TryAgainLater) else 0
            results.add(one, outcome)
            show(results)

    workers = [asyncio.ensure_future(work()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:  # After an unexpected error the remaining workers must not go on.
        for one in workers:
            one.cancel()
    return results


def _type_of(one: ListedMessage) -> str:
    """The entity type of a parked message. A damaged document does not stop the list."""
    try:
        return entity_named(one.entity).type
    except (ValueError, TypeError):
        return UNREADABLE


async def _outcome(one: ListedMessage, action: Action) -> Outcome:
    if _type_of(one) == UNREADABLE:
        return Outcome(done=False, text=f"the entity {UNREADABLE}")
    try:
        return await action(one)
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
