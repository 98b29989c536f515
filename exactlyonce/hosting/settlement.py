"""What becomes of a message that was given up: finished, parked for its own sake, or returned for its environment's.

**Parked is unprocessed.** The settler's fence shows that nobody has processed a message that is parked; this sees to it that
nobody will. Three rules do, of which none asks for a view that may be stale:

- What has been settled is never processed again: that of poison queues and dead-letter queues is not, and a batch settles what
  has come too often, and processes what has not. So what was parked can only be settled again.
- What may have been settled before is not returned unless it is seen not to be parked, in a view that holds whatever was
  parked. What is settled for the first time cannot have been parked, unless that is what was just not answered. One exception:
  a message of a poison queue is delivered a few times only, and then lost. While the store does not answer it is returned
  unseen, rather than lost.
- What was settled before is not parked, since it may have been returned: it is returned again, or put aside, which says nothing
  of whether it was processed. A dead letter does not tell how often it was settled.

Where a message is both all the same, by the exception or as a dead letter, whoever processes what was returned takes the parked
document away.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from exactlyonce.attempt import Again, Memory, Settled, Work, key_of
from exactlyonce.drivers.deadlines import Deadline
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.errors import HandlerError, StoredDataError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.failures import ENVIRONMENT, Cause, Failures, named
from exactlyonce.hosting.maintenance import Maintenance
from exactlyonce.hosting.returner import UNEXPLAINED_ROUNDS, Returner
from exactlyonce.protocols.steps.park import put_aside
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

ASIDE: Final = "exactlyonce.put-aside"
"""In place of an entity's id, in the name of the place for what was put aside."""

Outcome = Literal["processed", "parked", "returned"]
Settlement = Literal["first", "repeated", "unknown"]
"""Whether a delivery is settled for the first time."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonMessage:
    """A message that is to be decided about.

    Attributes:
        entity: the type whose handlers take it.
        came: the message as it came, its data in it or elsewhere.
        work: the message with its data, and its handler.
        queue: logical name of the queue that it came from.
        settlement: whether it is settled for the first time.
        reason: why it was given up.
        runs_out: whether it is delivered a few times only, and then no more, though nobody has acknowledged it. So it is with
            the messages of a poison queue, which has none of its own.
    """

    entity: Entity[Any]
    came: Envelope
    work: Work
    queue: str
    settlement: Settlement
    reason: str
    runs_out: bool = False


@dataclass(frozen=True)
class Settler:
    """Decides about messages that can be read.

    Attributes:
        maintenance: runs what settles.
        failures: what this process knows of their deliveries.
        returner: sends them to their queues once more.
        lifetimes: how long messages of the application may live, at present.
        ready: to be awaited before the store is asked.
        now: the time of day, for how long it may take.
    """

    maintenance: Maintenance
    failures: Failures
    returner: Returner
    lifetimes: Callable[[], Lifetimes]
    ready: Callable[[], Awaitable[None]]
    now: Callable[[], datetime]

    async def decide(self, given: PoisonMessage) -> Outcome:
        """Decide about one message. Raises as `PoisonSettler.settle` does."""
        try:
            return await self._decided_or_returned(given)
        except (HandlerError, StoredDataError) as error:
            # Whether it was processed nobody can tell now.
            return await self.put_aside(
                nobodys(given.entity), given.came, f"{named(error)}, of entity {given.work.entity}"
            )

    async def return_unread(self, entity: Entity[Any], came: Envelope, queue: str) -> Outcome | None:
        """Return a message of a poison queue whose data could not be fetched; None if it is too old. Raises `TryAgainLater`."""
        output = await self._output(came, queue, came.unexplained)
        if output is None:
            return None
        returned = await self.returner.give_back(nobodys(entity), output, unseen=True)
        return told(returned.outcome, came, nobodys(entity), "its data could not be fetched")

    async def put_aside(self, place: EntityRef, envelope: Envelope, reason: str) -> Outcome:
        """Park a message that nothing can be decided about. Raises `TryAgainLater`."""
        settled = await self.maintenance.run(place, lambda memory: put_aside(place, envelope, reason, memory))
        return told(settled.outcome, envelope, place, reason)

    async def _decided_or_returned(self, given: PoisonMessage) -> Outcome:
        """Where the environment fails here, too, the message goes back without having been decided about."""
        progress = _Progress()
        try:
            await self.ready()
            return await self._decided(given, self.maintenance.retrying.begin(self.now), progress)
        except ENVIRONMENT as error:
            deadline = self.maintenance.retrying.begin(self.now)
            # Better a copy of what may be parked than none of what is delivered no more.
            first = given.settlement == "first" and not progress.parks
            unseen = first or (given.runs_out and isinstance(error, TryAgainLater))
            returned = await self._returned(given, given.came.unexplained, deadline, unseen=unseen)
            if returned is not None:
                return told(returned, given.came, given.work.entity, given.reason)
            if isinstance(error, TryAgainLater):
                raise
            reason = f"{named(error)}, of entity {given.work.entity}"
        return await self.put_aside(nobodys(given.entity), given.came, reason)

    async def _decided(self, given: PoisonMessage, deadline: Deadline | None, progress: _Progress) -> Outcome:
        entity, came = given.work.entity, given.came
        refused = None
        if given.entity.strategy.forgets:
            refused = self.lifetimes().refusal(came.time, await self._present())
        rounds = self._unexplained(given)
        if refused is not None or rounds is not None:
            finished = await self.maintenance.run(
                entity, lambda memory: _until_the_fence(_settling(given, memory)), deadline=deadline
            )
            if finished is not None:
                return told(finished.outcome, came, entity, given.reason)
        if refused is not None:
            return await self.put_aside(nobodys(given.entity), came, f"{given.reason}; {named(refused)}")
        unseen = given.settlement == "first"
        if rounds is not None and (returned := await self._returned(given, rounds, deadline, unseen=unseen)):
            return told(returned, came, entity, given.reason)
        if given.settlement == "repeated":
            reason = f"{given.reason}; it was settled before, and may have been returned to its queue"
            return await self.put_aside(nobodys(given.entity), came, reason)
        settled = await self.maintenance.run(
            entity, lambda memory: _noting(_settling(given, memory), progress), deadline=deadline
        )
        return told(settled.outcome, came, entity, given.reason)

    def _unexplained(self, given: PoisonMessage) -> int | None:
        """How often it will have been returned though nobody knows why it failed; None if it is not to be returned."""
        cause, so_far = self.failures.cause(given.entity.name, key_of(given.came)), given.came.unexplained
        if cause is Cause.ENVIRONMENT:
            return so_far
        if cause is Cause.UNKNOWN or given.settlement == "repeated":
            return so_far + 1 if so_far < UNEXPLAINED_ROUNDS else None
        return None

    async def _returned(
        self, given: PoisonMessage, unexplained: int, deadline: Deadline | None, *, unseen: bool
    ) -> Outcome | None:
        """What comes of returning a message; None if it is too old for that, or too large."""
        output = await self._output(given.came, given.queue, unexplained)
        if output is None:
            return None
        returned = await self.returner.give_back(given.work.entity, output, unseen=unseen, deadline=deadline)
        return returned.outcome

    async def _output(self, came: Envelope, queue: str, unexplained: int) -> Output | None:
        now = await self._present()
        if came.time is None or now - came.time > self.lifetimes().send_limit(now):
            return None
        return await self.returner.output(came, queue, unexplained)

    async def _present(self) -> datetime:
        begun = await self.maintenance.driver.run(iter(Begin()))
        return begun.at


@dataclass
class _Progress:
    """How far a decision has come.

    Attributes:
        parks: whether the message may be parked by now, though nobody has answered that it is.
    """

    parks: bool = False


def nobodys(entity: Entity[Any]) -> EntityRef:
    """The place for what was sent to an entity type, and put aside. It has no partition key, as every entity has."""
    return EntityRef(entity.name, (), ASIDE)


def told(outcome: Outcome, envelope: Envelope, place: EntityRef, reason: str) -> Outcome:
    """Log what became of a message, and return it."""
    if outcome == "parked":
        _log.error("message %s was parked under %s: %s", key_of(envelope), place.key, reason)
    elif outcome == "returned":
        _log.warning("message %s for %s was returned to its queue: %s", key_of(envelope), place, reason)
    else:
        _log.info("message %s was given up by its queue, but had been processed by %s", key_of(envelope), place)
    return outcome


def _settling(given: PoisonMessage, memory: Memory) -> Step[Settled | Again]:
    """The protocol's decision about a message. It is parked as it came: with its data elsewhere, if that is where it was."""
    return given.entity.strategy.settle(given.work, given.came, given.reason, memory)


def _until_the_fence(step: Step[Settled | Again]) -> Step[Settled | Again | None]:
    """Run a settler as long as it reads and publishes: to its end, or to None where it would save the entity next.

    By then it has found nothing that tells that the message was processed. That the view may be stale does no harm to a
    message that is not parked.
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
    """Run a settler, and note when it parks the message."""
    reply: Any = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            settled: Settled | Again = finished.value
            return settled
        progress.parks = progress.parks or isinstance(effect, Park)
        reply = yield from effect
