"""Gaps: missing messages are waited for, skipped or asked for again, so no lost message stops a read model silently."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError, with_config

from exactlyonce.effects.attempt import Again, Work
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved
from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.handling.entities import Entity
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.protocols.steps.load import View, start_over
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.protocols.stream.replay import Missing
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.ledger import entity_document
from exactlyonce.records.outbox import RECEIVER, Output, Place, Reception
from exactlyonce.values.declarations import require, require_text
from exactlyonce.values.envelope import EntityRef, Envelope, Origin, key_of
from exactlyonce.values.frozen_json import EXACT, Json, adapter, problems, write_shape

REPLAY: Final = "exactlyonce.replay"
"""Type of the message that asks a source to send missing outputs again."""


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Request:
    """A read model's request to a source for missing outputs.

    Attributes:
        source: CloudEvents source of the entity.
        first, last: first and last number.
    """

    source: str
    channel: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The `on_gap` that asks sources to send lost messages again.

    Attributes:
        of: entity type of the sources; needs a `VersionStream`, which can send again.
        through: destination of the request.

    Raises:
        ConfigurationError: the entity type keeps no stream.
    """

    of: Entity[Any]
    through: str

    def __post_init__(self) -> None:
        require("of= of a Rebuild", self.of, Entity, "the Entity that sends the messages")
        require_text("through= of a Rebuild, a destination's name,", self.through)
        if not isinstance(self.of.strategy, VersionStream):
            raise ConfigurationError(
                f"Entity {self.of.name!r} keeps no version stream, so it cannot send lost messages again. Set "
                "strategy=VersionStream(), or let the read model wait for lost messages, or skip them."
            )


def missing_before(reception: Reception) -> tuple[int, int]:
    """First and last number of the gap before the first held message."""
    return reception.next, reception.held[0][0] - 1


def read_request(envelope: Envelope) -> tuple[str, Missing]:
    """The source of a request, and the missing outputs.

    Raises:
        InvalidMessage: `tend` sent no such message.
    """
    try:
        request = adapter(Request).validate_json(envelope.data.text, strict=True)
    except ValidationError as error:
        raise InvalidMessage(f"Message {key_of(envelope)} is no request to send again: {problems(error)}.") from None
    return request.source, Missing(request.channel, request.first, request.last)


def is_overdue(reception: Reception, at: datetime, gap_timeout: timedelta) -> bool:
    """Whether a gap is older than `gap_timeout`."""
    return reception.gap_since is not None and at - reception.gap_since >= gap_timeout


def skip(work: Work, view: View, overdue: tuple[Reception, ...], at: datetime) -> Step[Again]:
    """Skip missing messages: a document for each number records the skip, and reports a message that still arrives."""
    entity = work.entity
    room = BATCH_DOCUMENTS // len(overdue) or 1
    receptions = {item.channel: item for item in view.ledger.receptions}
    skipped: list[NumberedMessage] = []
    for reception in overdue[:BATCH_DOCUMENTS]:
        first, last = missing_before(reception)
        following = min(last, first + room - 1) + 1
        skipped += (
            NumberedMessage(
                entity.key, Place(reception.channel, entity.source, number), reception.source, None, at, held=None
            )
            for number in range(first, following)
        )
        since = None if following > last else reception.gap_since
        receptions[reception.channel] = replace(reception, next=following, gap_since=since)
    ledger = replace(view.ledger, receptions=tuple(receptions[channel] for channel in sorted(receptions)))
    document = entity_document(view.body or work.absent, ledger)
    # Skip: save the read model behind the gap, and write a document for each number. A message that arrives at the last
    # moment changes the ETag and wins. The documents report messages that come later.
    saved = yield from SaveBatch(entity, document, view.etag, tuple(skipped))
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    memory = replace(view.memory, entity_token=saved.token)
    return Again(memory, "messages behind the gap can be released", progressed=True)


def ask_again(entity: EntityRef, rebuild: Rebuild, view: View, overdue: tuple[Reception, ...]) -> Step[Again | None]:
    """Ask the sources to send missing messages again. Asking twice does no harm: copies are recognized by number."""
    # Ask the sources to send again. Copies are recognized by number, so asking twice does no harm.
    published = yield from Publish(tuple(_request(entity, rebuild, item) for item in overdue))
    return None if published is PUBLISHED else Again(view.memory, "the sources could not be asked")


def _request(entity: EntityRef, rebuild: Rebuild, reception: Reception) -> Output:
    first, last = missing_before(reception)
    asked = Request(reception.source, reception.channel, first, last)
    id = Origin(entity, f"replay {reception.channel} {first} {last}").output_id(0)
    # The source is the receiver: its queue may have sessions.
    to = ((RECEIVER, reception.source),)
    envelope = Envelope(entity.source, id, REPLAY, Json.of(write_shape(asked)), extensions=to)
    return Output(id, rebuild.through, envelope.to_json())
