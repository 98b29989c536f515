"""Numbers of outputs: 1, 2, 3 … for each source entity, destination and ordering key.

The ordering key is the key of the read model that an output is for. So every read model sees a sequence without gaps from each
source, even if it gets only a part of what the source sends. On the wire a number travels in the CloudEvents extensions
`sequence` and `partitionkey`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import with_config

from exactlyonce.errors import InvalidMessage
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.ranges import Ranges
from exactlyonce.values.shapes import EXACT

SEQUENCE: Final = "sequence"
PARTITION_KEY: Final = "partitionkey"
LARGEST_NUMBER: Final = 2**53 - 1
"""The store knows doubles only."""
_DIGITS: Final = 16  # The extension asks for strings that sort as their numbers do.


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Order:
    """The place of a message in a sequence.

    Attributes:
        key: the ordering key.
        number: from 1.
    """

    key: str
    number: int

    @property
    def extensions(self) -> tuple[tuple[str, str], ...]:
        """As attributes of an envelope."""
        return ((PARTITION_KEY, self.key), (SEQUENCE, f"{self.number:0{_DIGITS}d}"))


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Sequence:
    """How far an entity has numbered what it sends to one destination under one ordering key."""

    destination: str
    key: str
    last: int


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Reception:
    """How far a read model has received one sequence.

    Attributes:
        source: who sends it.
        next: the number to handle next.
        held: numbers above it whose messages are held; and itself, where its handler raised.
        gap_since: since when messages are held for want of `next`; None if they are not.
        failing: name of the error that the handler of `next` raised; None if it did not.
        passed: latest time of its messages that were handled, where sources are brought into one order; None elsewhere.
    """

    source: str
    next: int = 1
    held: Ranges = ()
    gap_since: datetime | None = None
    failing: str | None = None
    passed: datetime | None = None


Sequences = tuple[Sequence, ...]
"""All sequences of an entity, in the order in which they began."""


def numbered(sequences: Sequences, destination: str, key: str) -> tuple[Sequences, Order]:
    """Give out the next number; return the sequences afterwards, and the place of the output that got it."""
    for index, one in enumerate(sequences):
        if (one.destination, one.key) == (destination, key):
            counted = replace(one, last=one.last + 1)
            return (*sequences[:index], counted, *sequences[index + 1 :]), Order(key, counted.last)
    return (*sequences, Sequence(destination, key, 1)), Order(key, 1)


def order_of(envelope: Envelope, about: str) -> Order:
    """The place that an envelope names.

    Args:
        envelope: of a message that has to be in a sequence.
        about: what the error is to call it.

    Raises:
        InvalidMessage: it names none, or one that cannot be.
    """
    extensions = dict(envelope.extensions)
    if lacking := [name for name in (SEQUENCE, PARTITION_KEY) if name not in extensions]:
        raise InvalidMessage(
            f"{about} has no {' and no '.join(lacking)}, so its place in the sequence is not known. Declare the order where "
            "the sender is composed, with Destination(..., order_by=...), or name it in context.send(..., order_by=...)."
        )
    key, number = extensions[PARTITION_KEY], _number(str(extensions[SEQUENCE]))
    if not isinstance(key, str) or not 1 <= number <= LARGEST_NUMBER:
        raise InvalidMessage(
            f"{about} has a {SEQUENCE} that is no number from 1 to 2^53, or a {PARTITION_KEY} that is no string. Correct the "
            "sender."
        )
    return Order(key, number)


def _number(text: str) -> int:
    """The number that a text is; 0 if it is none, or too long: thousands of digits are more than Python converts."""
    digits = text.lstrip("0")
    return int(digits) if text.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0
