"""The algorithm of the talk, as its authors published it, with the repairs that make it right and cost nothing.

Load the state; look for the record of the message; stage the outputs; commit the state with the id of the transaction; read
what was staged, and send it; write the record and delete what was staged, in one batch; clear the id from the state. Seven
requests, one after the other, and each has to be answered before the message may be acknowledged.

The generator is the one that the model checker explores. It has six ways to go wrong as published, and one repair each
(`verification.published.faults`); a competitor that loses messages would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.competitors.requests import Promote
from exactlyonce.effects.attempt import Again, Finished, Memory, Work
from exactlyonce.effects.effect import UNKNOWN, Step
from exactlyonce.effects.library import DeleteStaged, FoundStaged, WritePage, Written
from exactlyonce.errors import HandlerError
from exactlyonce.values.envelope import Envelope, key_of
from verification.published.algorithm import REPAIRED, PublishedAlgorithm

_CHECKED = PublishedAlgorithm(REPAIRED)


@dataclass(frozen=True, slots=True)
class SevenSteps:
    """A strategy like any other. Messages for one entity take turns within a process, as its authors have it."""

    @property
    def group_limit(self) -> int:
        """One message at a time."""
        return _CHECKED.group_limit

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """Records stay."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process one message. Seven store operations where nothing is left of another one."""
        try:
            outcome = yield from _promoting(_CHECKED.attempt(work, memory))
        except HandlerError as error:
            return Finished(memory, failed=((key_of(work.messages[0]), error),))
        return outcome


def _promoting(step: Step[Finished | Again]) -> Step[Finished | Again]:
    """The same steps, but the record is written and what was staged is deleted in one batch, as published.

    The checker takes them for two requests, one after the other, which is more that can go wrong.
    """
    reply: Any = None
    staged: tuple[str, ...] = ()
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            outcome: Finished | Again = finished.value
            return outcome
        if isinstance(effect, WritePage) and staged:
            promoted = yield from Promote(effect.entity, effect.page, *staged)
            # A conflict is one's own earlier send, or another instance was faster: loading again shows which.
            reply = promoted if isinstance(promoted, Written) else UNKNOWN
        elif isinstance(effect, DeleteStaged):
            reply = None  # The batch did it.
        else:
            reply = yield from effect
        if isinstance(reply, FoundStaged):
            staged = tuple(document.tx for document in reply.documents)
