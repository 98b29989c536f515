"""Sequences: the numbers 1, 2, 3 … of the messages that one sender sends to one receiver through one destination.

A channel carries the messages of a sequence. The sender's commit gives out the numbers. So a receiver that stores the
received numbers recognizes every duplicate, however late, and sees no gap, even when receiving only a part of what the sender
sends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, pairwise
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, with_config

from exactlyonce.errors import InvalidMessage
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import EXACT

# Ranges of numbers.


Ranges = tuple[tuple[int, int], ...]
"""Numbers as first and last of each run, ascending, with gaps between the runs."""


def holds(ranges: Ranges, number: int) -> bool:
    """Whether a number is in a range."""
    return any(first <= number <= last for first, last in ranges)


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges with one more number."""
    return union(ranges, ((number, number),))


def from_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges, cut to start at a number."""
    return tuple((max(first, number), last) for first, last in ranges if last >= number)


def union(some: Ranges, others: Ranges) -> Ranges:
    """All numbers of both."""
    united: list[tuple[int, int]] = []
    for first, last in sorted((*some, *others)):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return tuple(united)


def highest(ranges: Ranges, most: int) -> tuple[int, ...]:
    """The highest numbers, at most `most`, from the top."""
    return tuple(islice(_from_the_top(ranges), most))


def _from_the_top(ranges: Ranges) -> Iterator[int]:
    for first, last in reversed(ranges):
        yield from range(last, first - 1, -1)


def is_ascending(ranges: Ranges, least: int, greatest: int) -> bool:
    """Whether all pairs are ranges: first before last, from `least` to `greatest`, ascending, with gaps between."""
    edges = [edge for pair in ranges for edge in pair]
    gaps = all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))
    return gaps and edges == sorted(edges) and all(least <= edge <= greatest for edge in edges)


# Places of messages in channels. On the wire: the CloudEvents extensions `channel`, `partitionkey` and `sequence`.


CHANNEL: Final = "channel"
RECEIVER: Final = "partitionkey"
NUMBER: Final = "sequence"
LARGEST_NUMBER: Final = 2**53 - 1
"""The store has only doubles."""
LONGEST_CHANNEL: Final = 64
"""Characters of a channel's id accepted on reading: twice as many as the library writes."""
_DIGITS: Final = 16  # The extension asks for strings that sort as their numbers do.


def _require_ascending(ranges: Ranges) -> Ranges:
    """Refuse stored ranges that overlap: a number could be both received and missing."""
    if not is_ascending(ranges, 1, LARGEST_NUMBER):
        raise ValueError("numbers have to be ranges that ascend from 1 on, with gaps between them")
    return ranges


Numbers = Annotated[Ranges, AfterValidator(_require_ascending)]
"""Numbers of a channel, as ranges. Reading refuses overlapping ranges."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Place:
    """The place of a message in a channel.

    Attributes:
        channel: id of the channel.
        receiver: the receiving entity, as a source.
        number: from 1.
    """

    channel: str
    receiver: str
    number: int

    @property
    def extensions(self) -> tuple[tuple[str, str], ...]:
        """Attributes of an envelope, sorted by name."""
        return ((CHANNEL, self.channel), (RECEIVER, self.receiver), (NUMBER, f"{self.number:0{_DIGITS}d}"))


def is_numbered(envelope: Envelope) -> bool:
    """Whether a message states a place. Without a place it is foreign: only records know its duplicates."""
    return any(name == CHANNEL for name, _ in envelope.extensions)


def without_place(envelope: Envelope) -> Envelope:
    """The message as a foreign one, without a number."""
    return replace(
        envelope,
        extensions=tuple(extension for extension in envelope.extensions if extension[0] not in (CHANNEL, NUMBER)),
    )


def stated_place(envelope: Envelope) -> Place | None:
    """The place stated by a message; None without a valid place."""
    try:
        receiver = EntityRef.of_source(str(dict(envelope.extensions).get(RECEIVER)))
        return place_of(envelope, receiver, "It")
    except (InvalidMessage, ValueError):
        return None


def place_of(envelope: Envelope, receiver: EntityRef, about: str) -> Place:
    """The place of a message in its channel.

    Args:
        envelope: a message that must have a place.
        receiver: the receiving entity.
        about: name of the message in the error.

    Raises:
        InvalidMessage: the place is absent or invalid.
    """
    extensions = dict(envelope.extensions)
    if lacking := [name for name in (CHANNEL, RECEIVER, NUMBER) if name not in extensions]:
        raise InvalidMessage(
            f"{about} has no {' and no '.join(lacking)}, so its place is not known. Declare the receiver where the sender is "
            "composed, with Destination(..., to=entity) or Destination(..., to=type, entity_by=...)."
        )
    channel, addressed, number = extensions[CHANNEL], extensions[RECEIVER], _number(str(extensions[NUMBER]))
    if not isinstance(channel, str) or not 1 <= number <= LARGEST_NUMBER:
        raise InvalidMessage(
            f"{about} has a {NUMBER} that is no number from 1 to 2^53, or a {CHANNEL} that is no string. Correct the sender."
        )
    if not 0 < len(channel) <= LONGEST_CHANNEL or not channel.isascii() or not channel.isalnum():
        raise InvalidMessage(
            f"{about} has a {CHANNEL} that is not made of 1 to {LONGEST_CHANNEL} letters and digits. Correct the sender."
        )
    if addressed != receiver.source:
        raise InvalidMessage(
            f"{about} is numbered for {addressed!r}, so the numbers of {receiver} would have gaps. Let the destination's to= "
            "and entity_by= name the entity that the handler's key= names."
        )
    return Place(channel, receiver.source, number)


def _number(text: str) -> int:
    """The number in a text; 0 for any other text, and for texts too long for Python to convert."""
    digits = text.lstrip("0")
    return int(digits) if text.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0


# Receptions of read models.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Reception:
    """How far a read model has received one channel.

    Attributes:
        channel: id of the channel.
        source: the sender.
        next: the number to handle next.
        held: numbers above `next` with held messages; includes `next` after its handler raised.
        gap_since: time since when messages are held for lack of `next`; None without a gap.
        failing: class name of the error raised by the handler of `next`; None if none.
        passed: latest time of the channel's handled messages, where sources are brought into one order; None elsewhere.
    """

    channel: str
    source: str
    next: int = 1
    held: Numbers = ()
    gap_since: datetime | None = None
    failing: str | None = None
    passed: datetime | None = None


class Sequence(NamedTuple):
    """How far an entity has numbered its messages to one receiver through one destination. A list in documents.

    Attributes:
        destination: logical name of the destination.
        receiver: the receiving entity, as a source.
        channel: the channel of the messages.
        last: the last number given out.
    """

    destination: str
    receiver: str
    channel: str
    last: int


Sequences = tuple[Sequence, ...]
"""All sequences of an entity, in the order of their beginnings."""


def channel_id(at: datetime, tx: str, count: int) -> str:
    """The id of a channel: start time, hash of the transaction, count.

    No two attempts have the same transaction id. So no receiver knows a channel begun by a lost attempt, and an entity
    without its ledger never continues with numbers already given out.

    Args:
        at: time of the attempt.
        tx: transaction id of the message beginning the channel, in this attempt.
        count: how many channels the message has begun before.
    """
    return f"{milliseconds(at):012x}{named_after(tx)}{count:04x}"


def named_after(tx: str) -> str:
    """The transaction's part of a channel id: a hash, since transaction ids of one book begin alike."""
    return hashlib.sha256(tx.encode()).hexdigest()[:16]


def milliseconds(at: datetime) -> int:
    """A time in milliseconds since 1970, the start time in channel ids."""
    return int(at.timestamp() * 1000)


def numbered(sequences: Sequences, destination: str, receiver: str, begin: str) -> tuple[Sequences, Place]:
    """Give out the next number; return the new sequences, and the output's place.

    A sequence is never forgotten, since no order holds between two channels.

    Args:
        sequences: the sequences so far.
        destination, receiver: of the output.
        begin: id of the channel, if this is the first message.
    """
    for index, sequence in enumerate(sequences):
        if (sequence.destination, sequence.receiver) == (destination, receiver):
            counted = sequence._replace(last=sequence.last + 1)
            return (*sequences[:index], counted, *sequences[index + 1 :]), Place(
                sequence.channel, receiver, counted.last
            )
    return (*sequences, Sequence(destination, receiver, begin, 1)), Place(begin, receiver, 1)
