"""Requests that callers open, have carried out, look at and close: the service's side of calls between services."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from exactlyonce.effects.requests import FoundRequests
from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.requests.asker import Answered, encoded
from exactlyonce.hosting.upkeep.maintenance import Maintenance
from exactlyonce.protocols.outbox.judge import request_unknown
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.outbox.requests import Opened, close_request, find_request, open_request
from exactlyonce.records.answers import Answer
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, Envelope
from exactlyonce.values.identity import EntityRef

SOURCE: Final = "exactlyonce/request"
"""Source of the messages of all opened requests. Their ids are unique by themselves."""
_STORED: Final = 2 * MAX_MESSAGE_BYTES
"""Bytes of an envelope that this module has stored."""


@dataclass(frozen=True)
class Requests:
    """Requests of an application.

    Attributes:
        receiver: carries them out, in the lanes of messages that come by queues.
        maintenance: reaches their documents.
    """

    receiver: Receiver
    maintenance: Maintenance

    async def open(self, entity: Entity[Any], message: object) -> Opened:
        """Open a request; nothing is carried out yet. Raises `InvalidMessage`, `HandlerFailed` or `TryAgainLater`."""
        name, data = encoded(message)
        if data.size > MAX_MESSAGE_BYTES:
            raise InvalidMessage(f"The request has {data.size} bytes; at most {MAX_MESSAGE_BYTES} are taken.")

        def envelope(id: str, at: datetime) -> Envelope:
            return Envelope(SOURCE, id, name, data, at)

        await self.receiver.ready()
        ref = entity.ref_of(envelope("opened", self.receiver.now()))
        return await self.maintenance.run(ref, lambda memory: open_request(ref, envelope, memory))

    async def carry_out(self, entity: Entity[Any], ref: EntityRef, opened: Opened) -> Answered:
        """Carry a request out, or return the answer it has. Raises `RequestUnknown` if it was closed, or as `ask` does."""
        found = await self._found(ref, opened)
        document = found.documents[0]
        if document.envelope is None or document.answer is not None:
            return _answered(document.answer or Answer(), replayed=True)
        envelope = Envelope.read(document.envelope.text, limit=_STORED)
        # The message is as it was opened: what a retry sends could differ.
        message = replace(envelope, asked=opened.request, opened=found.token or opened.token)
        processed = await self.receiver.ask(message, entity, ref)
        if processed.answer is None:
            raise request_unknown(opened.request)
        return _answered(processed.answer, replayed=processed.before)

    async def answer(self, ref: EntityRef, opened: Opened) -> Answered | None:
        """The answer to a request; None while it has none. Raises `RequestUnknown` or `TryAgainLater`."""
        answer = (await self._found(ref, opened)).documents[0].answer
        return None if answer is None else _answered(answer, replayed=True)

    async def close(self, ref: EntityRef, opened: Opened) -> None:
        """Close a request: its document goes, with its answer. Raises `TryAgainLater`."""
        await self.receiver.ready()
        await self.maintenance.run(ref, lambda memory: close_request(ref, opened.request, memory))

    async def _found(self, ref: EntityRef, opened: Opened) -> FoundRequests:
        await self.receiver.ready()
        found = await self.maintenance.run(ref, lambda memory: find_request(ref, opened.request, opened.token, memory))
        if not found.documents:
            raise request_unknown(opened.request)
        return found


def require_requests(entity: Entity[Any]) -> None:
    """Raise `ConfigurationError` unless requests for the entity can be opened."""
    if not isinstance(entity.strategy, Outbox):
        raise ConfigurationError(
            f"Requests for {entity} cannot be opened: only Outbox() keeps their documents. Give it strategy=Outbox(), or "
            "answer requests that carry a key, with once.answer."
        )


def _answered(answer: Answer, *, replayed: bool) -> Answered:
    return Answered(answer.status, answer.headers, answer.body, replayed)
