"""Positions in channels, and those that make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exactlyonce.attempt import key_of
from exactlyonce.errors import DamagedDocument, InvalidMessage
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

Position = tuple[str, int]
"""A channel, and a number in it."""
Known = Mapping[Position, tuple[NumberedMessage, str]]
"""Documents of numbers, each with its ETag."""

FARTHEST_AHEAD: Final = 100_000
"""A number so far above the next one is taken for a mistake of its sender."""


def require_sense(entity: EntityRef, envelope: Envelope, place: Place, reception: Reception, *, timed: bool) -> None:
    """Refuse a place that a message for this read model cannot have.

    Args:
        entity: the read model.
        envelope: the message.
        place: of the message.
        reception: how far its channel is received.
        timed: whether it needs a time, to be brought into one order with others.

    Raises:
        InvalidMessage: it cannot have it.
    """
    about = f"Message {key_of(envelope)} for read model {entity}"
    if envelope.source != reception.source:
        raise InvalidMessage(
            f"{about} comes in channel {place.channel}, which is of {reception.source}. It was not held. Correct the sender."
        )
    if timed and envelope.time is None:
        raise InvalidMessage(f"{about} has no time, by which messages of several sources are brought into one order.")
    if place.number >= reception.next + FARTHEST_AHEAD:
        raise InvalidMessage(
            f"{about} has the number {place.number}, but {reception.next} is next: more than {FARTHEST_AHEAD} ahead. It was "
            "not held. Correct the sender; or, where that many messages are lost, rebuild the read model."
        )


def two_with_one_number(entity: EntityRef, envelope: Envelope, position: Position, other: str | None) -> InvalidMessage:
    """The error of a message whose number another one has."""
    channel, number = position
    return InvalidMessage(
        f"Message {key_of(envelope)} for read model {entity} has the number {number} in channel {channel} of "
        f"{envelope.source}, which message {other} has. It was not handled. Was the source restored from a backup, so that it "
        "gives out numbers a second time? Then give the read model a new key, and rebuild it."
    )


def held_and_gone(entity: EntityRef, position: Position) -> DamagedDocument:
    """The error of a message that a read model holds, where there is no document that does."""
    channel, number = position
    return DamagedDocument(
        f"Read model {entity} holds number {number} of channel {channel}, but the document that should hold the message is "
        "gone. Nothing was changed. Restore it from a backup, or rebuild the read model."
    )
