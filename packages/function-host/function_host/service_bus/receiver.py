"""An entity of Service Bus as the listener sees it: the port, and the adapter to the SDK.

Each receiver has a connection of its own, so that none waits for what another reads.
"""

import json
import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any, Protocol

from azure.core.exceptions import AzureError
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageAlreadySettled,
    MessageLockLostError,
    OperationTimeoutError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

_DEAD_LETTERS = "/$deadletterqueue"
_NO_EXPIRY = datetime.max.replace(tzinfo=timezone.utc)
"""What the host says of a message that lives for ever."""
_LOST = (MessageLockLostError, SessionLockLostError, MessageAlreadySettled)
_NO_SESSION = (OperationTimeoutError, SessionCannotBeLockedError)


class BrokerError(Exception):
    """The broker refused or could not be reached."""


class LockLostError(BrokerError):
    """Message or session are not locked for this receiver any more: someone else may have them."""


@dataclass(frozen=True, slots=True)
class Entity:
    """What a trigger names.

    Attributes:
        name: of a queue or topic; a dead-letter queue is `<queue>/$DeadLetterQueue`.
        subscription: of the topic; its dead-letter queue is `<subscription>/$DeadLetterQueue`.
    """

    name: str
    subscription: str | None = None
    sessions: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """A locked message.

    Attributes:
        metadata: what the real host tells a function about it, under the host's names; None for what it does not have.
        token: what the receiver settles it by.
    """

    body: bytes
    metadata: Mapping[str, Any]
    token: Any = field(default=None, repr=False, compare=False)

    @property
    def id(self) -> str:
        """For the log."""
        return str(self.metadata.get("MessageId"))


class Receiver(Protocol):
    """What a listener does with an entity, or with one session of it. Everything may raise BrokerError."""

    async def receive(self, count: int, seconds: float) -> list[Delivery]:
        """Lock up to so many messages; wait at most so long for the first."""

    async def complete(self, delivery: Delivery) -> None:
        """Remove a message. Raises LockLostError."""

    async def abandon(self, delivery: Delivery) -> None:
        """Give a message back at once, its delivery counted. Raises LockLostError."""

    async def renew(self, delivery: Delivery | None) -> datetime:
        """Keep the lock of a message, or of the session; returns until when. Raises LockLostError."""

    def locked_until(self, delivery: Delivery | None) -> datetime:
        """Until when a message, or the session, is locked. Raises LockLostError."""

    async def close(self) -> None:
        """Give up what is locked for it: its session, and messages that nobody asked for yet."""


class Source(Protocol):
    """Where receivers come from."""

    async def open(self, seconds: float) -> Receiver | None:
        """Connect; with sessions, lock the next that has messages, or None when there is none within so long."""


class ServiceBusSource:
    """The port on a real client."""

    def __init__(self, client: ServiceBusClient, entity: Entity, prefetch: int) -> None:
        self._client = client
        self._entity = entity
        self._prefetch = prefetch

    async def open(self, seconds: float) -> Receiver | None:
        receiver = self._receiver(seconds)
        try:
            with _translated():
                await receiver.__aenter__()
        except BaseException as error:
            await receiver.close()
            if self._entity.sessions and isinstance(error.__cause__, _NO_SESSION):
                return None
            raise
        return ServiceBusEntity(receiver)

    def _receiver(self, seconds: float) -> ServiceBusReceiver:
        options: dict[str, Any] = {"prefetch_count": self._prefetch}
        if self._entity.sessions:
            options |= {"session_id": NEXT_AVAILABLE_SESSION, "max_wait_time": seconds}
        last = self._entity.subscription or self._entity.name
        if last.lower().endswith(_DEAD_LETTERS):
            last = last[: -len(_DEAD_LETTERS)]
            options["sub_queue"] = ServiceBusSubQueue.DEAD_LETTER
        if self._entity.subscription is None:
            return self._client.get_queue_receiver(last, **options)
        return self._client.get_subscription_receiver(self._entity.name, last, **options)


class ServiceBusEntity:
    """The port on a real receiver."""

    def __init__(self, receiver: ServiceBusReceiver) -> None:
        self._receiver = receiver

    async def receive(self, count: int, seconds: float) -> list[Delivery]:
        with _translated():
            messages = await self._receiver.receive_messages(max_message_count=count, max_wait_time=seconds)
            return [_delivery(message) for message in messages]

    async def complete(self, delivery: Delivery) -> None:
        with _translated():
            await self._receiver.complete_message(delivery.token)

    async def abandon(self, delivery: Delivery) -> None:
        with _translated():
            await self._receiver.abandon_message(delivery.token)

    async def renew(self, delivery: Delivery | None) -> datetime:
        with _translated():
            if delivery is None:
                return await self._receiver.session.renew_lock()
            until: datetime = await self._receiver.renew_message_lock(delivery.token)
        return until

    def locked_until(self, delivery: Delivery | None) -> datetime:
        locked = self._receiver.session if delivery is None else delivery.token
        until: datetime | None = locked.locked_until_utc
        if until is None:
            raise LockLostError("it was received without a lock")
        return until

    async def close(self) -> None:
        with _translated():
            await self._receiver.close()


def _delivery(message: ServiceBusReceivedMessage) -> Delivery:
    expires = (message.expires_at_utc or _NO_EXPIRY).replace(tzinfo=None)
    enqueued = message.enqueued_time_utc
    properties = {_text(name): _plain(value) for name, value in (message.application_properties or {}).items()}
    metadata = {
        # Counted from 1 by the host's client, from 0 by Python's.
        "DeliveryCount": (message.delivery_count or 0) + 1,
        "DeadLetterSource": message.dead_letter_source,
        "LockToken": str(message.lock_token),
        # Without a time zone, as the host has them: it takes their local part, which is UTC.
        "ExpiresAtUtc": expires.isoformat(),
        "EnqueuedTimeUtc": None if enqueued is None else enqueued.replace(tzinfo=None).isoformat(),
        "MessageId": message.message_id,
        "ContentType": message.content_type,
        "ReplyTo": message.reply_to,
        "SequenceNumber": message.sequence_number,
        "To": message.to,
        "Subject": message.subject,
        "Label": message.subject,
        "CorrelationId": message.correlation_id,
        "ApplicationProperties": properties,
        "UserProperties": properties,
        "SessionId": message.session_id,
        "ReplyToSessionId": message.reply_to_session_id,
        "PartitionKey": message.partition_key,
        "TransactionPartitionKey": None,
    }
    return Delivery(_body(message.body), metadata, message)


def _body(body: Any) -> bytes:
    """The bytes of a message's data sections; a value or sequence, which few senders write, as JSON."""
    if isinstance(body, (bytes, str)):
        return body.encode() if isinstance(body, str) else body
    sections = list(body) if isinstance(body, Iterator) else body
    if isinstance(sections, list) and all(isinstance(section, bytes) for section in sections):
        return b"".join(sections)
    return json.dumps(sections, default=_plain).encode()


def _plain(value: Any) -> Any:
    """A property as the host's JSON has it. The SDK gives texts as bytes."""
    match value:
        case bytes():
            return _text(value)
        case datetime() | date():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case _:
            return value


def _text(value: bytes | str) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return b64encode(value).decode() if isinstance(value, bytes) else value


@contextmanager
def _translated() -> Iterator[None]:
    """The SDK's errors in the port's terms."""
    try:
        yield
    except _LOST as error:
        raise LockLostError(type(error).__name__) from error
    except (AzureError, ValueError, OSError) as error:
        # ValueError: the SDK's word for a receiver whose connection was closed under it.
        raise BrokerError(type(error).__name__) from error
