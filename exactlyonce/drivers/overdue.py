"""Outputs that are too old to be published: they are parked, and so nobody owes them any more.

Who is sent a message that came about too long ago can neither apply nor drop it, if it is new to them: what would tell whether
it was processed may be gone. So a message that an entity owed for very long, or that a stream computes again for a very late
copy, is not sent but kept for an operator. Numbered outputs are exempt: a read model knows its numbers for ever.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from exactlyonce.attempt import key_of
from exactlyonce.effects.library import Park
from exactlyonce.effects.publish import Publish
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

TOO_OLD: Final = "exactlyonce.too-old"
"""In place of an entity's type, in the name of the place for its outputs that are too old."""


def place_of(entity: EntityRef) -> EntityRef:
    """Where outputs of an entity are parked: not with the entity, whose parked messages are those that it never processed."""
    return EntityRef(TOO_OLD, (entity.type, *entity.partition), entity.id)


def divided(effect: Publish, lifetimes: Lifetimes, now: datetime) -> tuple[tuple[Output, ...], tuple[Park, ...]]:
    """What of an effect is to be published, and what is to be parked instead.

    Args:
        effect: of outputs that were committed before, or just now.
        lifetimes: of the application.
        now: the present, by the store's time.
    """
    limit = lifetimes.send_limit(now)
    if effect.owed is None or now - effect.owed.since <= limit:
        return effect.outputs, ()  # As nearly always, so envelopes need not be read.
    place, kept, parked = place_of(effect.owed.entity), [], []
    for output in effect.outputs:
        envelope = Envelope.read(output.envelope.text)
        if output.order is not None or envelope.time is None or now - envelope.time <= limit:
            kept.append(output)
            continue
        reason = (
            f"committed by {effect.owed.entity} at {envelope.time.isoformat()}, which is more than {limit} ago: too old to be "
            "published, if it was not before"
        )
        message = ParkedMessage(place.key, key_of(envelope), reason, now, output.envelope, output.destination)
        parked.append(Park(place, message))
    return tuple(kept), tuple(parked)
