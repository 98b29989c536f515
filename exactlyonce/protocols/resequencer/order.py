"""One order for the messages of several sources: by their time, then by their source, each channel's own order kept.

A source that is silent may still send an earlier message, so the earliest one waits until every source has passed its time, or
until it has waited long enough. A message that comes too late is handled late, and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final

from exactlyonce.records.receptions import Reception
from exactlyonce.values.envelope import Envelope

_LONG_AGO: Final = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Head:
    """The next message of a channel, and since when it is there."""

    envelope: Envelope
    since: datetime


def earliest(
    heads: Mapping[str, Head], receptions: Iterable[Reception], at: datetime, max_wait: timedelta
) -> str | None:
    """The channel whose next message is to be handled; None if all have to wait.

    Args:
        heads: the next message of each channel that has one.
        receptions: of all channels known.
        at: the present.
        max_wait: how long a message waits, at most.
    """
    # One without a time was held before there was an order by time.
    timed = [(one.envelope.time or _LONG_AGO, one.envelope.source, channel) for channel, one in heads.items()]
    if not timed:
        return None
    first = min(timed)
    silent = (one for one in receptions if one.channel not in heads)
    # One that has passed just this time may send more of it: a handler's messages all have the time of their attempt.
    if all(one.passed is not None and (one.passed, one.source, one.channel) > first for one in silent):
        return first[2]
    # The message that has waited longest decides: earlier ones of other sources would keep it waiting for ever.
    return first[2] if at - min(head.since for head in heads.values()) >= max_wait else None


def is_late(envelope: Envelope, receptions: Iterable[Reception]) -> bool:
    """Whether a message that should have come after this one was handled already."""
    handled = ((one.passed, one.source) for one in receptions if one.passed is not None)
    return envelope.time is not None and any(before > (envelope.time, envelope.source) for before in handled)


def later(passed: datetime | None, time: datetime | None) -> datetime | None:
    """The later of two times, of which either may be lacking."""
    return max((one for one in (passed, time) if one is not None), default=None)
