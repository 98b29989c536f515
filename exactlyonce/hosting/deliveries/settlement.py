"""The settler decides about a poison message: it finishes the message, returns it to the queue, or parks it.

**A parked message is unprocessed.** The protocol's fence proves that the message was not processed before; three rules here
ensure the same for the future. None of them relies on a view that may be stale:

- A settled message is never processed again: functions on poison queues and dead-letter queues only settle, and a batch settles
  a message from the delivery on in which it gives the message up. So a parked message can only be settled again.
- A message that may have been settled before is returned only after a read shows that it is not parked, in a view that holds
  all parked messages. On its first settlement a message cannot be parked, unless the reply to its own parking was lost.
  One exception: a poison queue delivers a message a few times and then drops it. While the store does not answer, the
  message is returned without a read rather than lost.
- A message that was settled before is not parked, since it may have been returned. It is returned again, or put aside, without
  a claim that it is unprocessed. The number of settlements of a dead letter is unknown.

A message can still be both parked and returned, by the exception or as a dead letter. Then processing the returned message
deletes the parked document.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, Literal, NamedTuple

from exactlyonce.drivers.runtime import Deadline
from exactlyonce.effects.attempt import Again, Memory, Settled, Work
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.errors import ConfigurationError, HandlerError, StoredDataError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.triggers import ENVIRONMENT, Cause, Failures, named
from exactlyonce.protocols.steps.give_back import Returned, give_back, send
from exactlyonce.protocols.steps.park import put_aside
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.lifetimes import Lifetimes

# The returner: sends messages that failed because of their environment to their queues once more. Random, doubling delays
# spread the messages of a long outage over minutes.


FIRST_DELAY: Final = 10.0
"""Longest delay of the first return, in seconds; doubled with each further return, up to `LONGEST_DELAY`."""
LONGEST_DELAY: Final = 300.0
"""Longest delay of any return, in seconds. Recovery from an outage takes this long, plus the host's deliveries."""
UNEXPLAINED_ROUNDS: Final = 3
"""Returns of a message whose failure this process did not see. A message that crashes the process must not return for ever."""


@dataclass(frozen=True)
class Returner:
    """Sends messages back to their queues."""

    maintenance: Maintenance
    claims: ClaimChecks
    random: Random

    def require_queue(self, queue: str) -> None:
        """Raise `ConfigurationError` unless there is a destination of this name."""
        limits = self.maintenance.routes.limits
        if queue not in limits:
            raise ConfigurationError(
                f"There is no destination {queue!r} to return messages to; known are: {', '.join(sorted(limits)) or 'none'}. "
                "Name in queue= the destination whose queue the function's messages come from, and declare it where the "
                "application is composed."
            )

    async def output(self, envelope: Envelope, queue: str, unexplained: int) -> Output | None:
        """The output that returns a message to its queue; None if the message is too large for the queue.

        Args:
            envelope: the envelope as delivered, with the data or the address of a blob.
            queue: logical name of the queue.
            unexplained: number of returns without a known cause, including the present return.
        """
        routes = self.maintenance.routes
        again = envelope.once_more(unexplained)
        if routes.is_too_large(queue, again.to_json().size):  # The mark of a return makes the message a bit longer.
            if self.claims.blobs is None or envelope.reference is not None:
                return None
            again = await self.claims.left(again)
        wire = again.to_json()
        if routes.is_too_large(queue, wire.size):
            return None
        return Output(key_of(envelope), queue, wire, self._delay(envelope.requeued))

    async def give_back(
        self, ref: EntityRef, output: Output, *, unseen: bool, deadline: Deadline | None = None
    ) -> Returned:
        """Return a message to its queue, unless it is parked.

        Args:
            ref: the receiver of the message.
            output: as `output` gives it.
            unseen: whether the store is not asked, since the message cannot be parked yet.
            deadline: the limit for all attempts; None to start the usual limit now.

        Raises:
            TryAgainLater: the queue may not have taken the message, or the store did not say whether the message is parked.
            StoredDataError: the parked document cannot be read.
        """

        def attempt(memory: Memory) -> Step[Returned | Again]:
            return send(output, memory) if unseen else give_back(ref, output.id, output, memory)

        return await self.maintenance.run(ref, attempt, deadline=deadline)

    def _delay(self, times: int) -> float:
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(times, 10))
        return self.random.uniform(longest / 2, longest)


ASIDE: Final = "exactlyonce.put-aside"
"""Takes the place of an entity's id in the key under which messages are put aside."""

Outcome = Literal["processed", "parked", "returned"]
Settlement = Literal["first", "repeated", "unknown"]
"""Whether a message was settled before; "unknown" for a dead letter."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonMessage:
    """A message that its queue or its batch gave up on.

    Attributes:
        delivered: the envelope as delivered, with the data or the address of a blob.
        work: the message with its data, and the handler.
        settlement: whether the message was settled before.
        runs_out: whether the host drops the message after a few deliveries, acknowledged or not, as a poison queue does.
    """

    entity: Entity[Any]
    delivered: Envelope
    work: Work
    queue: str
    settlement: Settlement
    reason: str
    runs_out: bool = False


@dataclass(frozen=True)
class Settler:
    """Decides about poison messages that can be read.

    Attributes:
        failures: the failed deliveries that this process saw.
        ready: awaited before the first request to the store.
        now: the time of day, for deadlines.
    """

    maintenance: Maintenance
    failures: Failures
    returner: Returner
    lifetimes: Callable[[], Lifetimes]
    ready: Callable[[], Awaitable[None]]
    now: Callable[[], datetime]

    async def decide(self, message: PoisonMessage) -> Outcome:
        """Decide about one message. Raises as `PoisonSettler.settle` does."""
        try:
            decision = await self._decided_or_returned(message)
        except (HandlerError, StoredDataError) as error:
            # Neither the state nor the stream can show now whether the message was processed.
            decision = await self._put_aside(
                message.entity, message.delivered, f"{named(error)}, of entity {message.work.entity}"
            )
        _log_decision(message.delivered, decision)
        return decision.outcome

    async def return_unread(self, entity: Entity[Any], delivered: Envelope, queue: str) -> Outcome | None:
        """Return a poison message whose data could not be fetched; None for a message too old. Raises `TryAgainLater`."""
        output = await self._output(delivered, queue, delivered.unexplained)
        if output is None:
            return None
        returned = await self.returner.give_back(aside_place(entity), output, unseen=True)
        _log_decision(delivered, _Decision(returned.outcome, aside_place(entity), "its data could not be fetched"))
        return returned.outcome

    async def put_aside(self, entity: Entity[Any], envelope: Envelope, reason: str) -> Outcome:
        """Park a message without deciding whether it was processed. Raises `TryAgainLater`."""
        decision = await self._put_aside(entity, envelope, reason)
        _log_decision(envelope, decision)
        return decision.outcome

    async def _put_aside(self, entity: Entity[Any], envelope: Envelope, reason: str) -> _Decision:
        place = aside_place(entity)
        settled = await self.maintenance.run(place, lambda memory: put_aside(place, envelope, reason, memory))
        return _Decision(settled.outcome, place, reason)

    async def _decided_or_returned(self, message: PoisonMessage) -> _Decision:
        """Decide about a message; if the environment fails meanwhile, return the message undecided."""
        progress = _Progress()
        try:
            await self.ready()
            return await self._decided(message, self.maintenance.retrying.begin(self.now), progress)
        except ENVIRONMENT as error:
            deadline = self.maintenance.retrying.begin(self.now)
            # A second copy of a parked message does less harm than a message lost with its last delivery.
            first = message.settlement == "first" and not progress.parks
            unseen = first or (message.runs_out and isinstance(error, TryAgainLater))
            # A message without a time is put aside by its receiver, so while the store is away it may return at any age.
            undated = isinstance(error, TryAgainLater)
            returned = await self._returned(
                message, message.delivered.unexplained, deadline, unseen=unseen, undated=undated
            )
            if returned is not None:
                return _Decision(returned, message.work.entity, message.reason)
            if isinstance(error, TryAgainLater):
                raise
            reason = f"{named(error)}, of entity {message.work.entity}"
        return await self._put_aside(message.entity, message.delivered, reason)

    async def _decided(self, message: PoisonMessage, deadline: Deadline | None, progress: _Progress) -> _Decision:
        entity, refused = message.work.entity, None
        if message.entity.strategy.forgets(message.delivered):
            refused = self.lifetimes().refusal(message.delivered.judged_by, await self._present())
        rounds = self._unexplained(message)
        if refused is not None or rounds is not None:
            finished = await self.maintenance.run(
                entity, lambda memory: _until_the_fence(_settling(message, memory)), deadline=deadline
            )
            if finished is not None:
                return _Decision(finished.outcome, entity, message.reason)
        if refused is not None:
            return await self._put_aside(message.entity, message.delivered, f"{message.reason}; {named(refused)}")
        unseen = message.settlement == "first"
        if rounds is not None and (returned := await self._returned(message, rounds, deadline, unseen=unseen)):
            return _Decision(returned, entity, message.reason)
        if message.settlement == "repeated":
            reason = f"{message.reason}; it was settled before, and may have been returned to its queue"
            return await self._put_aside(message.entity, message.delivered, reason)
        settled = await self.maintenance.run(
            entity, lambda memory: _noting(_settling(message, memory), progress), deadline=deadline
        )
        return _Decision(settled.outcome, entity, message.reason)

    def _unexplained(self, message: PoisonMessage) -> int | None:
        """The number of returns without a known cause, including the present return; None not to return the message."""
        cause = self.failures.cause(message.entity.name, key_of(message.delivered))
        so_far = message.delivered.unexplained
        if cause is Cause.ENVIRONMENT:
            return so_far
        if cause is Cause.UNKNOWN or message.settlement == "repeated":
            return so_far + 1 if so_far < UNEXPLAINED_ROUNDS else None
        return None

    async def _returned(
        self,
        message: PoisonMessage,
        unexplained: int,
        deadline: Deadline | None,
        *,
        unseen: bool,
        undated: bool = False,
    ) -> Outcome | None:
        """Return a message to its queue; None for a message too old, too large, or without a time unless `undated`."""
        output = await self._output(message.delivered, message.queue, unexplained, undated=undated)
        if output is None:
            return None
        returned = await self.returner.give_back(message.work.entity, output, unseen=unseen, deadline=deadline)
        return returned.outcome

    async def _output(
        self, delivered: Envelope, queue: str, unexplained: int, *, undated: bool = False
    ) -> Output | None:
        now, time = await self._present(), delivered.judged_by
        returns = undated if time is None else not self._is_too_old(now - time, now)
        return await self.returner.output(delivered, queue, unexplained) if returns else None

    def _is_too_old(self, age: timedelta, now: datetime) -> bool:
        """Whether a message of this age could be too old on arrival.

        A process that has not reached the store yet cannot judge, and returns the message: the receiver refuses a message that
        is too old, but a message that stays in its poison queue is lost after the last delivery.
        """
        try:
            return age > self.lifetimes().send_limit(now)
        except TryAgainLater:
            return False

    async def _present(self) -> datetime:
        begun = await self.maintenance.driver.run(iter(Begin()))
        return begun.at


class _Decision(NamedTuple):
    """The outcome for a message, the place of its mark or of its parked document, and the reason."""

    outcome: Outcome
    place: EntityRef
    reason: str


@dataclass
class _Progress:
    """Whether the settler has sent the request to park the message, and so may have parked it even without a reply."""

    parks: bool = False


def aside_place(entity: Entity[Any]) -> EntityRef:
    """The place for messages to an entity type that are put aside. Unlike an entity, the place has no partition key."""
    return EntityRef(entity.name, (), ASIDE)


def _log_decision(envelope: Envelope, decision: _Decision) -> None:
    outcome, place, reason = decision
    if outcome == "parked":
        _log.error("message %s was parked under %s: %s", key_of(envelope), place.key, reason)
    elif outcome == "returned":
        _log.warning("message %s for %s was returned to its queue: %s", key_of(envelope), place, reason)
    else:
        _log.info("message %s was given up by its queue, but %s had processed it", key_of(envelope), place)


def _settling(message: PoisonMessage, memory: Memory) -> Step[Settled | Again]:
    """The protocol's settler for a message. It parks the delivered envelope, whose data may be in a blob."""
    return message.entity.strategy.settle(message.work, message.delivered, message.reason, memory)


def _until_the_fence(step: Step[Settled | Again]) -> Step[Settled | Again | None]:
    """Run a settler up to its fence. Returns the result, or None at the fence, before the entity is saved.

    At the fence no proof was read that the message was processed. A stale view is harmless as long as the message is not
    parked.
    """
    reply: Any = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            settled: Settled | Again = finished.value
            return settled
        if isinstance(effect, SaveEntity):
            step.close()
            return None
        reply = yield from effect


def _noting(step: Step[Settled | Again], progress: _Progress) -> Step[Settled | Again]:
    """Run a settler, and note in `progress` when it parks the message."""
    reply: Any = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            settled: Settled | Again = finished.value
            return settled
        progress.parks = progress.parks or isinstance(effect, Park)
        reply = yield from effect
