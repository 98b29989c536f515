"""Overdue outputs: an output that can be published no more is parked, and so no longer owed.

The receiver of a message that is too old can neither apply nor drop it, since its mark of the message may be gone. So an output
that an entity owed for too long, or that a stream computes again for a very late copy, is parked for an operator. Numbered
outputs are exempt: a receiver never forgets numbers. So are calls, since nothing older than its key is called.

An output whose destination the application has no more is parked, too, whatever it is. It waits for the delivery limit, since a
destination may be missing by mistake, or from the next release only.
"""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Final

from exactlyonce.effects.entity import Publish
from exactlyonce.effects.library import Park
from exactlyonce.records.ledger import CALL_TYPE
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import MILLISECOND, EntityRef, Envelope, key_of, milliseconds, written_time
from exactlyonce.values.lifetimes import Lifetimes

TOO_OLD: Final = "exactlyonce.too-old"
"""In place of an entity's type, in the key of the place for its overdue outputs."""


def place_of(entity: EntityRef) -> EntityRef:
    """The place for overdue outputs of an entity: not the entity's own, which is for messages that it never processed."""
    return EntityRef(TOO_OLD, (entity.type, *entity.partition), entity.id)


def divided(
    effect: Publish, lifetimes: Lifetimes, now: datetime, destinations: Container[str] | None = None
) -> tuple[tuple[Output, ...], tuple[Park, ...]]:
    """The outputs of an effect to publish, and those to park instead.

    Args:
        effect: of committed outputs.
        lifetimes: of the application.
        now: the present, by the store's time.
        destinations: that the application has; None if it has all that outputs name.
    """
    if effect.owed is None:
        return effect.outputs, ()
    entity, kept, parked = effect.owed, [], []
    place = place_of(entity)
    for output in effect.outputs:
        envelope = Envelope.read(output.envelope.text)
        is_gone = destinations is not None and output.destination not in destinations
        reason = _gone(output, envelope, lifetimes, now) if is_gone else _too_old(output, envelope, lifetimes, now)
        if reason is None:
            kept.append(output)
            continue
        reason = f"committed by {entity} at {written_time(envelope.time or now)}, {reason}"
        message = ParkedMessage(place.key, key_of(envelope), reason, now, output.envelope, output.destination)
        parked.append(Park(place, message))
    return tuple(kept), tuple(parked)


def _gone(output: Output, envelope: Envelope, lifetimes: Lifetimes, now: datetime) -> str | None:
    """Why an output whose destination is gone is owed no longer; None if it still is."""
    limit = lifetimes.delivery_limit
    if envelope.time is None or now - envelope.time <= limit:
        return None
    return f"more than {limit} ago, for {output.destination}, which is no longer a destination of this application"


def _too_old(output: Output, envelope: Envelope, lifetimes: Lifetimes, now: datetime) -> str | None:
    """Why an output cannot be published any more; None if it can. Receivers judge its age by its stable time, if it has one."""
    limit = lifetimes.send_limit(now)
    since = None if envelope.time is None else milliseconds(envelope.time)
    since = since if envelope.since is None else envelope.since
    if output.place is not None or envelope.type == CALL_TYPE or since is None:
        return None
    if (milliseconds(now) - since) * MILLISECOND <= limit:
        return None
    return f"for a message of more than {limit} ago: too old to be published, unless it was published before"
