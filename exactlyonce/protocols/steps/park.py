"""Parking: an unprocessed message is kept, sent again, renewed or discarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from exactlyonce.effects.attempt import Again, Memory, Settled, Strategy, Work
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import NOTED_FOR, LoadParked, Park, Unpark
from exactlyonce.errors import DamagedDocument, MalformedMessage
from exactlyonce.protocols.steps.load import View, fence, load
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Output, is_numbered, stated_place, without_place
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, renewed_id
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import AHEAD

SendLimit = Callable[[datetime], timedelta]
"""Age above which nothing is sent under its old identity, at a time by the store's clock."""


@dataclass(frozen=True, slots=True)
class Requeued:
    """The outcome of sending a parked message again.

    Attributes:
        outcome: "sent"; or "not parked", in the view that answered; or the reason for which the receiver would refuse the
            message, which stays parked: "too old", "undated" (no time), or "ahead" (a time far in the future).
        memory: as passed in.
        sent: key of the sent message; None if none was sent.
    """

    outcome: Literal["sent", "not parked", "too old", "undated", "ahead"]
    memory: Memory
    sent: str | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """The outcome of renewing a parked message.

    Attributes:
        outcome: "renewed", now or before; or "not parked", in the view that answered; or "not needed": the receiver accepts
            the present identity.
        memory: for sending the message.
    """

    outcome: Literal["renewed", "not parked", "not needed"]
    memory: Memory


def park(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, view: View) -> Step[Settled | Again]:
    """Park a message unprocessed in this view, if a fence shows that the view is current. At most 3 effects."""
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
    """Park a message whose fate cannot be decided: the message, or its entity, is unreadable. At most 2 effects.

    Without a fence, this proves nothing: the message may have been processed, or still be. That does no harm: the message is
    requeued under its own identity, as a duplicate like any other. The document lies apart from the entity, so that nobody
    takes the message for one never processed.

    Args:
        place: partition of the parked document; no entity.
        reason: why nothing could be decided. The reason is stored and logged, so it must not quote the message.
        memory: returned unchanged.
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
    """Send a parked message again, under its present identity: if processed meanwhile, it is dropped. At most 3 effects.

    Sending comes before the deletion of the parked document, so a crash in between leaves the message parked as well, at the
    cost of a copy at most. The document goes only as read: a message parked anew stays. A note takes the document's place.

    Args:
        entity: entity under which the message is parked.
        message: key of the message.
        destination: logical name of the destination queue.
        limit: gives the age above which the message is refused, by its own time and the store's: an older copy may have been
            processed and forgotten. None for a receiver that never forgets the message.
        noted: seconds for which a note says that the message was sent.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message. The document holds the body, and the store's reply the time.
    stored = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(stored, NoAnswer):
        return Again(memory, "the parked message could not be read")
    if stored.message is None or stored.etag is None or stored.now is None:
        return Requeued("not parked", memory)
    envelope = _again(stored.message)
    if (bound := limit(envelope)) is not None and (refusal := _refusal(envelope, stored.now, bound)):
        return Requeued(refusal, memory)
    # Send the message again. It keeps its identity: if processed meanwhile, it is a duplicate. A renewed message has its new
    # identity.
    published = yield from Publish((Output(envelope.id, destination, envelope.to_json()),))
    if published is not PUBLISHED:
        return Again(memory, "the message could not be sent")
    # Put a note in the place of the parked message, as it was read. After sending, so that the message is never lost; a
    # message parked anew stays.
    yield from Unpark(entity, message, stored.etag, key_of(envelope), noted)
    return Requeued("sent", memory, key_of(envelope))


def renew(
    entity: EntityRef, message: str, limit: Callable[[Envelope], SendLimit | None], memory: Memory
) -> Step[Renewed | Again]:
    """Give a parked message a new identity, which `requeue` then sends: another id, a new time, and no number. At most 2
    effects.

    The new identity is stored before anything is sent, so a command repeated after a crash sends a copy of the same message.
    A restore may take back the stored identity, and two operators may ask at once. So id and time derive from the time of
    parking: while the receiver takes a new message, each request gives the same identity. Later requests give another
    identity, with another time.

    Args:
        entity, message, limit, memory: as for `requeue`.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message. The store's time, minus the message's own, is the age.
    stored = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(stored, NoAnswer):
        return Again(memory, "the parked message could not be read")
    parked = stored.message
    if parked is None or stored.now is None:
        return Renewed("not parked", memory)
    envelope = _again(parked)
    bound = limit(without_place(envelope))
    taken = not is_numbered(envelope) and bound is not None and _refusal(envelope, stored.now, bound) is None
    if bound is None or taken:
        return Renewed("not needed" if parked.renewed is None else "renewed", memory)
    time = _first_taken(parked.at, stored.now, bound(stored.now))
    # Write that the message is a new one. Before sending, so that a repeated request after a crash sends a copy of the same
    # message.
    written = yield from Park(entity, replace(parked, renewed=time))
    if isinstance(written, NoAnswer):
        return Again(memory, "whether the message was made a new one is not known")
    return Renewed("renewed", replace(memory, library_token=written.token))


def discard(entity: EntityRef, message: str, memory: Memory, *, noted: int = NOTED_FOR) -> Step[bool | Again]:
    """Delete a parked message for good; returns whether a message was parked, in the view that answered. At most 2 effects.

    It goes only as it was read: a message that has come back and was parked anew stays. A note takes its place, without the
    body.

    Args:
        entity, message, memory: as for `requeue`.
        noted: seconds for which a note says that the message was discarded.

    Raises:
        StoredDataError: the parked document cannot be trusted.
    """
    # Read the parked message.
    stored = yield from LoadParked(entity, message, memory.library_token)
    if isinstance(stored, NoAnswer):
        return Again(memory, "the parked message could not be read")
    if stored.etag is not None:
        # Put a note in the place of the parked message, as it was read. A message parked anew stays.
        yield from Unpark(entity, message, stored.etag, seconds=noted)
    return stored.etag is not None


def _parked(entity: EntityRef, envelope: Envelope, reason: str, at: datetime) -> ParkedMessage:
    place = stated_place(envelope)
    return ParkedMessage(entity.key, key_of(envelope), reason, at, envelope.to_json(), place=place)


def _again(parked: ParkedMessage) -> Envelope:
    """A parked message in the form to send. Raises `DamagedDocument` for an unreadable envelope."""
    try:
        envelope = Envelope.read(parked.envelope.text, limit=MAX_DOCUMENT_BYTES)
    except MalformedMessage as error:
        raise DamagedDocument(
            f"Parked message {parked.message} cannot be read: {error} Nothing was changed. Restore its document from a backup, "
            "or discard the message."
        ) from None
    if parked.renewed is not None:
        id = renewed_id(parked.entity, parked.message, parked.renewed)
        envelope = replace(without_place(envelope), id=id, time=parked.renewed).with_stable_time()
    return envelope.once_more()


def _first_taken(parked: datetime, now: datetime, limit: timedelta) -> datetime:
    """The first time young enough among the time of parking, and every `limit` after.

    Receivers refuse a time more than `AHEAD` from now, such as a clock days ahead had set. Until the time of parking is
    acceptable, the result is the first acceptable time among every `limit` before.
    """
    taken = parked - AHEAD
    if now <= taken:
        return taken - ((taken - now) // limit + 1) * limit
    return parked + max(0, -((parked - now) // limit) - 1) * limit


def _refusal(envelope: Envelope, now: datetime, limit: SendLimit) -> Literal["too old", "undated", "ahead"] | None:
    """The reason for not sending a message under its present identity; None if sending is fine."""
    if (time := envelope.judged_by) is None:
        return "undated"
    if time - now > AHEAD:
        return "ahead"
    return "too old" if now - time > limit(now) else None


# Deciding about messages given up by the host. A record proves processing in any view. Absence proves it only behind a fence,
# with records read at the ledger's token: no commit is still to come, except of attempts that load later.


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
        finish: publishes the message's outputs, if this view proves the message processed; None without proof.
        ids: ids of the companions that would be the proof.
    """
    view = yield from load(work.entity, strategy, memory)
    if isinstance(view, Again):
        return view
    if ids:
        # Look for the companion that proves the message processed. At the entity's session token, so that behind the fence
        # its absence is certain.
        loaded = yield from LoadCompanions(work.entity, ids, view.memory.entity_token)
        if isinstance(loaded, NoAnswer):
            return Again(view.memory, "whether the message was processed could not be read")
        view = replace(view, companions=loaded.companions)
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
        ids: ids of the companions that would be the proof.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    message = key_of(envelope)
    if not ids:
        return False
    # Look for the companion that proves the message processed.
    loaded = yield from LoadCompanions(entity, ids, view.memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(view.memory, "the companions of the entity could not be read")
    return any(item.message == message for item, _ in loaded.companions)
