"""The poison settler: messages that a queue gave up on are finished, parked, or put aside, and leave their poison queue.

None stays there but while the store does not answer. The host's copy in a poison queue lives for 7 days, and nothing can
change that; a function on a poison queue that fails gets its message again every 10 minutes until it is gone. So what cannot be
read, or cannot be decided about, is put aside in the library's container, where it stays until somebody has looked at it.

The dead-letter queues of Service Bus keep their messages for ever. One that has been there for so long that the record of a
copy may be gone cannot be decided about, either.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from exactlyonce.drivers.surroundings import SystemClock
from exactlyonce.effects import Step
from exactlyonce.envelope import Envelope
from exactlyonce.errors import ConfigurationError, HandlerError, MalformedMessage, MessageError, StoredDataError
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Again, Memory, Work, key_of
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.adapters import Adapter
from exactlyonce.hosting.azure_functions import Delivered, broker_says, enqueued_at, envelope_of, id_of
from exactlyonce.hosting.chores import protocol_of
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.failures import Failures, named
from exactlyonce.hosting.mending import Mending
from exactlyonce.identity import EntityRef, message_key
from exactlyonce.strategies import settling
from exactlyonce.strategies.gaps import REPLAY
from exactlyonce.strategies.operating import put_aside
from exactlyonce.strategies.settling import Settled
from exactlyonce.strategies.settling_beside import settle_beside

UNREADABLE: Final = "exactlyonce.unreadable"
"""Source and type of the envelope around a body that is none."""
ASIDE: Final = "exactlyonce.put-aside"
"""In place of an entity's id, in the name of the place for what was put aside."""

Outcome = Literal["processed", "parked"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonSettler:
    """Decides about messages from poison queues.

    Attributes:
        mending: runs what settles, and answers replay requests.
        claims: fetches the data of messages that only refer to it.
        failures: what this process knows of their deliveries.
        delivery_limit: how long a message may wait in its queue.
        now: the time of day.
    """

    mending: Mending
    claims: ClaimChecks
    failures: Failures
    delivery_limit: timedelta = timedelta(days=7)
    now: Callable[[], datetime] = SystemClock().now

    async def settle(
        self, entity: Entity[Any], message: Delivered, adapter: Adapter | None = None, who: str = "its queue"
    ) -> Outcome:
        """Decide about one message.

        Args:
            entity: the type whose handlers take it.
            message: as the trigger delivers it.
            adapter: that the queue's function uses.
            who: gave it up.

        Raises:
            TryAgainLater: the store, a queue or a blob did not answer.
            ConfigurationError: the store refuses what only an operator can change.
        """
        try:
            envelope = envelope_of(message, adapter)
        except Exception as error:  # An adapter is the application's.
            return await self._put_aside(nobodys(entity), _around(message), _with_brokers(message, named(error)))
        if envelope.type == REPLAY:
            return await self._answer(entity, envelope)
        try:
            whole = await self.claims.redeemed(envelope) if self.claims.claims(envelope) else envelope
            ref = entity.ref_of(whole)
        except (MessageError, HandlerError, ConfigurationError) as error:
            return await self._put_aside(nobodys(entity), envelope, _with_brokers(message, named(error)))
        reason = _with_brokers(message, self.failures.reason(entity.name, key_of(envelope), who))
        if self._may_be_forgotten(message):
            return await self._put_aside(
                nobodys(entity), envelope, f"{reason}; too old to tell whether {ref} processed it"
            )
        work = self.mending.work(entity, ref, whole)
        try:
            settled = await self.mending.run(ref, lambda memory: _settling(entity, work, envelope, reason, memory))
        except (HandlerError, StoredDataError, ConfigurationError) as error:
            # Whether it was processed nobody can tell now.
            return await self._put_aside(nobodys(entity), envelope, f"{named(error)}, of entity {ref}")
        return _told(settled.outcome, envelope, ref, reason)

    async def _answer(self, entity: Entity[Any], request: Envelope) -> Outcome:
        """A request to send again is answered, which changes no state; or put aside, once however often it is asked.

        Nothing is lost with it: while its gap lasts, the read model asks again, under the same id.
        """
        try:
            await self.mending.answer(entity, request)
        except (MessageError, HandlerError, StoredDataError, ConfigurationError) as error:
            return await self._put_aside(nobodys(entity), request, f"{named(error)}, asked by {request.source}")
        _log.info("request %s was given up by its queue, and answered now", key_of(request))
        return "processed"

    def _may_be_forgotten(self, message: Delivered) -> bool:
        """Whether clean-up may have taken the record of a copy: its retention covers two delivery limits, the second of them
        for messages that are sent again."""
        enqueued = enqueued_at(message)
        return enqueued is not None and self.now() - enqueued > 2 * self.delivery_limit

    async def _put_aside(self, place: EntityRef, envelope: Envelope, reason: str) -> Outcome:
        settled = await self.mending.run(place, lambda memory: put_aside(place, envelope, reason, memory))
        return _told(settled.outcome, envelope, place, reason)


def _settling(entity: Entity[Any], work: Work, came: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
    """What decides about a message. It is parked as it came: with its data elsewhere, if that is where it was."""
    protocol = protocol_of(entity)
    if protocol == "outbox":
        return settling.settle(work.entity, came, reason, work.absent, memory)
    return settle_beside(protocol, work, reason, memory, came)


def nobodys(entity: Entity[Any]) -> EntityRef:
    """The place for what was sent to an entity type, and put aside. It has no partition key, as every entity has."""
    return EntityRef(entity.name, (), ASIDE)


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


def _told(outcome: Outcome, envelope: Envelope, place: EntityRef, reason: str) -> Outcome:
    if outcome == "parked":
        _log.error("message %s was parked under %s: %s", key_of(envelope), place.key, reason)
    else:
        _log.info("message %s was given up by its queue, but had been processed by %s", key_of(envelope), place)
    return outcome
