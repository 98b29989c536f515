"""The poison settler: finishes, returns, parks or puts aside messages that a queue gave up on.

A message stays in its poison queue only while neither the store nor the queue answers, or, without a time, while the store
does not. If a function on a poison queue fails, the host delivers the message again after 10 minutes, `maxDequeueCount` times
in all; afterwards it is never delivered, and after 7 days it is gone. So a message that cannot be read or decided about is put
aside in the library's container, and stays there until an operator acts.

The dead-letter queues of Service Bus keep messages for ever. A message so old that the mark of a copy may be gone cannot be
decided about either.
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
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
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
from exactlyonce.values.envelope import Envelope, key_of, message_key
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.raised import Show, causes_of, is_librarys, shown

UNREADABLE: Final = "exactlyonce.unreadable"
"""Source and type of the envelope around a body that is not an envelope."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonSettler:
    """Reads messages that a queue gave up on, and decides about them."""

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
            entity, message, queue, adapter: as for `ExactlyOnce.settle`.
            who: the subject of the reason: the queue or batch that gave the message up.
            settlement: whether the message was settled before; None to go by the delivery.

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
        """Answer a replay request, which changes no state, or put it aside. Repeated requests have the same id.

        Putting aside loses nothing: while its gap lasts, the read model repeats the request.
        """
        await self.settler.ready()
        try:
            await self.settler.maintenance.answer(entity, request)
        except (MessageError, HandlerError, StoredDataError, ConfigurationError) as error:
            return await self._put_aside(entity, request, f"{named(error)}, asked by {request.source}")
        _log.info("replay request %s was given up by its queue, and is answered now", key_of(request))
        return "processed"

    def _log(self, message: Delivered, error: ExactlyOnceError) -> None:
        """Log the trace of an error in the application's code: the reason of a message put aside has none."""
        if not all(map(is_librarys, causes_of(error))):
            _log.warning("queue message %s cannot be read: %s", id_of(message), named(error), exc_info=self.show(error))

    async def _put_aside(self, entity: Entity[Any], envelope: Envelope, reason: str) -> Outcome:
        await self.settler.ready()
        return await self.settler.put_aside(entity, envelope, reason)


def require_readable(message: str) -> None:
    """Raise `MalformedMessage` if the key of a message belongs to an envelope around an unreadable body."""
    if message.startswith(message_key(UNREADABLE, "")):
        raise MalformedMessage(
            f"Message {message} has a body that could not be read, so it would only come back. Look at it with "
            "'parked --bodies', send a corrected message, and discard this one."
        )


def _around(message: Delivered) -> Envelope:
    """An envelope around an unreadable body, identified only by the queue message's id."""
    body = base64.b64encode(message.get_body()).decode()
    return Envelope(UNREADABLE, id_of(message), UNREADABLE, Json.of({"body_base64": body}))


def _with_brokers(message: Delivered, reason: str) -> str:
    """A reason, followed by the broker's reason if there is one."""
    brokers = broker_says(message)
    return reason if brokers is None else f"{reason}; its broker says {brokers}"


def _settlement_of(message: Delivered) -> Settlement:
    """Whether a delivery's message was settled before.

    The host puts a new message into a poison queue, so the first delivery is the first settlement. The delivery count of a dead
    letter is that of its queue, and says nothing about settlements.
    """
    if isinstance(message, func.ServiceBusMessage):
        return "unknown"
    return "first" if delivery_of(message) in (None, 1) else "repeated"
