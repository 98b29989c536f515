"""Deciding about messages that the host gave up on: the steps that all protocols share.

A record proves that a message was processed, in however old a view. Its absence proves nothing until a fence holds. Behind the
fence the ledger was current, and so was every record in a view at its token, or the record was deleted when no copy could
still arrive. No commit is still to come, but of attempts that load the entity from now on. If one of them processes
another copy, the parked message is a duplicate like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from exactlyonce.attempt import Again, Memory, Settled, Strategy, Work, key_of
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.protocols.steps.load import View, load
from exactlyonce.protocols.steps.park import park
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef


def settle(
    strategy: Strategy,
    work: Work,
    delivered: Envelope,
    reason: str,
    memory: Memory,
    *,
    finish: Callable[[View], Step[Settled | Again | None]],
    ids: tuple[str, ...] = (),
) -> Step[Settled | Again]:
    """Finish a message that was processed, or park it. At most 7 effects, and those of `finish`.

    Args:
        strategy, work, delivered, reason, memory: as for `Strategy.settle`.
        finish: publishes what the message owes, if this view proves that it was processed; None if nothing does.
        ids: of the companions that would prove it.
    """
    view = yield from load(work.entity, strategy, memory)
    if isinstance(view, Again):
        return view
    if ids:
        # Look for the companion that proves the message processed. At the entity's session token, so that behind the fence
        # it is known to be absent.
        found = yield from LoadCompanions(work.entity, ids, view.memory.entity_token)
        if isinstance(found, NoAnswer):
            return Again(view.memory, "whether the message was processed could not be read")
        view = replace(view, companions=found.companions)
    finished = yield from finish(view)
    if finished is not None:
        return finished
    parked = yield from park(work.entity, delivered, reason, work.absent, view)
    return parked


def companions_know(
    strategy: Strategy, entity: EntityRef, envelope: Envelope, ids: tuple[str, ...], memory: Memory
) -> Step[bool | Again]:
    """Whether a companion proves a message processed. At most 4 effects.

    Args:
        strategy, entity, envelope, memory: as for `Strategy.knows`.
        ids: of the companions that would prove it.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    message = key_of(envelope)
    if not ids:
        return False
    # Look for the companion that proves the message processed.
    found = yield from LoadCompanions(entity, ids, view.memory.entity_token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "the companions of the entity could not be read")
    return any(one.message == message for one, _ in found.companions)
