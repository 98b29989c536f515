"""The poison settler: finishes, returns, parks or puts aside messages that a queue gave up on.

A message stays in its poison queue only while neither the store nor its queue answers, or, if it has no time, while the store
does not. If a function on a poison queue fails,
the host delivers its message again after 10 minutes, `maxDequeueCount` times in all; then it delivers the message no more, and
after 7 days the message is gone. So a message that cannot be read or decided about is put aside in the library's container,
where it stays until an operator has looked at it.

The dead-letter queues of Service Bus keep their messages for ever. A message so old that the mark of a copy may be gone
cannot be decided about either.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass
from typing import Any, Final

import azure.functions as func

from exactlyonce.errors import (
    ConfigurationError,
    ExactlyOnceError,
    HandlerError,
    MalformedMessage,
    MessageError,
    StoredDataError,
    TryAgainLater,
)
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.settlement import Outcome, PoisonMessage, Settlement, Settler
from exactlyonce.hosting.deliveries.triggers import (
    Adapter,
    Delivered,
    broker_says,
    delivery_of,
    described,
    envelope_of,
    id_of,
    named,
)
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.raised import Show, causes_of, is_librarys, shown
from exactlyonce.values.envelope import Envelope, key_of, message_key
from exactlyonce.values.frozen_json import Json

UNREADABLE: Final = "exactlyonce.unreadable"
"""Source and type of the envelope around a body that is not an envelope."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonSettler:
    """Reads messages that were given up, and decides about them.

    Attributes:
        settler: decides about messages that can be read.
        claims: fetches message data from blobs.
        show: makes of an exception what may be logged of it.
    """

    settler: Settler
    claims: ClaimChecks
    show: Show = shown

    async def settle(
        self,
        entity: Entity[Any],
        message: Delivered,
        queue: str,
        adapter: Adapter | None = None,
        *,
        who: str = "its queue",
        settlement: Settlement | None = None,
    ) -> Outcome:
        """Decide about one message.

        Args:
            entity: the type whose handlers take it.
            message: as the trigger delivers it.
            queue: logical name of the queue that it came from.
            adapter: the one that the queue's function uses.
            who: what gave it up, as the subject of a sentence.
            settlement: whether it was settled before; None to go by the delivery.

        Raises:
            TryAgainLater: the store, a queue or a blob did not answer.
            ConfigurationError: there is no such queue, or the store is not set up as required.
        """
        self.settler.returner.require_queue(queue)
        try:
            envelope = envelope_of(message, adapter)
        except MessageError as error:
            if adapter is not None:
                self._log(message, error)
            return await self._put_aside(entity, _around(message), _with_brokers(message, named(error)))
        if envelope.type == REPLAY:
            return await self._answer(entity, envelope)
        try:
            whole = await self.claims.redeemed(envelope) if self.claims.claims(envelope) else envelope
            ref = entity.ref_of(whole)
        except TryAgainLater:
            # Service Bus keeps a dead letter until it is settled; a poison queue drops its message.
            unread = isinstance(message, func.QueueMessage)
            if unread and (returned := await self.settler.return_unread(entity, envelope, queue)):
                return returned
            raise
        except (MessageError, HandlerError, ConfigurationError) as error:
            self._log(message, error)
            return await self._put_aside(entity, envelope, _with_brokers(message, described(error)))
        failures, maintenance = self.settler.failures, self.settler.maintenance
        reason = _with_brokers(message, failures.reason(entity.name, key_of(envelope), who))
        work = maintenance.work(entity, ref, whole)
        first = settlement or _settlement_of(message)
        runs_out = isinstance(message, func.QueueMessage)
        return await self.settler.decide(PoisonMessage(entity, envelope, work, queue, first, reason, runs_out))

    async def _answer(self, entity: Entity[Any], request: Envelope) -> Outcome:
        """Answer a replay request, which changes no state, or put it aside, under the same id however often it is made.

        Putting it aside loses nothing: while its gap lasts, the read model asks again, under the same id.
        """
        await self.settler.ready()
        try:
            await self.settler.maintenance.answer(entity, request)
        except (MessageError, HandlerError, StoredDataError, ConfigurationError) as error:
            return await self._put_aside(entity, request, f"{named(error)}, asked by {request.source}")
        _log.info("replay request %s was given up by its queue, and is answered now", key_of(request))
        return "processed"

    def _log(self, message: Delivered, error: ExactlyOnceError) -> None:
        """Log the trace of the application's code if that has failed: the reason of what is put aside has none."""
        if not all(map(is_librarys, causes_of(error))):
            _log.warning("queue message %s cannot be read: %s", id_of(message), named(error), exc_info=self.show(error))

    async def _put_aside(self, entity: Entity[Any], envelope: Envelope, reason: str) -> Outcome:
        await self.settler.ready()
        return await self.settler.put_aside(entity, envelope, reason)


def require_readable(message: str) -> None:
    """Refuse to send a message again that could not be read.

    Args:
        message: its key.

    Raises:
        MalformedMessage: the key is that of an envelope around an unreadable body.
    """
    if message.startswith(message_key(UNREADABLE, "")):
        raise MalformedMessage(
            f"Message {message} has a body that could not be read, so it would only come back. Look at it with "
            "'parked --bodies', send a corrected message, and discard this one."
        )


def _around(message: Delivered) -> Envelope:
    """An envelope around an unreadable body. Its only identity is the queue message's id."""
    body = base64.b64encode(message.get_body()).decode()
    return Envelope(UNREADABLE, id_of(message), UNREADABLE, Json.of({"body_base64": body}))


def _with_brokers(message: Delivered, reason: str) -> str:
    """A reason, followed by the broker's reason if it gives one."""
    brokers = broker_says(message)
    return reason if brokers is None else f"{reason}; its broker says {brokers}"


def _settlement_of(message: Delivered) -> Settlement:
    """Whether a delivery's message was settled before.

    The host puts a new message into a poison queue, so its first delivery is its first settlement. A dead letter keeps the
    delivery count of its queue, so its count does not say.
    """
    if isinstance(message, func.ServiceBusMessage):
        return "unknown"
    return "first" if delivery_of(message) in (None, 1) else "repeated"
