"""The witness: an observer that tells what becomes of each delivery, for the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, Final, TypeVar

from exactlyonce.attempt import Again, Finished, Memory, key_of
from exactlyonce.drivers.observer import Watch
from exactlyonce.effects.effect import UNKNOWN, Effect, Step
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Park
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.telemetry.tally import DUPLICATES, Outcome, Tally
from exactlyonce.values.envelope import Envelope, Extensions
from exactlyonce.values.identity import EntityRef

Result = TypeVar("Result")
Event = dict[str, Any]
LONGEST_BODY: Final = 200_000
"""Bytes above which an envelope is left out of its event."""
_MOST_STEPS: Final = 50


@dataclass
class Witnessed:
    """A delivery as it goes on.

    Attributes:
        envelope: of the message.
        steps: what happened, in words, in its order.
        outputs: those that were published, with their destinations.
        outcome: None until it is known.
    """

    envelope: Envelope
    steps: list[str] = field(default_factory=list)
    outputs: list[dict[str, str]] = field(default_factory=list)
    outcome: Outcome | None = None

    def step(self, text: str) -> None:
        """Note a step. A delivery that is tried for long keeps the first ones."""
        if len(self.steps) < _MOST_STEPS:
            self.steps.append(text)


class Witness:
    """An observer whose events say when a delivery begins, how it ends, and which message is parked.

    Args:
        tell: takes the events. They hold bodies, so they must not be logged.
        destination: gives the destination that leads to a message's entity, by the entity's type; None if it is not known.
        now: the time of day.
    """

    def __init__(
        self,
        tell: Callable[[Event], None],
        destination: Callable[[str, Envelope], str | None],
        now: Callable[[], datetime],
    ) -> None:
        self._tell = tell
        self._destination = destination
        self._now = now
        self._numbers = count(1)

    @contextmanager
    def processing(self, entity: EntityRef, envelope: Envelope) -> Iterator[Witnessed]:
        """Tell that a delivery begins, and how it ends."""
        number, began, wire = next(self._numbers), self._now(), envelope.to_json()
        self._tell(
            {
                "delivery": number,
                "at": began.isoformat(),
                "type": envelope.type,
                "message": key_of(envelope),
                "entity": {"type": entity.type, "key": entity.key, "name": str(entity)},
                "destination": self._destination(entity.type, envelope),
                "envelope": wire.value if wire.size <= LONGEST_BODY else None,
            }
        )
        delivery, outcome = Witnessed(envelope), "cancelled"
        try:
            yield delivery
            outcome = _told(delivery.outcome)
        except Exception as error:
            outcome = "failed"
            delivery.steps.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            seconds = (self._now() - began).total_seconds()
            told = {"outcome": outcome, "steps": delivery.steps, "outputs": delivery.outputs, "seconds": seconds}
            self._tell({"delivery": number, **told})

    def watching(self, entity: EntityRef, deliveries: Sequence[Witnessed] | None) -> AbstractContextManager[Watch]:
        """Watch attempts for deliveries; those of maintenance have none."""
        del entity
        return nullcontext(_Attempts(deliveries or ()))

    async def perform(self, effect: Effect[Any], perform: Callable[[Any], Awaitable[Any]]) -> Any:
        """Perform an effect, and tell of a message that it parks."""
        reply = await perform(effect)
        if isinstance(effect, Park) and reply is not UNKNOWN:
            parked = effect.message
            self._tell({"parked": parked.message, "entity": parked.entity, "reason": parked.reason})
        return reply

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """Without a trace context."""
        del destination, message_id
        return nullcontext(())

    def charged(self, units: float) -> None:
        """Request units are not told."""


class _Attempts:
    """The attempts that are made for some deliveries."""

    def __init__(self, deliveries: Sequence[Witnessed]) -> None:
        self._deliveries = deliveries
        self._tally = Tally(dict.fromkeys(key_of(one.envelope) for one in deliveries))

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        """The same attempts, watched."""
        return lambda memory: self._watched(attempt(memory))

    def _watched(self, step: Step[Result]) -> Step[Result]:
        self._tally.begin()
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                self._end(result)
                return result
            reply = yield effect
            self._tally.note(effect, reply)
            self._note(effect, reply)

    def _note(self, effect: Effect[Any], reply: object) -> None:
        name = type(effect).__name__
        if isinstance(reply, Conflict):
            self._step(f"{name}: conflict, since another write came first, or its own, sent twice")
        elif reply is UNKNOWN:
            self._step(f"{name}: no reply, so nobody knows whether it was applied")
        elif isinstance(effect, Publish) and reply is PUBLISHED:
            # A group shares its commit; an output does not say which of its messages caused it.
            for one in self._deliveries[-1:]:
                one.outputs += [{"id": output.id, "destination": output.destination} for output in effect.outputs]

    def _end(self, result: object) -> None:
        self._tally.end(result)
        if isinstance(result, Again):
            self._step(f"tried again: {result.reason}")
        elif isinstance(result, Finished):
            outcomes = self._tally.outcomes(result)
            for one in self._deliveries:
                one.outcome = outcomes[key_of(one.envelope)]

    def _step(self, text: str) -> None:
        for one in self._deliveries:
            one.step(text)


def _told(outcome: Outcome | None) -> str:
    """The outcome of a delivery that is acknowledged."""
    if outcome is None:
        return "processed"
    return "duplicate dropped" if outcome in DUPLICATES else outcome
