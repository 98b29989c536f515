"""Channels: what an entity has received through each, so that it knows every duplicate, however late it comes.

The numbers that were received are kept as ranges: one for a channel without gaps, however many messages it has carried. The ids
of the latest messages are kept as short marks. A source that was restored from a backup gives out numbers a second time; the
receiver then finds another id under a number that it knows, and refuses the message instead of taking it for a copy.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import with_config

from exactlyonce.records.places import Numbers, Place
from exactlyonce.values.ranges import Ranges, highest, holds, union, with_number
from exactlyonce.values.shapes import EXACT

MOST_RANGES: Final = 256
"""Ranges of one channel: beyond that the numbers have too many gaps, and the message is refused."""
FARTHEST_AHEAD: Final = 100_000
"""A number so far above the highest one received is taken for a mistake of its sender."""
MARKS: Final = 16
"""Messages of a channel whose ids are known. A source that was restored to an earlier point than these is not noticed."""
_MARK: Final = 5  # Characters of a mark, 30 bits: one message in 10^9 under a known number passes for a copy.
_BEGINNING: Final = 12  # Characters of a channel's id: see `sequences.channel_id`.
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
_NO_MARK: Final = "?" * _MARK


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Channel:
    """What an entity has received through one channel.

    Attributes:
        id: of the channel.
        source: who sends through it.
        received: the numbers of the messages that were processed.
        marks: of the highest numbers among these, from the highest on: the mark of each message's id.
    """

    id: str
    source: str
    received: Numbers = ()
    marks: str = ""

    def with_message(self, number: int, id: str) -> Channel:
        """The channel with one more message."""
        received = with_number(self.received, number)
        if number > self.top:  # As nearly always. So no mark is taken apart.
            return replace(self, received=received, marks=(_mark(id) + self.marks)[: MARKS * _MARK])
        return _marked(self, received, {**self._marks, number: _mark(id)})

    def united(self, other: Channel) -> Channel:
        """What either of two views of the same channel knows."""
        return _marked(self, union(self.received, other.received), {**other._marks, **self._marks})

    def is_fork(self, number: int, id: str) -> bool:
        """Whether another message is known to have this number."""
        return self._marks.get(number, _NO_MARK) not in (_NO_MARK, _mark(id))

    def includes(self, other: Channel) -> bool:
        """Whether every number of another view of this channel is known here."""
        return union(self.received, other.received) == self.received

    def refusal(self, number: int) -> str | None:
        """Why a number that was never received cannot be; None if it can."""
        if number > self.top + FARTHEST_AHEAD:
            return f"{self.top} is the highest number received: this one is more than {FARTHEST_AHEAD} ahead"
        if len(self.received) >= MOST_RANGES and len(with_number(self.received, number)) > MOST_RANGES:
            return f"its channel has {MOST_RANGES} gaps already"
        return None

    @property
    def top(self) -> int:
        """The highest number received; 0 if there is none."""
        return self.received[-1][1] if self.received else 0

    @property
    def _marks(self) -> Mapping[int, str]:
        """The marks by their numbers."""
        parts = (self.marks[first : first + _MARK] for first in range(0, len(self.marks), _MARK))
        return dict(zip(highest(self.received, MARKS), parts, strict=False))


Channels = tuple[Channel, ...]


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Forgotten:
    """Which channels clean-up may have forgotten.

    Attributes:
        mark: beginning of the latest channel that was forgotten, in milliseconds since 1970. A channel that began by then and
            is not known may have been forgotten.
        turn: of the clean-up that forgot last, fresh for each. Of channels that began by the mark only documents of this turn
            count: others may be late, and say less than what was forgotten.
    """

    mark: int
    turn: str

    def includes(self, channel: str) -> bool:
        """Whether a channel may have been forgotten, if it is not known."""
        began = beginning(channel)
        return began is not None and began <= self.mark


def beginning(channel: str) -> int | None:
    """When a channel began, in milliseconds since 1970, as its id says; None for an id that does not say."""
    digits = channel[:_BEGINNING]
    return int(digits, 16) if len(digits) == _BEGINNING and set(digits) <= _HEXADECIMAL else None


def earliest_after(began: int) -> str:
    """What ids of channels begin with at least that began after a time, in milliseconds since 1970."""
    return f"{began + 1:0{_BEGINNING}x}"


def holds_place(channels: Mapping[str, Channel], place: Place) -> bool:
    """Whether a place's number was received."""
    channel = channels.get(place.channel)
    return channel is not None and holds(channel.received, place.number)


def by_id(channels: Iterable[Channel]) -> dict[str, Channel]:
    """Channels by their ids; several views of one are united."""
    known: dict[str, Channel] = {}
    for channel in channels:
        known[channel.id] = known[channel.id].united(channel) if channel.id in known else channel
    return known


def _marked(channel: Channel, received: Ranges, marks: Mapping[int, str]) -> Channel:
    kept = "".join(marks.get(number, _NO_MARK) for number in highest(received, MARKS))
    return replace(channel, received=received, marks=kept)


def _mark(id: str) -> str:
    """A short name for an id: the same for the same id, nearly always another one for another."""
    return b64encode(hashlib.sha256(id.encode()).digest()[:4])[:_MARK].decode()
