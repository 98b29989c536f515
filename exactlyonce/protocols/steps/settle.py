"""Deciding about messages that the host gave up on, for the protocols that keep their records beside the entity.

As in `settling`: a record proves that a message was processed, in however old a view; that there is none proves nothing until a
fence holds. The record is looked for in a view that is at least as new as the entity's, so behind the fence it is known.
"""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Memory, Work, key_of
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.errors import InvalidMessage
from exactlyonce.protocols.colocated import publish_records
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.outbox.protocol import publish_owed
from exactlyonce.protocols.outbox.settle import Settled, park
from exactlyonce.protocols.steps.fence import look
from exactlyonce.protocols.steps.sight import Sight
from exactlyonce.protocols.stream.protocol import entries_in, handled_again, require_same_kind
from exactlyonce.records.companions import NumberedMessage, entry_id, numbered_id, record_id
from exactlyonce.records.ledger import Protocol
from exactlyonce.records.sequences import order_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef


def settle_beside(
    protocol: Protocol, work: Work, reason: str, memory: Memory, came: Envelope | None = None
) -> Step[Settled | Again]:
    """Decide about the one message of `work`: finish it if it was processed, or park it. At most 10 effects.

    Args:
        protocol: of the entity; not "outbox".
        work: the entity, its handler and the message.
        reason: why it could not be processed. It is kept and told, so it must not quote the message.
        memory: what this process knows of the entity.
        came: the message as it came, where `work` has it with data that was elsewhere: so it is parked, and sent again.

    Raises:
        StoredDataError: a document cannot be trusted; the message stays where it is.
        HandlerError: a duplicate in a stream cannot be handled again as it was; the message stays where it is.
        ConfigurationError: the entity belongs to another protocol, or its stream is of another kind than its type.
    """
    (envelope,) = work.messages
    view = yield from look(work.entity, memory, protocol)
    if isinstance(view, Again):
        return view
    found: FoundCompanions | NoAnswer = FoundCompanions(())
    if ids := telling_ids(protocol, work.entity, envelope):
        # Look for the companion that proves the message processed. At the entity's session token, so that behind the fence
        # it is known to be absent.
        found = yield from LoadCompanions(work.entity, ids, view.memory.entity_token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "whether the message was processed could not be read")
    sight = Sight(view.document, view.etag, view.body, view.ledger, found.companions, view.memory)
    finished = yield from _finished(protocol, work, view, sight)
    if finished is not None:
        return finished
    parked = yield from park(work.entity, came or envelope, reason, work.absent, view)
    return parked


def telling_ids(protocol: Protocol, entity: EntityRef, envelope: Envelope) -> tuple[str, ...]:
    """Ids of the document beside an entity that would tell that a message was processed."""
    match protocol:
        case "stream":
            return (entry_id(entity, key_of(envelope)),)
        case "colocated":
            return (record_id(entity, key_of(envelope)),)
        case _:
            try:
                return (numbered_id(entity, envelope.source, order_of(envelope, "")),)
            except InvalidMessage:
                return ()  # Without a place it was never taken.


def _finished(protocol: Protocol, work: Work, view: View, sight: Sight) -> Step[Settled | Again | None]:
    """Publish what the message owes, if it was processed; None if nothing says so."""
    (envelope,) = work.messages
    if protocol == "stream" and (entries := entries_in(sight)):
        if any(entry.version > sight.ledger.version for entry in entries):
            return Again(sight.memory, "the entity was seen in an older view than its stream")
        require_same_kind(work, sight.ledger)
        failed = yield from handled_again(work, {key_of(envelope): envelope}, entries, sight)
        if isinstance(failed, Again):
            return failed
        for _, error in failed:
            raise error
        return Settled("processed", sight.memory)
    if protocol == "colocated" and sight.companions:
        # Finish a processed message. Only its outputs may be missing.
        owed = yield from publish_records(work.entity, sight.companions, sight.memory)
        return owed or Settled("processed", sight.memory)
    numbered = (one for one, _ in sight.companions if isinstance(one, NumberedMessage))
    if mine := tuple(one for one in numbered if one.message == key_of(envelope)):
        outcome = yield from _taken(work.entity, view, mine)
        return outcome
    return None


def _taken(entity: EntityRef, view: View, documents: tuple[NumberedMessage, ...]) -> Step[Settled | Again]:
    """Finish what a read model has taken: held ones are released by whoever comes; what was released may still owe."""
    if any(_released_since(view, one) for one in documents):
        return Again(view.memory, "the read model was seen in an older view than what it released")
    # Finish what the read model released. A message that is still held is safe without its delivery.
    remembered = yield from publish_owed(entity, view.ledger.entries, view)
    if isinstance(remembered, Again):
        return remembered
    return Settled("processed", replace(view, memory=remembered).unmarked())


def _released_since(view: View, document: NumberedMessage) -> bool:
    """Whether a message was released since the read model was loaded, so that this view does not tell what it owes."""
    reception = next((one for one in view.ledger.receptions if one.source == document.source), None)
    return document.held is None and (reception is None or reception.next <= document.order.number)
