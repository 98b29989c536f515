"""Returning a message to the queue that gave it up.

It sends a copy like any other, with the message's id and time, so it may be done at any time and
twice. But the settler says of a parked message that it is not processed until an operator sends it again.
So a parked message is not sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import LoadParked
from exactlyonce.protocols.steps.load import fresh_token
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import EntityRef

_NOBODYS: Final = "exactlyonce/returning"
"""Key of no message: messages of this source are nobody's."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What became of a message that was to go back to its queue.

    Attributes:
        outcome: "returned"; or "parked", and it stays so.
        memory: for whatever this process does next on the entity.
    """

    outcome: Literal["returned", "parked"]
    memory: Memory


def give_back(entity: EntityRef, message: str, output: Output, memory: Memory) -> Step[Returned | Again]:
    """Send a message to its queue once more, unless it is parked. At most 5 effects.

    Whether it is parked is read at the session token of a write made just now in the same partition. So the view holds
    whatever was parked before this began, however stale the replicas are.

    Args:
        entity: that the message is for.
        message: its key.
        output: what is sent.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    token = yield from fresh_token(entity, _NOBODYS)
    if token is None:
        return Again(memory, "whether anything was written is not known")
    # Read whether the message is parked. A parked message counts as never processed, so it is not sent.
    found = yield from LoadParked(entity, message, token)
    if isinstance(found, NoAnswer):
        return Again(memory, "whether the message is parked could not be read")
    if found.message is not None:
        return Returned("parked", memory)
    returned = yield from send(output, memory)
    return returned


def send(output: Output, memory: Memory) -> Step[Returned | Again]:
    """Send a message to its queue once more, without a look at the store. For one that cannot have been parked. One effect."""
    # Send the message to its queue. It keeps its identity and its time, so it is a copy like any other.
    published = yield from Publish((output,))
    if published is not PUBLISHED:
        return Again(memory, "whether the message was sent is not known")
    return Returned("returned", memory)
