"""Places: the numbers 1, 2, 3 … of the messages that one sender sends to one receiver through one destination.

A channel carries these messages. Its sender's commit gives out the numbers, so a receiver that keeps which ones it has received
knows every duplicate, however late it comes, and every receiver sees a sequence without gaps, even if it gets only a part of
what the sender sends. On the wire a place travels in the CloudEvents extensions `channel`, `partitionkey` and `sequence`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import AfterValidator, with_config

from exactlyonce.errors import InvalidMessage
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.ranges import Ranges, is_ascending
from exactlyonce.values.shapes import EXACT

CHANNEL: Final = "channel"
RECEIVER: Final = "partitionkey"
NUMBER: Final = "sequence"
LARGEST_NUMBER: Final = 2**53 - 1
"""The store knows doubles only."""
LONGEST_CHANNEL: Final = 64
"""Characters of a channel's id that are read: twice as many as the library writes."""
_DIGITS: Final = 16  # The extension asks for strings that sort as their numbers do.


def _require_ascending(ranges: Ranges) -> Ranges:
    """Refuse stored ranges that contradict one another: a number could be received in one, and missing between others."""
    if not is_ascending(ranges, 1, LARGEST_NUMBER):
        raise ValueError("numbers have to be ranges that ascend from 1 on, with gaps between them")
    return ranges


Numbers = Annotated[Ranges, AfterValidator(_require_ascending)]
"""Numbers of a channel, as ranges. Stored ones that overlap are refused when they are read."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Place:
    """The place of a message in a channel.

    Attributes:
        channel: its id.
        receiver: the entity that the message is for, as the source of what it sends.
        number: from 1.
    """

    channel: str
    receiver: str
    number: int

    @property
    def extensions(self) -> tuple[tuple[str, str], ...]:
        """As attributes of an envelope, sorted by name."""
        return ((CHANNEL, self.channel), (RECEIVER, self.receiver), (NUMBER, f"{self.number:0{_DIGITS}d}"))


def is_numbered(envelope: Envelope) -> bool:
    """Whether a message says that it has a place. One that does not is foreign: only records know its duplicates."""
    return any(name == CHANNEL for name, _ in envelope.extensions)


def without_place(envelope: Envelope) -> Envelope:
    """The message as a foreign one, which has no number."""
    return replace(envelope, extensions=tuple(one for one in envelope.extensions if one[0] not in (CHANNEL, NUMBER)))


def stated_place(envelope: Envelope) -> Place | None:
    """The place that a message says it has; None if it says none, or one that cannot be."""
    try:
        receiver = EntityRef.of_source(str(dict(envelope.extensions).get(RECEIVER)))
        return place_of(envelope, receiver, "It")
    except (InvalidMessage, ValueError):
        return None


def place_of(envelope: Envelope, receiver: EntityRef, about: str) -> Place:
    """The place of a message in its channel.

    Args:
        envelope: of a message that has to have one.
        receiver: the entity that takes it.
        about: what the error is to call it.

    Raises:
        InvalidMessage: it has none, or one that it cannot have.
    """
    extensions = dict(envelope.extensions)
    if lacking := [name for name in (CHANNEL, RECEIVER, NUMBER) if name not in extensions]:
        raise InvalidMessage(
            f"{about} has no {' and no '.join(lacking)}, so its place is not known. Declare whom messages are for where their "
            "sender is composed, with Destination(..., to=entity) or Destination(..., to=type, entity_by=...)."
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
    """The number that a text is; 0 if it is none, or too long: thousands of digits are more than Python converts."""
    digits = text.lstrip("0")
    return int(digits) if text.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0
