"""Places in sequences, and those that make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exactlyonce.attempt import key_of
from exactlyonce.errors import DamagedDocument, InvalidMessage
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.sequences import Order, Reception
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

Place = tuple[str, int]
"""A sequence, by the source that sends it, and a number in it."""
Known = Mapping[Place, tuple[NumberedMessage, str]]
"""Documents of numbers, each with its ETag."""

FARTHEST_AHEAD: Final = 100_000
"""A number so far above the next one is taken for a mistake of its sender."""


def require_sense(entity: EntityRef, envelope: Envelope, order: Order, reception: Reception, *, timed: bool) -> None:
    """Refuse a place that a message for this read model cannot have.

    Args:
        entity: the read model.
        envelope: the message.
        order: its place.
        reception: how far its sequence is received.
        timed: whether it needs a time, to be brought into one order with others.

    Raises:
        InvalidMessage: it cannot have it.
    """
    about = f"Message {key_of(envelope)} for read model {entity}"
    if order.key != entity.id:
        raise InvalidMessage(
            f"{about} is numbered for {order.key!r}, so the numbers of this read model would have gaps. Let order_by= of the "
            "destination name the read model's id, as key= does."
        )
    if timed and envelope.time is None:
        raise InvalidMessage(f"{about} has no time, by which messages of several sources are brought into one order.")
    if order.number >= reception.next + FARTHEST_AHEAD:
        raise InvalidMessage(
            f"{about} has the number {order.number}, but {reception.next} is next: more than {FARTHEST_AHEAD} ahead. It was "
            "not held. Correct the sender; or, where that many messages are lost, rebuild the read model."
        )


def two_with_one_number(entity: EntityRef, envelope: Envelope, number: int, other: str | None) -> InvalidMessage:
    """The error of a message whose number another one has."""
    return InvalidMessage(
        f"Message {key_of(envelope)} for read model {entity} has the number {number} in the sequence of {envelope.source}, "
        f"which message {other} has. It was not handled. Was the source deleted, or restored from a backup, so that its "
        "numbers began anew? Then give the read model a new key, and rebuild it."
    )


def held_and_gone(entity: EntityRef, place: Place) -> DamagedDocument:
    """The error of a message that a read model holds, where there is no document that does."""
    source, number = place
    return DamagedDocument(
        f"Read model {entity} holds number {number} of {source}, but the document that should hold the message is gone. "
        "Nothing was changed. Restore it from a backup, or rebuild the read model."
    )
