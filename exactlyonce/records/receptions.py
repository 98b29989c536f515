"""Receptions: how far a read model has received the channels that make it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import with_config

from exactlyonce.records.places import Numbers
from exactlyonce.values.shapes import EXACT


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Reception:
    """How far a read model has received one channel.

    Attributes:
        channel: its id.
        source: who sends it.
        next: the number to handle next.
        held: numbers above it whose messages are held; and itself, where its handler raised.
        gap_since: since when messages are held for want of `next`; None if they are not.
        failing: name of the error that the handler of `next` raised; None if it did not.
        passed: latest time of its messages that were handled, where sources are brought into one order; None elsewhere.
    """

    channel: str
    source: str
    next: int = 1
    held: Numbers = ()
    gap_since: datetime | None = None
    failing: str | None = None
    passed: datetime | None = None
