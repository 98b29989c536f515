"""The witness: an observer that tells what becomes of each delivery, step by step, for the console.

It also kills the process at a step that somebody chose.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from exactlyonce.drivers.observer import Watch
from exactlyonce.effects.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begun, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.errors import KeyReused
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.telemetry.tally import DUPLICATES, Outcome, Tally
from exactlyonce.values.envelope import EntityRef, Envelope, Extensions, key_of, message_hash
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.raised import shown
from exactlyonce_dev.steps import Asked, asked
from function_host.brief import brief

Result = TypeVar("Result")
Event = dict[str, Any]
When = Literal["before", "after"]
LONGEST_BODY: Final = 200_000
"""Bytes above which an envelope is left out of its event."""
LONGEST_TRACE: Final = 10_000
"""Characters of the end of a trace that are told."""
_MOST_STEPS: Final = 60
"""Of a delivery that are told: one that is tried for long keeps the first ones."""
_MOST_BODIES: Final = 1000
"""Entities whose latest body is remembered: a process that knows an entity need not load it."""


@dataclass(frozen=True, slots=True)
class End:
    """Where the process is to be killed: before a step of an entity type, or after it, before the protocol gets the reply."""

    when: When
    effect: str
    title: str
    type: str


def kill_this_process() -> None:
    """End this process as a crash does: nothing more is written, flushed or acknowledged."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Witnessed:
    """A delivery as it goes on, with the number of its steps that were told.

    Attributes:
        number: the number of the delivery in this process.
        outcome: the outcome; None until it is known.
        is_answered: whether its answer was told, of a delivery that came by a request.
    """

    number: int
    envelope: Envelope
    steps: int = 0
    outcome: Outcome | None = None
    is_answered: bool = False


class Witness:
    """An observer whose events say when a delivery begins, which steps are made, how it ends, and which message is parked.

    Args:
        tell: takes the events. They hold bodies, so they must not be logged.
        destination: gives the destination that leads to a message's entity, by the entity's type; None if it is not known.
        now: the time of day.
        kill: ends this process.

    Attributes:
        ends: where the process is to be killed; each once, since nothing survives it.
    """

    def __init__(
        self,
        tell: Callable[[Event], None],
        destination: Callable[[str, Envelope], str | None],
        now: Callable[[], datetime],
        kill: Callable[[], None] = kill_this_process,
    ) -> None:
        self.tell = tell
        self.ends: list[End] = []
        self.now = now
        self._destination = destination
        self._kill = kill
        self._numbers = count(1)
        self._bodies: OrderedDict[str, Json | None] = OrderedDict()

    @contextmanager
    def processing(self, entity: EntityRef, envelope: Envelope) -> Iterator[Witnessed]:
        """Tell that a delivery begins, and how it ends."""
        number, began, wire = next(self._numbers), self.now(), envelope.to_json()
        self.tell(
            {
                "delivery": number,
                "at": began.isoformat(),
                "type": envelope.type,
                "message": key_of(envelope),
                "entity": _named(entity),
                "destination": self._destination(entity.type, envelope),
                "envelope": wire.value if wire.size <= LONGEST_BODY else None,
                "asked": envelope.asked is not None,
            }
        )
        delivery, outcome = Witnessed(number, envelope), "cancelled"
        reason: str | None = None
        trace: str | None = None
        try:
            yield delivery
            outcome = _told(delivery.outcome)
        except Exception as error:
            failure = shown(error, text=True)  # This machine is the developer's.
            outcome, reason = "failed", brief(failure, Path.cwd())
            trace = "".join(traceback.format_exception(failure))[-LONGEST_TRACE:]
            raise
        finally:
            seconds = (self.now() - began).total_seconds()
            end = {"delivery": number, "outcome": outcome, "reason": reason, "trace": trace, "seconds": seconds}
            self.tell(end | self.body(entity, "after"))

    def watching(self, entity: EntityRef, deliveries: Sequence[Witnessed] | None) -> AbstractContextManager[Watch]:
        """Watch attempts for deliveries; those of maintenance have none."""
        return nullcontext(_Attempts(self, entity, deliveries or ()))

    async def perform(self, effect: Effect[Any], perform: Callable[[Any], Awaitable[Any]]) -> Any:
        """Perform an effect, and tell of a message that it parks."""
        reply = await perform(effect)
        if isinstance(effect, Park) and reply is not UNKNOWN:
            parked = effect.message
            told = {"parked": parked.message, "entity": parked.entity, "reason": parked.reason}
            self.tell(told | {"at": self.now().isoformat()})
        return reply

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:
        """Without a trace context."""
        del destination, message_id
        return nullcontext(())

    def charged(self, units: float) -> None:
        """Request units are not told."""

    def called(self, call: Envelope, received: Any) -> None:
        """Tell what came of a try of a call."""
        self.tell({"call": call.id, "received": _received(received)})

    def learn(self, entity: EntityRef, body: Json | None) -> None:
        """Remember the body of an entity; None if it is absent."""
        self._bodies[entity.key] = body
        self._bodies.move_to_end(entity.key)
        if len(self._bodies) > _MOST_BODIES:
            self._bodies.popitem(last=False)

    def body(self, entity: EntityRef, when: str) -> Event:
        """The body of an entity, as a part of an event; nothing if it is not known, or large."""
        body = self._bodies.get(entity.key)
        if entity.key not in self._bodies or (body is not None and body.size > LONGEST_BODY):
            return {}
        return {when: None if body is None else body.value}

    def end_at(self, when: When, step: Asked, entity: EntityRef, deliveries: Sequence[Witnessed]) -> None:
        """Kill the process if somebody chose this step for it."""
        chosen = End(when, step.effect, step.title, entity.type)
        if chosen not in self.ends:
            return
        self.tell({"end": {"when": when, "title": step.title}})
        killed = {"when": when, "effect": step.effect, "title": step.title}
        for delivery in deliveries:
            self.tell({"delivery": delivery.number, "killed": killed})
        self._kill()


class _Attempts:
    """The attempts that are made for some deliveries of an entity."""

    def __init__(self, witness: Witness, entity: EntityRef, deliveries: Sequence[Witnessed]) -> None:
        self._witness = witness
        self._entity = entity
        self._deliveries = deliveries
        self._tally = Tally(dict.fromkeys(key_of(delivery.envelope) for delivery in deliveries))
        self._attempt = 0
        self._causes: dict[str, str] = {}  # By the id of an output the hash of the message whose handler sent it.

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        """The same attempts, watched."""
        return lambda memory: self._watched(attempt(memory))

    def _watched(self, step: Step[Result]) -> Step[Result]:
        self._tally.begin()
        self._attempt += 1
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                self._end(result)
                return result
            found = asked(step, effect)
            if found is not None:
                self._witness.end_at("before", found, self._entity, self._deliveries)
            reply = yield effect
            self._tally.note(effect, reply)
            if found is not None:
                self._step(found.answered(effect, reply))
                self._witness.end_at("after", found, self._entity, self._deliveries)
            self._note(effect, reply)

    def _note(self, effect: Effect[Any], reply: Any) -> None:
        """Learn which messages caused which outputs, and tell of those that were published."""
        if isinstance(effect, Together):
            self._note(effect.first, reply[0])
            self._note(effect.second, reply[1])
        elif isinstance(reply, Begun):
            handled = {"handled": reply.at.isoformat()} | self._witness.body(self._entity, "before")
            for delivery in self._deliveries:
                self._witness.tell({"delivery": delivery.number} | handled)
        elif isinstance(effect, SaveEntity):
            self._learn(effect.document, known=isinstance(reply, Saved))
        elif isinstance(effect, LoadEntity) and isinstance(reply, Loaded):
            self._learn(reply.document)
        elif isinstance(effect, SaveBatch):
            self._learn(effect.document, known=isinstance(reply, Saved))
            for item in effect.create:
                for output in getattr(item, "outputs", ()):
                    self._causes[output.id] = message_hash(item.message or "")
        elif isinstance(effect, Publish) and reply is PUBLISHED:
            self._published(effect)

    def _learn(self, document: Json | None, *, known: bool = True) -> None:
        view = read_entity(self._entity, document)
        if known:
            self._witness.learn(self._entity, view.body)
        ledger = view.ledger or Ledger()
        for entry in ledger.outbox:
            owed = entry.owed_outputs(self._entity, ledger.to, ledger.sequences)
            self._causes |= {output.id: entry.cause for output in owed}

    def _published(self, effect: Publish) -> None:
        by_hash = {message_hash(key_of(delivery.envelope)): delivery for delivery in self._deliveries}
        for output in effect.outputs:
            sent = Envelope.read(output.envelope.text)
            told = {"message": key_of(sent), "type": sent.type, "id": output.id, "delay": output.delay}
            told["destination"] = output.destination
            # What a duplicate publishes was caused by the message that it is a copy of, or by an earlier one.
            cause = by_hash.get(self._causes.get(output.id, ""), self._deliveries[-1] if self._deliveries else None)
            if cause is not None:
                self._witness.tell({"delivery": cause.number, "output": told})
            elif sent.source == self._entity.source:  # Not what somebody sends again.
                at = self._witness.now().isoformat()
                self._witness.tell({"maintained": _named(self._entity), "output": told, "at": at})

    def _end(self, result: object) -> None:
        self._tally.end(result)
        if isinstance(result, Again):
            title = f"Try again: {result.reason}"
            self._step({"effect": "", "kind": "again", "title": title, "why": "", "reply": "", "look": "lost"})
        elif isinstance(result, Finished):
            outcomes = self._tally.outcomes(result)
            for delivery in self._deliveries:
                delivery.outcome = outcomes[key_of(delivery.envelope)]
        if isinstance(result, (Again, Finished)):
            for delivery in self._deliveries:
                self._answer(delivery, result)

    def _answer(self, witnessed: Witnessed, result: Again | Finished) -> None:
        """Tell the answer to a request, or that it is refused as the asker does it, who gets the answer to another one."""
        key, asked = key_of(witnessed.envelope), witnessed.envelope.asked
        answer = dict(result.answers).get(key)
        if asked is None or witnessed.is_answered:
            return
        if answer is not None and answer.is_to(asked):
            told: Event = {"answer": {"status": answer.status, "body": answer.body}}
        elif isinstance(result, Again) or key in dict(result.failed) or witnessed.envelope.opened is not None:
            return
        else:
            told = {"refused": KeyReused.__name__}
        witnessed.is_answered = True
        self._witness.tell({"delivery": witnessed.number} | told)

    def _step(self, step: dict[str, Any]) -> None:
        for delivery in self._deliveries:
            delivery.steps += 1
            if delivery.steps <= _MOST_STEPS:
                self._witness.tell({"delivery": delivery.number, "step": step | {"attempt": self._attempt}})


def _named(entity: EntityRef) -> dict[str, str]:
    return {"type": entity.type, "key": entity.key, "name": str(entity)}


def _received(received: Any) -> Event:
    """What came of a try of a call. Contents that are large are left out."""
    if isinstance(received, str):
        return {"failed": received}
    body = received.body if received.body is None or len(received.body) <= LONGEST_BODY else None
    return {
        "status": received.status,
        "headers": dict(received.headers),
        "body": None if body is None else body.decode(errors="replace"),
    }


def _told(outcome: Outcome | None) -> str:
    """The outcome of a delivery that is acknowledged."""
    if outcome is None:
        return "processed"
    return "duplicate dropped" if outcome in DUPLICATES else outcome
