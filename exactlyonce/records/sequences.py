"""Sequences: how far an entity has numbered what it sends to receivers that take messages in order."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from exactlyonce.records.places import Place


class Sequence(NamedTuple):
    """How far an entity has numbered what it sends to one receiver through one destination. A list in documents.

    Attributes:
        destination: its logical name.
        receiver: the receiving entity, as the source of what it sends.
        channel: that carries the messages.
        last: number given out last.
    """

    destination: str
    receiver: str
    channel: str
    last: int


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
    return f"{milliseconds(at):012x}{named_after(tx)}{count:04x}"


def named_after(tx: str) -> str:
    """What the id of a channel has of the transaction that begins it: a hash, since those of one book begin alike."""
    return hashlib.sha256(tx.encode()).hexdigest()[:16]


def milliseconds(at: datetime) -> int:
    """A time in milliseconds since 1970, as ids of channels say when these began."""
    return int(at.timestamp() * 1000)


def numbered(sequences: Sequences, destination: str, receiver: str, begin: str) -> tuple[Sequences, Place]:
    """Give out the next number; return the sequences afterwards, and the place of the output that got it.

    A sequence is never forgotten, since no order holds between two channels.

    Args:
        sequences: so far.
        destination, receiver: of the output.
        begin: id for the channel, if this is its first message.
    """
    for index, one in enumerate(sequences):
        if (one.destination, one.receiver) == (destination, receiver):
            counted = one._replace(last=one.last + 1)
            return (*sequences[:index], counted, *sequences[index + 1 :]), Place(one.channel, receiver, counted.last)
    return (*sequences, Sequence(destination, receiver, begin, 1)), Place(begin, receiver, 1)
