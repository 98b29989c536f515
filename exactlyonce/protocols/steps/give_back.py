"""Returning a message to its queue after the host gave it up.

The sent copy has the message's id and time, so returning is safe at any time, and twice. A parked message is not returned:
the settler has declared it unprocessed until an operator sends it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import LoadParked
from exactlyonce.protocols.steps.load import fresh_token
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import EntityRef

_NOBODYS: Final = "exactlyonce/returning"
"""Key of no message: no entity has this source."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The outcome of returning a message.

    Attributes:
        outcome: "returned"; or "parked": the message stays parked.
    """

    outcome: Literal["returned", "parked"]
    memory: Memory


def give_back(entity: EntityRef, message: str, output: Output, memory: Memory) -> Step[Returned | Again]:
    """Send a message to its queue once more, unless parked. At most 5 effects.

    The parked document is read at the session token of a write made just now in the same partition. So the view shows
    everything parked before, however stale the replicas are.

    Args:
        message: key of the message.
        output: the copy to send.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    token = yield from fresh_token(entity, _NOBODYS)
    if token is None:
        return Again(memory, "whether anything was written is not known")
    # Read whether the message is parked. A parked message counts as never processed, so it is not sent.
    parked = yield from LoadParked(entity, message, token)
    if isinstance(parked, NoAnswer):
        return Again(memory, "whether the message is parked could not be read")
    if parked.message is not None:
        return Returned("parked", memory)
    returned = yield from send(output, memory)
    return returned


def send(output: Output, memory: Memory) -> Step[Returned | Again]:
    """Send a message to its queue once more, without reading the store: only for a message that cannot have been parked. One
    effect.
    """
    # Send the message to its queue. Identity and time are kept, so the message is a copy like any other.
    published = yield from Publish((output,))
    if published is not PUBLISHED:
        return Again(memory, "whether the message was sent is not known")
    return Returned("returned", memory)
