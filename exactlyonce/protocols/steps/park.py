"""Parking: keeping a message that was not processed, sending it again, making it a new one, discarding it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from exactlyonce.attempt import Again, Memory, Settled, Strategy, Work
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import NOTED_FOR, LoadParked, Park, Unpark
from exactlyonce.errors import DamagedDocument, MalformedMessage
from exactlyonce.protocols.steps.load import View, fence, load
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Output
from exactlyonce.records.sequences import is_numbered, stated_place, without_place
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, renewed_id
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import AHEAD

SendLimit = Callable[[datetime], timedelta]
"""Age above which nothing is sent under the identity it has, at a time by the store's clock."""


@dataclass(frozen=True, slots=True)
class Requeued:
    """What became of a request to send a parked message again.

    Attributes:
        outcome: "sent"; or "not parked", in the view that answered. Otherwise it stays parked, since it is "too old", has no
            time ("undated"), or one that is far "ahead": its receiver would refuse it.
        memory: as it was given.
        sent: key of the message that was sent; None if none was.
    """

    outcome: Literal["sent", "not parked", "too old", "undated", "ahead"]
    memory: Memory
    sent: str | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of a request to make a parked message a new one.

    Attributes:
        outcome: "renewed", now or before; or "not parked", in the view that answered; or "not needed", since its receiver takes
            it under the identity it has.
        memory: for sending it.
    """

    outcome: Literal["renewed", "not parked", "not needed"]
    memory: Memory


def park(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, view: View) -> Step[Settled | Again]:
    """Park a message that was not processed in this view, if a fence shows that the view is current. At most 3 effects."""
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Ask for the time. The parked document says when it was parked.
    begun = yield from Begin()
    # Park the message. Behind the fence, it was never processed, and no commit of a copy is under way.
    parked = yield from Park(entity, _parked(entity, envelope, reason, begun.at))
    if isinstance(parked, NoAnswer):
        return Again(fenced, "whether the message was parked is not known")
    return Settled("parked", fenced)


def put_aside(place: EntityRef, envelope: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
    """Park a message about which nothing can be decided: it, or its entity, is unreadable. At most 2 effects.

    It has no fence, and so proves nothing: the message may have been processed, or still be. That does no harm, since it is
    requeued under the identity it has, and then is a duplicate like any other. Lest it be taken for one that was never
    processed, it does not lie with its entity.

    Args:
        place: the key of the parked document; of no entity.
        envelope: the message.
        reason: why nothing could be decided. It is stored and logged, so it must not quote the message.
        memory: is returned as it is given.
    """
    # Ask for the time. The parked document says when it was parked.
    begun = yield from Begin()
    # Park the message, apart from its entity. Without a fence it does not count as never processed.
    parked = yield from Park(place, _parked(place, envelope, reason, begun.at))
    if isinstance(parked, NoAnswer):
        return Again(memory, "whether the message was put aside is not known")
    return Settled("parked", memory)


def requeue(
    entity: EntityRef,
    message: str,
    destination: str,
    limit: Callable[[Envelope], SendLimit | None],
    memory: Memory,
    *,
    noted: int = NOTED_FOR,
) -> Step[Requeued | Again]:
    """Send a parked message again, with the identity it has: if it was processed meanwhile, it is dropped. At most 3 effects.

    It is sent before the parked document goes, so a crash in between leaves it parked as well, which costs a copy at most.
    The document goes only as it was read: a message that has come back and was parked anew stays. A note takes its place.

    Args:
        entity: under which it is parked.
        message: its key.
        destination: logical name of the queue it is to go to.
        limit: gives the age above which it is refused, by its own time and the store's: a copy of it may have been processed so
            long ago that this is forgotten. None where its receiver never forgets it.
        memory: what this process knows of the entity.
        noted: seconds for which a note says that it was sent.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message. Its document holds the body, and the store's reply the time.
    found = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(found, NoAnswer):
        return Again(memory, "the parked message could not be read")
    if found.message is None or found.etag is None or found.now is None:
        return Requeued("not parked", memory)
    envelope = _again(found.message)
    if (bound := limit(envelope)) is not None and (refusal := _refusal(envelope, found.now, bound)):
        return Requeued(refusal, memory)
    # Send the message again. It keeps its identity: if it was processed meanwhile, it is a duplicate. A renewed message has
    # its new identity.
    published = yield from Publish((Output(envelope.id, destination, envelope.to_json()),))
    if published is not PUBLISHED:
        return Again(memory, "the message could not be sent")
    # Put a note in the place of the parked message, as it was read. After sending, so that it is never lost; a message that was
    # parked anew stays.
    yield from Unpark(entity, message, found.etag, key_of(envelope), noted)
    return Requeued("sent", memory, key_of(envelope))


def renew(
    entity: EntityRef, message: str, limit: Callable[[Envelope], SendLimit | None], memory: Memory
) -> Step[Renewed | Again]:
    """Make a parked message a new one, which `requeue` then sends: with another id, a new time, and no number.

    The new identity is stored before anything is sent, so a command that runs again after a crash sends a copy of the same
    message. A restore may take back what was stored, and two operators may ask at once. So id and time derive from when the
    message was parked: as long as its receiver takes a new message, each request gives the same one. After that it gives
    another, whose time is another, too. At most 2 effects.

    Args:
        entity, message, limit, memory: as for `requeue`.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message. Its age is the store's time minus its own.
    found = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(found, NoAnswer):
        return Again(memory, "the parked message could not be read")
    parked = found.message
    if parked is None or found.now is None:
        return Renewed("not parked", memory)
    envelope = _again(parked)
    bound = limit(without_place(envelope))
    taken = not is_numbered(envelope) and bound is not None and _refusal(envelope, found.now, bound) is None
    if bound is None or taken:
        return Renewed("not needed" if parked.renewed is None else "renewed", memory)
    time = _first_taken(parked.at, found.now, bound(found.now))
    # Write that the message is a new one. Before it is sent, so that a repeated request after a crash sends a copy of the
    # same message.
    written = yield from Park(entity, replace(parked, renewed=time))
    if isinstance(written, NoAnswer):
        return Again(memory, "whether the message was made a new one is not known")
    return Renewed("renewed", replace(memory, library_token=written.token))


def discard(entity: EntityRef, message: str, memory: Memory, *, noted: int = NOTED_FOR) -> Step[bool | Again]:
    """Delete a parked message for good; whether there was one, in the view that answered. At most 2 effects.

    It goes only as it was read: a message that has come back and was parked anew stays. A note takes its place, without the
    body.

    Args:
        entity, message, memory: as for `requeue`.
        noted: seconds for which a note says that it was discarded.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message.
    found = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(found, NoAnswer):
        return Again(memory, "the parked message could not be read")
    if found.etag is not None:
        # Put a note in the place of the parked message, as it was read. One that was parked anew stays.
        yield from Unpark(entity, message, found.etag, seconds=noted)
    return found.etag is not None


def _parked(entity: EntityRef, envelope: Envelope, reason: str, at: datetime) -> ParkedMessage:
    place = stated_place(envelope)
    return ParkedMessage(entity.key, key_of(envelope), reason, at, envelope.to_json(), place=place)


def _again(parked: ParkedMessage) -> Envelope:
    """A parked message as it is sent again. Raises `DamagedDocument` if it is no envelope."""
    try:
        envelope = Envelope.read(parked.envelope.text, limit=MAX_DOCUMENT_BYTES)
    except MalformedMessage as error:
        raise DamagedDocument(
            f"What is parked as message {parked.message} cannot be read: {error} Nothing was changed. Restore the document "
            "from a backup, or discard it."
        ) from None
    if parked.renewed is not None:
        id = renewed_id(parked.entity, parked.message, parked.renewed)
        envelope = replace(without_place(envelope), id=id, time=parked.renewed).with_stable_time()
    return envelope.once_more()


def _first_taken(parked: datetime, now: datetime, limit: timedelta) -> datetime:
    """The first time that is young enough among when a message was parked, and every `limit` after.

    Receivers refuse a time that is more than `AHEAD` from now, as a clock that was days ahead gave it. So until they take that
    time it is the first among every `limit` before they do.
    """
    taken = parked - AHEAD
    if now <= taken:
        return taken - ((taken - now) // limit + 1) * limit
    return parked + max(0, -((parked - now) // limit) - 1) * limit


def _refusal(envelope: Envelope, now: datetime, limit: SendLimit) -> Literal["too old", "undated", "ahead"] | None:
    """Why a message is not sent under the identity it has; None if it is."""
    if (time := envelope.judged_by) is None:
        return "undated"
    if time - now > AHEAD:
        return "ahead"
    return "too old" if now - time > limit(now) else None


# Deciding about messages that the host gave up on: the steps that all protocols share.
#
# A record proves that a message was processed, in however old a view. Its absence proves nothing until a fence holds. Behind
# the fence the ledger was current, and so was every record in a view at its token, or the record was deleted when no copy
# could still arrive. No commit is still to come, but of attempts that load the entity from now on. If one of them processes
# another copy, the parked message is a duplicate like any other.


def settle(
    strategy: Strategy,
    work: Work,
    delivered: Envelope,
    reason: str,
    memory: Memory,
    *,
    finish: Callable[[View], Step[Settled | Again | None]],
    ids: tuple[str, ...] = (),
) -> Step[Settled | Again]:
    """Finish a message that was processed, or park it. At most 7 effects, and those of `finish`.

    Args:
        strategy, work, delivered, reason, memory: as for `Strategy.settle`.
        finish: publishes what the message owes, if this view proves that it was processed; None if nothing does.
        ids: of the companions that would prove it.
    """
    view = yield from load(work.entity, strategy, memory)
    if isinstance(view, Again):
        return view
    if ids:
        # Look for the companion that proves the message processed. At the entity's session token, so that behind the fence
        # it is known to be absent.
        found = yield from LoadCompanions(work.entity, ids, view.memory.entity_token)
        if isinstance(found, NoAnswer):
            return Again(view.memory, "whether the message was processed could not be read")
        view = replace(view, companions=found.companions)
    finished = yield from finish(view)
    if finished is not None:
        return finished
    parked = yield from park(work.entity, delivered, reason, work.absent, view)
    return parked


def companions_know(
    strategy: Strategy, entity: EntityRef, envelope: Envelope, ids: tuple[str, ...], memory: Memory
) -> Step[bool | Again]:
    """Whether a companion proves a message processed. At most 4 effects.

    Args:
        strategy, entity, envelope, memory: as for `Strategy.knows`.
        ids: of the companions that would prove it.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    message = key_of(envelope)
    if not ids:
        return False
    # Look for the companion that proves the message processed.
    found = yield from LoadCompanions(entity, ids, view.memory.entity_token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "the companions of the entity could not be read")
    return any(one.message == message for one, _ in found.companions)
