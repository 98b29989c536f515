"""Finishing what others left: the sweeper, the poison settler, and sending a parked message again.

Each may run at any time, twice, and beside everything else. What was committed is published, and then marked by whoever comes
first; a message counts as never processed only behind a fence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from exactlyonce.attempt import Again, Finished, Memory, key_of
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeleteParked, FindProcessed, LoadParked, Park
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import DamagedDocument, MalformedMessage
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.outbox.protocol import publish_owed, start_over, with_ledger
from exactlyonce.protocols.steps.fence import fence, look
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, renewed_id
from exactlyonce.values.lifetimes import AHEAD

SendLimit = Callable[[datetime], timedelta]
"""Age above which nothing is sent under the identity it has, at a time by the store's clock."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A message that the host gave up on needs no further delivery.

    Attributes:
        outcome: "processed", and all its outputs are published; or "parked", kept for whoever mends the cause.
        memory: for whatever this process does next on the entity, such as marking.
    """

    outcome: Literal["processed", "parked"]
    memory: Memory


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


def sweep(entity: EntityRef, memory: Memory) -> Step[Finished | Again]:
    """Publish everything that the entity owes, then mark it. At most 4 effects where there is a ledger.

    No fresh view is needed: what a stale one owes was committed, so publishing it again makes copies at most, and marking
    it fails on its condition.

    Raises:
        StoredDataError: the document cannot be trusted.
    """
    view = yield from look(entity, memory)
    if isinstance(view, Again):
        return view
    if view.document is None or not view.ledger.owing:
        return Finished(Memory())
    remembered = yield from publish_owed(entity, view.ledger.entries, view)
    if isinstance(remembered, Again):
        return remembered
    marked = with_ledger(view.document, view.ledger.with_published(remembered.published))
    # Mark: save the entity if it is unchanged. A commit in between has a newer ledger, which the next sweep reads.
    saved = yield from SaveEntity(entity, marked, view.etag)
    return Finished(Memory()) if isinstance(saved, Saved) else start_over(remembered, saved)


def settle(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, memory: Memory) -> Step[Settled | Again]:
    """Decide about a message that the host gave up on: publish what it owes, or park it. At most 6 effects.

    An entry or a record proves that it was processed, in however old a view. That there is neither proves nothing until the
    fence holds. Then the ledger was current; every message that had left it has a record in any view at its token, or left so
    long ago that no copy may still arrive; and no commit is still to come but of attempts that load the entity from now on.
    If one of them processes another copy, the parked message is a duplicate like any other.

    Args:
        entity: that the message is for.
        envelope: the message as it came, its data in it or elsewhere: so it is parked, and sent again.
        reason: why it could not be processed. It is kept and told, so it must not quote the message.
        absent: the document's id and partition key properties, for the tombstone of an entity that does not exist.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: the document cannot be trusted; the message stays where it is.
    """
    message = key_of(envelope)
    view = yield from look(entity, memory)
    if isinstance(view, Again):
        return view
    outcome = yield from _known(entity, message, view)
    if outcome is not None:
        return outcome
    parked = yield from park(entity, envelope, reason, absent, view)
    return parked


def park(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, view: View) -> Step[Settled | Again]:
    """Park a message that was not processed in this view, if a fence shows that the view is current. At most 3 effects."""
    message = key_of(envelope)
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Ask for the time. The parked document says when it was parked.
    begun = yield from Begin()
    # Park the message. Behind the fence, it was never processed, and no commit of a copy is under way.
    parked = yield from Park(entity, ParkedMessage(entity.key, message, reason, begun.at, envelope.to_json()))
    if isinstance(parked, NoAnswer):
        return Again(fenced, "whether the message was parked is not known")
    return Settled("parked", fenced)


def requeue(
    entity: EntityRef, message: str, destination: str, limit: SendLimit | None, memory: Memory
) -> Step[Requeued | Again]:
    """Send a parked message again, with the identity it has: if it was processed meanwhile, it is dropped. At most 3 effects.

    It is sent before the parked document goes, so a crash in between leaves it parked as well, which costs a copy at most.
    The document goes only as it was read: a message that has come back and was parked anew stays.

    Args:
        entity: under which it is parked.
        message: its key.
        destination: logical name of the queue it is to go to.
        limit: age above which it is refused, by its own time and the store's: a copy of it may have been processed so long ago
            that this is forgotten. None where its receiver never forgets.
        memory: what this process knows of the entity.

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
    if limit is not None and (refusal := _refusal(envelope, found.now, limit)):
        return Requeued(refusal, memory)
    # Send the message again. It keeps its identity: if it was processed meanwhile, it is a duplicate. A renewed message has
    # its new identity.
    published = yield from Publish((Output(envelope.id, destination, envelope.to_json()),))
    if published is not PUBLISHED:
        return Again(memory, "the message could not be sent")
    # Delete the parked message, as it was read. After sending, so that it is never lost; a message that was parked anew
    # stays.
    yield from DeleteParked(entity, message, found.etag)
    return Requeued("sent", memory, key_of(envelope))


def renew(entity: EntityRef, message: str, limit: SendLimit | None, memory: Memory) -> Step[Renewed | Again]:
    """Make a parked message a new one, which `requeue` then sends: with another id, and the store's present for its time.

    What says so is written before anything is sent. So whoever is asked again after a crash sends a copy of the same message,
    with the same time. Only one that was not sent until it was too old once more gets another identity. At most 2 effects.

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
    if limit is None or _refusal(_again(parked), found.now, limit) is None:
        return Renewed("not needed" if parked.renewed is None else "renewed", memory)
    at = parked.at if parked.renewed is None else found.now
    # Write that the message is a new one. Before it is sent, so that a repeated request after a crash sends a copy of the
    # same message.
    written = yield from Park(entity, replace(parked, at=at, renewed=found.now))
    if isinstance(written, NoAnswer):
        return Again(memory, "whether the message was made a new one is not known")
    return Renewed("renewed", replace(memory, library_token=written.token))


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
        envelope = replace(envelope, id=renewed_id(parked.entity, parked.message, parked.at), time=parked.renewed)
    return envelope.once_more()


def _refusal(envelope: Envelope, now: datetime, limit: SendLimit) -> Literal["too old", "undated", "ahead"] | None:
    """Why a message is not sent under the identity it has; None if it is."""
    if envelope.time is None:
        return "undated"
    if envelope.time - now > AHEAD:
        return "ahead"
    return "too old" if now - envelope.time > limit(now) else None


def _known(entity: EntityRef, message: str, view: View) -> Step[Settled | Again | None]:
    """Finish a message that was processed; None if neither an entry nor a record says so."""
    hits = tuple(entry for entry in view.ledger.entries if entry.message == message)
    if hits:
        # Finish a processed message. Only its outputs may be missing.
        remembered = yield from publish_owed(entity, hits, view)
        if isinstance(remembered, Again):
            return remembered
        return Settled("processed", replace(view, memory=remembered).unmarked())
    # Look for a record, at the ledger's session token. A view at that token has every record that the ledger relies on.
    found = yield from FindProcessed(entity, (message,), view.ledger.token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "whether the message has a record could not be read")
    # A record means done: it was written after publishing.
    return Settled("processed", view.memory) if message in found.messages else None
