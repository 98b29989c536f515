"""The poison settler: messages that a queue gave up on are finished, returned, parked, or put aside.

None stays in its poison queue but while neither the store nor its queue answers. A function on a poison queue that fails gets
its message again after 10 minutes, `maxDequeueCount` times in all; then the host delivers it no more, and after 7 days it is
gone. So what cannot be read, or cannot be decided about, is put aside in the library's container, where it stays until somebody
has looked at it.

The dead-letter queues of Service Bus keep their messages for ever. One that is so old that the record of a copy may be gone
cannot be decided about, either.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass
from typing import Any, Final

import azure.functions as func

from exactlyonce.attempt import key_of
from exactlyonce.errors import (
    ConfigurationError,
    HandlerError,
    MalformedMessage,
    MessageError,
    StoredDataError,
    TryAgainLater,
)
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.adapters import Adapter
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.failures import described, named
from exactlyonce.hosting.settlement import Outcome, PoisonMessage, Settlement, Settler, nobodys
from exactlyonce.hosting.triggers import Delivered, broker_says, delivery_of, envelope_of, id_of
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import message_key

UNREADABLE: Final = "exactlyonce.unreadable"
"""Source and type of the envelope around a body that is none."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonSettler:
    """Decides about messages that were given up.

    Attributes:
        settler: decides about those that can be read.
        claims: fetches the data of messages that only refer to it.
    """

    settler: Settler
    claims: ClaimChecks

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
            adapter: that the queue's function uses.
            who: gave it up.
            settlement: whether it is settled for the first time; None for what the delivery itself says.

        Raises:
            TryAgainLater: the store, a queue or a blob did not answer.
            ConfigurationError: there is no such queue; or the store refuses what only an operator can change.
        """
        self.settler.returner.require_queue(queue)
        try:
            envelope = envelope_of(message, adapter)
        except Exception as error:  # An adapter is the application's.
            return await self._put_aside(entity, _around(message), _with_brokers(message, named(error)))
        if envelope.type == REPLAY:
            return await self._answer(entity, envelope)
        try:
            whole = await self.claims.redeemed(envelope) if self.claims.claims(envelope) else envelope
            ref = entity.ref_of(whole)
        except TryAgainLater:
            # A dead letter comes again as often as it has to.
            unread = isinstance(message, func.QueueMessage)
            if unread and (returned := await self.settler.return_unread(entity, envelope, queue)):
                return returned
            raise
        except (MessageError, HandlerError, ConfigurationError) as error:
            return await self._put_aside(entity, envelope, _with_brokers(message, described(error)))
        failures, maintenance = self.settler.failures, self.settler.maintenance
        reason = _with_brokers(message, failures.reason(entity.name, key_of(envelope), who))
        work = maintenance.work(entity, ref, whole)
        first = settlement or _settlement_of(message)
        runs_out = isinstance(message, func.QueueMessage)
        return await self.settler.decide(PoisonMessage(entity, envelope, work, queue, first, reason, runs_out))

    async def _answer(self, entity: Entity[Any], request: Envelope) -> Outcome:
        """A request to send again is answered, which changes no state; or put aside, once however often it is asked.

        Nothing is lost with it: while its gap lasts, the read model asks again, under the same id.
        """
        await self.settler.ready()
        try:
            await self.settler.maintenance.answer(entity, request)
        except (MessageError, HandlerError, StoredDataError, ConfigurationError) as error:
            return await self._put_aside(entity, request, f"{named(error)}, asked by {request.source}")
        _log.info("request %s was given up by its queue, and answered now", key_of(request))
        return "processed"

    async def _put_aside(self, entity: Entity[Any], envelope: Envelope, reason: str) -> Outcome:
        await self.settler.ready()
        return await self.settler.put_aside(nobodys(entity), envelope, reason)


def require_readable(message: str) -> None:
    """Refuse to send again what nobody could read.

    Raises:
        MalformedMessage: the key is that of an envelope around a body that is none.
    """
    if message.startswith(message_key(UNREADABLE, "")):
        raise MalformedMessage(
            f"Message {message} is a body that nobody could read, so it would only come back. Look at it with "
            "'parked --bodies', send what it should have been, and discard it."
        )


def _around(message: Delivered) -> Envelope:
    """An envelope around a body that is none. The queue message's id is all the identity it has."""
    body = base64.b64encode(message.get_body()).decode()
    return Envelope(UNREADABLE, id_of(message), UNREADABLE, Json.of({"body_base64": body}))


def _with_brokers(message: Delivered, reason: str) -> str:
    """A reason, and what the broker says besides."""
    told = broker_says(message)
    return reason if told is None else f"{reason}; its broker says {told}"


def _settlement_of(message: Delivered) -> Settlement:
    """Whether a delivery is settled for the first time.

    A poison copy is a new message, whose deliveries are all settled. A dead letter counts on from where its queue was.
    """
    if isinstance(message, func.ServiceBusMessage):
        return "unknown"
    return "first" if delivery_of(message) in (None, 1) else "repeated"
