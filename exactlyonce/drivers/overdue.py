"""Overdue outputs: an output that can no longer be published is parked, and so no longer owed.

The receiver of a message that is too old can neither apply nor drop the message, since its mark may be gone. So an output that
an entity owed for too long, or that a stream computes again for a very late copy, is parked for an operator. Numbered outputs
are exempt: a receiver never forgets numbers. Calls are exempt, too, since no call is made after its key has expired.

An output of any kind is parked if the application no longer has its destination. It waits for the delivery limit, since a
destination may be missing by mistake, or come with the next release.
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
    """The place for overdue outputs of an entity: the entity's own place holds unprocessed messages only."""
    return EntityRef(TOO_OLD, (entity.type, *entity.partition), entity.id)


def divided(
    effect: Publish, lifetimes: Lifetimes, now: datetime, destinations: Container[str] | None = None
) -> tuple[tuple[Output, ...], tuple[Park, ...]]:
    """The outputs of an effect to publish, and the outputs to park.

    Args:
        lifetimes: the application's bounds of age.
        now: the present, by the store's time.
        destinations: the application's destinations; None if it has all destinations.
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
    """Why an output without a destination is no longer owed; None if it is still owed."""
    limit = lifetimes.delivery_limit
    if envelope.time is None or now - envelope.time <= limit:
        return None
    return f"more than {limit} ago, for {output.destination}, which is no longer a destination of this application"


def _too_old(output: Output, envelope: Envelope, lifetimes: Lifetimes, now: datetime) -> str | None:
    """Why an output is too old to publish; None if it can be published. Receivers judge by the stable time, if it has one."""
    limit = lifetimes.send_limit(now)
    since = None if envelope.time is None else milliseconds(envelope.time)
    since = since if envelope.since is None else envelope.since
    if output.place is not None or envelope.type == CALL_TYPE or since is None:
        return None
    if (milliseconds(now) - since) * MILLISECOND <= limit:
        return None
    return f"for a message of more than {limit} ago: too old to be published, unless it was published before"
