"""Sequences: how far an entity has numbered what it sends, one for each receiver and destination."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import with_config

from exactlyonce.records.channels import beginning
from exactlyonce.records.places import Place
from exactlyonce.values.shapes import EXACT

MOST_SEQUENCES: Final = 256
"""Sequences that an entity keeps. For a receiver that it has forgotten, a new channel begins."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Sequence:
    """How far an entity has numbered what it sends to one receiver through one destination.

    Attributes:
        destination: its logical name.
        receiver: the receiving entity, as the source of what it sends.
        channel: that carries the messages.
        last: number given out last.
        ordered: whether the receiver takes the messages in their order. Such a sequence is never forgotten, since no order
            holds between two channels.
    """

    destination: str
    receiver: str
    channel: str
    last: int
    ordered: bool = False


Sequences = tuple[Sequence, ...]
"""All sequences of an entity, in the order in which they began."""


def channel_id(at: datetime, tx: str, count: int) -> str:
    """The id of a channel: when it begins, and what makes it the only one.

    No two attempts have the same transaction id. So a channel that an attempt begins in vain is known to nobody, and an
    entity that lost its ledger never goes on with numbers that it gave out.

    Args:
        at: time of the attempt.
        tx: transaction id of the message that begins it, in this attempt.
        count: how many channels that message has begun before.
    """
    return f"{milliseconds(at):012x}{tx[:16]}{count:04x}"


def milliseconds(at: datetime) -> int:
    """A time in milliseconds since 1970, as ids of channels say when these began."""
    return int(at.timestamp() * 1000)


def numbered(
    sequences: Sequences,
    destination: str,
    receiver: str,
    begin: str,
    *,
    ordered: bool = False,
    since: datetime | None = None,
) -> tuple[Sequences, Place]:
    """Give out the next number; return the sequences afterwards, and the place of the output that got it.

    Args:
        sequences: so far.
        destination, receiver: of the output.
        begin: id for the channel, if this is its first message.
        ordered: whether the receiver takes messages in their order.
        since: a channel that began earlier gives way to a fresh one; None if none does. The receiver may forget old ones.
    """
    for index, one in enumerate(sequences):
        if (one.destination, one.receiver) == (destination, receiver):
            others = sequences[:index], sequences[index + 1 :]
            if since is not None and _began_before(one, since):
                sequences = (*others[0], *others[1])
                break
            counted = replace(one, last=one.last + 1)
            return (*others[0], counted, *others[1]), Place(one.channel, receiver, counted.last)
    begun = Sequence(destination, receiver, begin, 1, ordered)
    return (*_with_room(sequences), begun), Place(begin, receiver, 1)


def _began_before(sequence: Sequence, since: datetime) -> bool:
    """Whether a channel began before a time, and its messages need no order."""
    began = beginning(sequence.channel)
    return not sequence.ordered and began is not None and began < milliseconds(since)


def _with_room(sequences: Sequences) -> Sequences:
    """The sequences without the one that began first, if there are too many to begin another."""
    if len(sequences) < MOST_SEQUENCES:
        return sequences
    oldest = next((one for one in sequences if not one.ordered), None)
    return tuple(one for one in sequences if one is not oldest)
