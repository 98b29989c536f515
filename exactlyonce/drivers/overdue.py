"""Overdue outputs: an output that is too old to be published is parked, and so no longer owed.

The receiver of a message that is too old can neither apply nor drop it, since its record of the message may be gone. So an
output that an entity owed for too long, or that a stream computes again for a very late copy, is parked for an operator.
Numbered outputs are exempt: a receiver never forgets numbers. So are calls, since nothing older than its key is called.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from exactlyonce.attempt import key_of
from exactlyonce.effects.library import Park
from exactlyonce.effects.publish import Publish
from exactlyonce.records.calls import CALL_TYPE
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

TOO_OLD: Final = "exactlyonce.too-old"
"""In place of an entity's type, in the key of the place for its overdue outputs."""


def place_of(entity: EntityRef) -> EntityRef:
    """The place for overdue outputs of an entity: not the entity's own, which is for messages that it never processed."""
    return EntityRef(TOO_OLD, (entity.type, *entity.partition), entity.id)


def divided(effect: Publish, lifetimes: Lifetimes, now: datetime) -> tuple[tuple[Output, ...], tuple[Park, ...]]:
    """The outputs of an effect to publish, and those to park instead.

    Args:
        effect: of committed outputs.
        lifetimes: of the application.
        now: the present, by the store's time.
    """
    limit = lifetimes.send_limit(now)
    if effect.owed is None or now - effect.owed.since <= limit:
        return effect.outputs, ()  # As nearly always, so envelopes need not be read.
    place, kept, parked = place_of(effect.owed.entity), [], []
    for output in effect.outputs:
        envelope = Envelope.read(output.envelope.text)
        ageless = output.place is not None or envelope.type == CALL_TYPE
        if ageless or envelope.time is None or now - envelope.time <= limit:
            kept.append(output)
            continue
        reason = (
            f"committed by {effect.owed.entity} at {envelope.time.isoformat()}, more than {limit} ago: too old to be "
            "published, unless it was published before"
        )
        message = ParkedMessage(place.key, key_of(envelope), reason, now, output.envelope, output.destination)
        parked.append(Park(place, message))
    return tuple(kept), tuple(parked)
