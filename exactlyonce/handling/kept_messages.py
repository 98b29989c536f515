"""Kept messages: what a handler sends at a later time, until it is released or cancelled."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Final

from exactlyonce.attempt import Before
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.routes import Routes
from exactlyonce.records.outputs import Output
from exactlyonce.records.places import RECEIVER, Place
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import Envelope

NUMBERED: Final = 256
"""Bytes that are left in a kept message for the attributes that it gets when it is released."""


class KeptMessages:
    """What one handler keeps and cancels.

    Args:
        known: ids of the messages that the entity keeps; None where its strategy keeps none.

    Attributes:
        kept: messages that the handler keeps, each with the time at which it is due.
        cancelled: ids of messages of earlier commits that it cancels.
    """

    def __init__(self, known: frozenset[str] | None) -> None:
        self._known = known
        self.count = 0
        self.kept: tuple[tuple[datetime, Output], ...] = ()
        self.cancelled: frozenset[str] = frozenset()

    def require(self) -> frozenset[str]:
        """Ids of the messages that were kept before. Raises `ConfigurationError` where the strategy keeps none."""
        if self._known is None:
            raise ConfigurationError(
                "Only entities with the strategy Outbox() keep messages until a time: only their ledger names them. Elsewhere "
                "send with delay=, and let the receiver decide whether the message still matters."
            )
        return self._known

    def keep(self, due: datetime, output: Output) -> None:
        """Keep a message until it is due. Raises `ConfigurationError` where the strategy keeps none."""
        self.require()
        self.count += 1
        self.kept = (*self.kept, (due, output))

    def cancel(self, id: str) -> bool:
        """Cancel a message; whether it was kept until now."""
        stays = tuple(one for one in self.kept if one[1].id != id)
        if len(stays) < len(self.kept):
            self.kept = stays
            return True
        if id not in self.require() - self.cancelled:
            return False
        self.cancelled |= {id}
        return True


def utc(due: datetime) -> datetime:
    """A time with a time zone, in UTC. Raises ValueError if it has none, or is in no year from 1 to 9999 in UTC."""
    if due.utcoffset() is None:
        raise ValueError(f"at= is a time with a time zone, such as context.now + timedelta(days=30); {due} has none.")
    try:
        return due.astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"at= is a time whose year is 1 to 9999 in UTC, too; {due} is none.") from None


def released(routes: Routes, before: Before, kept: Output) -> tuple[Sequences, Output]:
    """A kept message as it is sent: with the time of its release, and a number if its receiver takes messages in their order.

    With the sequences afterwards.

    Raises:
        UnknownDestination: the application no longer has its destination.
        OutputTooLarge: its queue no longer takes its size.
    """
    envelope = replace(Envelope.read(kept.envelope.text), time=before.at)
    receiver = dict(envelope.extensions).get(RECEIVER) if kept.destination in routes.ordered else None
    if receiver is None:
        return before.sequences, _checked(routes, kept, envelope, None)
    sequences, place = routes.number(before.sequences, kept.destination, str(receiver), before.at, before.tx)
    others = (one for one in envelope.extensions if one[0] != RECEIVER)
    envelope = replace(envelope, extensions=tuple(sorted((*place.extensions, *others))))
    return sequences, _checked(routes, kept, envelope, place)


def _checked(routes: Routes, kept: Output, envelope: Envelope, place: Place | None) -> Output:
    wire = envelope.to_json()
    routes.check(kept.destination, wire.size)
    return Output(kept.id, kept.destination, wire, place=place, index=kept.index)
