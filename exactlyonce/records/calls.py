"""Replies to calls: how an entity knows the one reply that it awaits to each of its calls.

The commit that makes a call writes the call's id into the ledger, and the commit that handles the reply removes it. So a reply
whose call is in the ledger is awaited, and any other one is a copy, however late it comes: for a call that was made is awaited
until its reply is handled. A view that is older than the commit that made the call shows neither.

On the wire a reply names its call in the CloudEvents extensions `replyto` and `replyversion`, and the caller in `partitionkey`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from exactlyonce.errors import InvalidMessage
from exactlyonce.records.places import RECEIVER, is_numbered
from exactlyonce.values.envelope import Envelope, Extensions
from exactlyonce.values.identity import EntityRef

CALL_TYPE: Final = "exactlyonce.call"
"""Type of the message that a call is, until it is made. Its data is the body to send."""
CALL_IS: Final = "call"
"""Extension attribute: all of a call but its body, in JSON. So a call whose body is in a blob that is gone can be answered."""
TRIED: Final = "tried"
"""Extension attribute of a call that was sent to its queue once more: whether a try may have been carried out."""
CALL: Final = "replyto"
VERSION: Final = "replyversion"

Calls = tuple[str, ...]
"""Ids of calls whose replies are awaited, oldest first."""


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """What a reply answers.

    Attributes:
        call: id of the call, an output of its caller.
        version: of the caller, which the commit that made the call produced.
        caller: as the source of what it sends.
    """

    call: str
    version: int
    caller: str

    @property
    def extensions(self) -> Extensions:
        """As attributes of an envelope, sorted by name."""
        return ((RECEIVER, self.caller), (CALL, self.call), (VERSION, self.version))


def is_reply(envelope: Envelope) -> bool:
    """Whether a message says that it is the reply to a call."""
    return any(name == CALL for name, _ in envelope.extensions)


def is_foreign(envelope: Envelope) -> bool:
    """Whether only records know the copies of a message: it has no number, is no reply, and no request that was opened."""
    return envelope.opened is None and not (is_numbered(envelope) or is_reply(envelope))


def reply_of(envelope: Envelope, caller: EntityRef, about: str) -> ReplyTo:
    """What a reply answers.

    Args:
        envelope: of the reply.
        caller: the entity that takes it.
        about: what the error is to call it.

    Raises:
        InvalidMessage: the call is another entity's, or the reply does not say what it answers.
    """
    extensions = dict(envelope.extensions)
    call, version = extensions.get(CALL), extensions.get(VERSION)
    if not isinstance(call, str) or not call or type(version) is not int or version < 1:
        raise InvalidMessage(
            f"{about} has a {CALL} that is no id, or a {VERSION} that is no number from 1. Correct the sender."
        )
    if extensions.get(RECEIVER) != caller.source:
        raise InvalidMessage(
            f"{about} is the reply to a call of {extensions.get(RECEIVER)!r}. Let the key= of the reply's handler name the "
            "entity that made the call: context.call(..., tag=) takes what it needs."
        )
    return ReplyTo(call, version, caller.source)
