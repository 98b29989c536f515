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
"""Messages that are under way at a time."""
RATE: Final = 50.0
"""Messages begun in a second, unless the operator says otherwise: they come on top of their receiver's usual load."""
UNREADABLE: Final = "(cannot be read)"
"""In place of the type of an entity whose key in the parked document is damaged."""
MOST_UNANSWERED: Final = 20
"""Messages in a row for which the store or a queue did not answer, after which no other is begun."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parked messages that an operator means: all that meet every condition given.

    Attributes:
        reason: a part of the text that says why they were parked; None for any.
        type: of the entity under which they are parked; None for any.
    """

    reason: str | None = None
    type: str | None = None

    def has(self, one: ListedMessage) -> bool:
        """Whether a parked message is meant."""
        of_type = self.type is None or _type_of(one) == self.type
        return of_type and (self.reason is None or self.reason in one.reason)


@dataclass(frozen=True, slots=True)
class Group:
    """Parked messages of one entity type that were parked for the same reason.

    Attributes:
        type: of their entities.
        reason: why they were parked.
        count: number of messages.
        first, last: when the first and the last of them were parked.
    """

    type: str
    reason: str
    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one message.

    Attributes:
        done: whether it is no longer parked.
        text: the same for all with this outcome; the class of an error.
        error: with which it failed, if it did.
    """

    done: bool
    text: str
    error: ExactlyOnceError | None = None


@dataclass
class Results:
    """What became of many messages.

    Attributes:
        left: number of messages that were not tried yet; at the end, those that were given up.
        counts: number of messages by their outcome.
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

    They are listed before anything is done with them: a message that is requeued, fails and is parked again is not tried twice.

    Args:
        operator: lists them.
        selection: which of them.
        limit: most messages; None for all.

    Raises:
        TryAgainLater, ConfigurationError: as `Operator.parked` does.
    """
    found = [one async for page in operator.parked() for one in page if selection.has(one)]
    return sorted(found, key=lambda one: one.at)[:limit]


def grouped(messages: Iterable[ListedMessage]) -> list[Group]:
    """Parked messages by entity type and reason, the largest group first."""
    times: dict[tuple[str, str], list[str]] = {}
    for one in messages:
        times.setdefault((_type_of(one), one.reason), []).append(one.at)
    groups = [Group(type, reason, len(at), min(at), max(at)) for (type, reason), at in times.items()]
    return sorted(groups, key=lambda one: (-one.count, one.first))


def requeuing(operator: Operator, destination: str | None) -> Action:
    """Sends parked messages again.

    Args:
        operator: sends them.
        destination: logical name of their queue; None for that of outputs that were never published.

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
    """Deletes parked messages for good."""

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
    """Do the same with many parked messages. A message that fails does not stop the others.

    If the store or a queue answers for none of `MOST_UNANSWERED` messages in a row, no other is begun.

    Args:
        messages: in the order in which they are begun.
        action: what to do with each.
        clock: paces them.
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
    finally:  # After an error that nobody expects, the others must not go on.
        for one in workers:
            one.cancel()
    return results


def _type_of(one: ListedMessage) -> str:
    """The type of a parked message's entity. A document may be damaged; the others are listed all the same."""
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
    """Seconds from now until each next message may begin."""
    due = clock.now()
    while True:
        now = clock.now()
        due = max(due, now)
        yield (due - now).total_seconds()
        due += timedelta(seconds=1 / rate)
