"""Asks protocols to look after entities, in tests that have no handler."""

from __future__ import annotations

from typing import Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Settled, Strategy, Work
from exactlyonce.effects.effect import Step
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json

BY_NAME: Final[dict[str, Strategy]] = {
    item.name: item for item in (Outbox(), Colocated(), VersionStream(), Resequencer())
}


def unhandled(entity: EntityRef, *messages: Envelope, absent: Json = Json("{}")) -> Work:  # noqa: B008  # It is frozen.
    """Messages that nobody is to handle."""
    return Work(entity, messages, _refuse, absent)


def sweep(entity: EntityRef, memory: Memory, by: str = "outbox") -> Step[Finished | Again]:
    """Sweep an entity."""
    return BY_NAME[by].sweep(unhandled(entity), memory)


def settle(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, memory: Memory) -> Step[Settled | Again]:
    """Settle a message of the outbox."""
    return Outbox().settle(unhandled(entity, envelope, absent=absent), envelope, reason, memory)


def settle_by(by: str, work: Work, reason: str, memory: Memory, came: Envelope | None = None) -> Step[Settled | Again]:
    """Settle the one message of `work`."""
    return BY_NAME[by].settle(work, came or work.messages[0], reason, memory)


def clean_by(
    by: str, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
) -> Step[Finished | Again]:
    """Delete what is old."""
    return BY_NAME[by].clean(entity, candidates, memory)


def _refuse(before: Before, envelope: Envelope) -> Handled:
    raise AssertionError(f"Nobody is to handle {envelope.id} on {before}.")
