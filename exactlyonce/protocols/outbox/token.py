"""What operators ask for: putting a message aside that nobody can take, whether an entity knows a message, and exchanging a
session token that leads nowhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from exactlyonce.attempt import Again, Memory, key_of
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions
from exactlyonce.effects.effect import BEHIND, Begin, NoAnswer, Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteStaged,
    FindProcessed,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
)
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.outbox.protocol import start_over, with_ledger
from exactlyonce.protocols.outbox.settle import Settled
from exactlyonce.protocols.steps.fence import look
from exactlyonce.protocols.steps.settle import telling_ids
from exactlyonce.records.ledger import Protocol
from exactlyonce.records.library import ParkedMessage, StagedOutputs
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

_NOBODYS: Final = "exactlyonce/reset-token"
"""Key of no message: messages of this source are nobody's."""


@dataclass(frozen=True, slots=True)
class TokenReset:
    """What became of a request to exchange a session token.

    Attributes:
        outcome: "reset"; or "no token", and there is nothing to exchange; or "not ahead": a replica has answered at the token.
        lost: keys of messages whose staged outputs the entity owes, and which are gone. Where the token was reset, they are
            gone for good.
        memory: for whatever this process does next on the entity.
    """

    outcome: Literal["reset", "no token", "not ahead"]
    lost: tuple[str, ...]
    memory: Memory


def put_aside(place: EntityRef, envelope: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
    """Park a message about which nothing can be decided: nobody can read it, or its entity. At most 2 effects.

    It has no fence, and so proves nothing: the message may have been processed, or still be. That does no harm, since it is
    requeued under the identity it has, and then is a duplicate like any other. Lest it be taken for one that was never
    processed, it does not lie with its entity.

    Args:
        place: where it is to lie; nobody's entity.
        envelope: the message.
        reason: why it could not be decided about. It is kept and told, so it must not quote the message.
        memory: is returned as it is given.
    """
    # Ask for the time. The parked document says when it was parked.
    begun = yield from Begin()
    # Park the message, apart from its entity. Without a fence it does not count as never processed.
    parked = yield from Park(place, ParkedMessage(place.key, key_of(envelope), reason, begun.at, envelope.to_json()))
    if isinstance(parked, NoAnswer):
        return Again(memory, "whether the message was put aside is not known")
    return Settled("parked", memory)


def knows(protocol: Protocol, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
    """Whether anything tells that an entity has processed a message, in the view that answered. At most 4 effects.

    That nothing does proves nothing: what told of it may have been cleaned up, and a commit may have yet to land.

    Args:
        protocol: of the entity.
        entity: that the message is for.
        envelope: the message.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: the document cannot be trusted.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from look(entity, memory, protocol)
    if isinstance(view, Again):
        return view
    message = key_of(envelope)
    if any(entry.message == message for entry in view.ledger.entries):
        return True
    if protocol == "outbox":
        # Look for a record, at the ledger's session token.
        recorded = yield from FindProcessed(entity, (message,), view.ledger.token)
        told = recorded if isinstance(recorded, NoAnswer) else message in recorded.messages
    else:
        ids = telling_ids(protocol, entity, envelope)
        beside: FoundCompanions | NoAnswer = FoundCompanions(())
        if ids:
            # Look for the companion that proves the message processed.
            beside = yield from LoadCompanions(entity, ids, view.memory.entity_token)
        told = beside if isinstance(beside, NoAnswer) else any(one.message == message for one, _ in beside.companions)
    return Again(view.memory, "what the library keeps apart could not be read") if isinstance(told, NoAnswer) else told


def discard(entity: EntityRef, message: str, memory: Memory) -> Step[bool | Again]:
    """Delete a parked message for good; whether there was one, in the view that answered. At most 2 effects.

    It goes only as it was read: a message that has come back and was parked anew stays.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message.
    found = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(found, NoAnswer):
        return Again(memory, "the parked message could not be read")
    if found.etag is not None:
        # Delete the parked message, as it was read. One that was parked anew stays.
        yield from DeleteParked(entity, message, found.etag)
    return found.etag is not None


def reset_token(entity: EntityRef, memory: Memory) -> Step[TokenReset | Again]:
    """Exchange the session token in an entity's ledger, if the account will never reach it. At most 9 effects.

    A token that is ahead of the account, after a failover that lost writes or a restored container, makes every read with it
    `BEHIND` for ever. The new token is that of a write made now: whatever has survived in the library's partition is at or
    before it, so no later reader misses any of it, as one without a token might. What has not survived stays lost: a message
    whose record is gone, and whose entry has left the ledger, is taken for new if a copy of it still arrives.

    Args:
        entity: of the outbox; other protocols keep no such token.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was changed.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from look(entity, memory)
    if isinstance(view, Again):
        return view
    if view.document is None or view.ledger.token is None:
        return TokenReset("no token", (), view.memory)
    # Read at the ledger's session token. The reply is "behind" if no replica has reached it.
    reached = yield from FindProcessed(entity, (_NOBODYS,), view.ledger.token)
    if reached is not BEHIND:
        if isinstance(reached, NoAnswer):
            return Again(view.memory, "whether a replica has reached the token could not be read")
        return TokenReset("not ahead", (), view.memory)
    outcome = yield from _exchanged(entity, view)
    return outcome


def _exchanged(entity: EntityRef, view: View) -> Step[TokenReset | Again]:
    """Put the token of a write made now in place of the ledger's; the document written for it goes again."""
    assert view.document is not None  # noqa: S101  # Without one there is no token.
    # Begin. The next document needs an id.
    begun = yield from Begin(more=1)
    (tx,) = begun.given
    # Write a document for its session token. Everything that survived in the partition is at or before that token.
    staged = yield from Stage(entity, (StagedOutputs(entity.key, _NOBODYS, tx, begun.at, ()),))
    if isinstance(staged, NoAnswer) or staged.token is None:
        return Again(view.memory, "whether anything was written is not known")
    owing = {entry.tx: entry.message for entry in view.ledger.entries if entry.owed == "staged"}
    found: FoundStaged | NoAnswer = FoundStaged(())
    if owing:
        # Read the staged outputs at the new token. Missing ones are lost, and reported.
        found = yield from LoadStaged(entity, tuple(owing), staged.token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "staged outputs could not be read")
    ledger = replace(view.ledger, token=staged.token)
    # Save the entity with the new token, if it is unchanged.
    saved = yield from SaveEntity(entity, with_ledger(view.document, ledger), view.etag)
    # Delete the document. Only its token was wanted; clean-up takes it if this fails.
    yield from DeleteStaged(entity, (tx,))
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    there = {one.tx for one in found.documents}
    after = replace(view.memory, entity_token=saved.token, library_token=staged.token)
    return TokenReset("reset", tuple(message for tx, message in owing.items() if tx not in there), after)
