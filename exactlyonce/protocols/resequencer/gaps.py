"""What is done about messages that do not come: a read model is never stopped silently by one that is lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import ValidationError, with_config

from exactlyonce.attempt import Again, Finished, Memory, Work, key_of
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import Saved
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import InvalidMessage
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.outbox.protocol import start_over
from exactlyonce.protocols.resequencer.protocol import Rebuild, Resequencer
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.protocols.steps.fence import look
from exactlyonce.protocols.stream.replay import Missing
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.ledger import entity_document
from exactlyonce.records.outputs import Output
from exactlyonce.records.sequences import Order, Reception
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, Origin
from exactlyonce.values.shapes import EXACT, write_shape
from exactlyonce.values.validation import adapter, problems

REPLAY: Final = "exactlyonce.replay"
"""Type of the message that asks an entity to send again what a read model lacks."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Request:
    """What a read model asks a source to send again.

    Attributes:
        source: CloudEvents source of the entity.
        destination, key: of the sequence.
        first, last: numbers.
    """

    source: str
    destination: str
    key: str
    first: int
    last: int


def tend(strategy: Resequencer, work: Work, memory: Memory) -> Step[Finished | Again]:
    """Do what is to be done about gaps, then release what can be: for a timer, or an operator. At most 14 effects.

    Args:
        strategy: of the read model.
        work: the read model and its handler, without messages.
        memory: what this process knows of it.

    Raises:
        StoredDataError: a document cannot be trusted.
        ConfigurationError: the entity is no resequenced read model.
    """
    view = yield from look(work.entity, memory, "resequencer")
    if isinstance(view, Again):
        return view
    # Ask for the time. A gap is overdue once it is older than `gap_timeout`; a wrong clock skips too early, but releases
    # nothing out of order.
    begun = yield from Begin()
    overdue = tuple(one for one in view.ledger.receptions if _is_overdue(one, begun.at, strategy))
    outcome: Again | None = None
    if overdue and strategy.on_gap == "skip":
        outcome = yield from _skip(work, view, overdue, begun.at)
    elif overdue and isinstance(strategy.on_gap, Rebuild):
        outcome = yield from _ask_again(work.entity, strategy.on_gap, view, overdue)
    if outcome is not None:
        return outcome
    released = yield from strategy.attempt(replace(work, messages=()), view.memory)
    return released


def missing_before(reception: Reception) -> tuple[int, int]:
    """First and last number of the gap before the first held message."""
    return reception.next, reception.held[0][0] - 1


def read_request(envelope: Envelope) -> tuple[str, Missing]:
    """The source that a request is for, and what it asks for.

    Raises:
        InvalidMessage: it is not what `tend` sends.
    """
    try:
        request = adapter(Request).validate_json(envelope.data.text, strict=True)
    except ValidationError as error:
        raise InvalidMessage(f"Message {key_of(envelope)} is no request to send again: {problems(error)}.") from None
    return request.source, Missing(request.destination, request.key, request.first, request.last)


def _is_overdue(reception: Reception, at: datetime, strategy: Resequencer) -> bool:
    return reception.gap_since is not None and at - reception.gap_since >= strategy.gap_timeout


def _skip(work: Work, view: View, overdue: tuple[Reception, ...], at: datetime) -> Step[Again]:
    """Give up on missing messages: a document for each number says so, and tells, should the message come after all."""
    entity = work.entity
    room = BATCH_DOCUMENTS // len(overdue) or 1
    receptions = {one.source: one for one in view.ledger.receptions}
    skipped: list[NumberedMessage] = []
    for reception in overdue[:BATCH_DOCUMENTS]:
        first, last = missing_before(reception)
        following = min(last, first + room - 1) + 1
        order = (Order(entity.id, number) for number in range(first, following))
        skipped += (NumberedMessage(entity.key, reception.source, one, None, at, held=None) for one in order)
        since = None if following > last else reception.gap_since
        receptions[reception.source] = replace(reception, next=following, gap_since=since)
    ledger = replace(view.ledger, receptions=tuple(receptions[source] for source in sorted(receptions)))
    document = entity_document(view.body or work.absent, ledger)
    # Skip: save the read model behind the gap, and write a document for each number. A message that arrives at the last
    # moment changes the ETag and wins. The documents report those that come later.
    saved = yield from SaveBatch(entity, document, view.etag, tuple(skipped))
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    memory = replace(view.memory, entity_token=saved.token)
    return Again(memory, "what follows the gap can be released", progressed=True)


def _ask_again(entity: EntityRef, rebuild: Rebuild, view: View, overdue: tuple[Reception, ...]) -> Step[Again | None]:
    """Ask the sources to send again what is missing. To ask twice does no harm: what comes again is known by its number."""
    # Ask the sources to send again. Copies are known by their numbers, so asking twice does no harm.
    published = yield from Publish(tuple(_request(entity, rebuild, one) for one in overdue))
    return None if published is PUBLISHED else Again(view.memory, "the sources could not be asked")


def _request(entity: EntityRef, rebuild: Rebuild, reception: Reception) -> Output:
    first, last = missing_before(reception)
    asked = Request(reception.source, rebuild.destination, entity.id, first, last)
    id = Origin(entity, f"replay {reception.source} {first} {last}").output_id(0)
    return Output(id, rebuild.through, Envelope(entity.source, id, REPLAY, Json.of(write_shape(asked))).to_json())
