"""Azure Service Bus: the queues and topics of a namespace, which share their names; so an address is the name of either.

Messages have the ids of their outputs, so a broker with duplicate detection drops the copies of a repeated send. No guarantee
rests on the detection. The session of a message is the `partitionkey` of its envelope, which queues without sessions ignore.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch, parse_connection_string
from azure.servicebus.aio import ServiceBusClient, ServiceBusSender
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusCommunicationError,
    ServiceBusConnectionError,
    ServiceBusError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
)

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.environment import default_credential
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.outbox import RECEIVER, Output
from exactlyonce.transports.port import SendReply
from exactlyonce.transports.service_bus.binding import MAX_BYTES, written

# Links: a queue or topic from a sender's view, and the meaning of the SDK's errors. The SDK's sender serves one coroutine at a
# time. So a coroutine in its turn takes the messages of all waiting coroutines along.


FAILURES: Final = (AzureError, OSError, asyncio.TimeoutError, ValueError)
"""The SDK's exceptions for faults of the world; `ValueError` where a sender was closed meanwhile."""

_OF_THE_LINK: Final = (
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusCommunicationError,
    ServiceBusConnectionError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
)

_CLOSING_SECONDS: Final = 5.0
_NEVER_GIVEN: Final = 2**47 - 1
"""A sequence number that no message has: they are counted from 1."""

_Send = Callable[[Sequence[ServiceBusMessage]], Awaitable[None]]

_log = logging.getLogger(__name__)


def refusal(address: str, error: Exception) -> str | None:
    """The advice to the operator, if an error is a refusal by the namespace; None if the error may pass."""
    if isinstance(error, MessagingEntityNotFoundError):
        return (
            f"There is no queue and no topic {address!r} in the namespace: create it, or map its destination to another in "
            "EXACTLYONCE__destinations."
        )
    if isinstance(error, MessagingEntityDisabledError):
        return f"The queue or topic {address!r} is disabled for senders: enable it."
    meant = _meant(error)
    if isinstance(meant, ServiceBusAuthenticationError | ServiceBusAuthorizationError | ClientAuthenticationError):
        return (
            f"Service Bus refuses this application to send to {address!r} ({type(meant).__name__}). Give its identity the role "
            "'Azure Service Bus Data Sender' on it; with a connection string, check its key, and the clock."
        )
    return None


def _meant(error: Exception) -> Exception:
    """An error; or the cause inside a generic error of the SDK, such as the credential's exception."""
    inner = error.inner_exception if isinstance(error, ServiceBusError) else None
    return inner if isinstance(inner, AzureError | OSError) else error


def _is_of_the_link(error: ServiceBusError) -> bool:
    """Whether an error concerns the link, not the messages: each message alone would meet it, too."""
    meant = _meant(error)
    return meant is not error or isinstance(meant, _OF_THE_LINK)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A coroutine that wants to send; `arrived` is None until there is an answer."""

    messages: Sequence[ServiceBusMessage]
    arrived: bool | None = None


class Link:
    """Sends to a queue or topic, for `time_limit` seconds a turn at most. After an error it opens a fresh link."""

    def __init__(self, client: ServiceBusClient, address: str, time_limit: float) -> None:
        self._client = client
        self._address = address
        self._time_limit = time_limit
        self._turn = asyncio.Lock()
        self._waiting: list[_Waiting] = []
        self._sender: ServiceBusSender | None = None
        self._may_be_dead = False
        """Whether the link was open before this turn, and may have died since."""
        self._alone = False

    async def send(self, messages: Sequence[ServiceBusMessage]) -> bool:
        """Whether the broker has accepted every message. Faults of the world raise no error."""
        mine = _Waiting(messages)
        self._waiting.append(mine)
        try:
            async with self._turn:
                if mine.arrived is None:  # Otherwise another coroutine has taken it along.
                    await self._serve([item for item in self._waiting if item.arrived is None])
        finally:
            self._waiting.remove(mine)  # Cancelled, too: no coroutine may send it hours later.
        return bool(mine.arrived)

    async def most_bytes(self) -> int:
        """Most bytes of a message, with its header. Raises the SDK's exception if the broker rejects the link."""
        async with self._turn:
            try:
                return await asyncio.wait_for(self._ask_for_room(), self._time_limit)
            except BaseException:
                await self._drop()
                raise

    async def close(self) -> None:
        """Close the link once no coroutine has the turn. A later use opens it again."""
        async with self._turn:
            await self._drop()

    async def _serve(self, group: Sequence[_Waiting]) -> None:
        self._may_be_dead = self._sender is not None
        try:
            await asyncio.wait_for(self._send_all(group), self._time_limit)
        except FAILURES as error:
            failed = [item for item in group if not item.arrived]
            self._warn(error, [message for item in failed for message in item.messages])
            for item in failed:
                item.arrived = False
            await self._drop()
        except BaseException:
            # Cancelled in the middle of a request: its reply would pass for the reply of the next. The rest take their turns.
            await self._drop()
            raise

    async def _send_all(self, group: Sequence[_Waiting]) -> None:
        if not self._alone and await self._taken(
            self._send_together, [each for item in group for each in item.messages]
        ):
            for item in group:
                item.arrived = True
            return
        for item in group:
            taken = [await self._taken(self._send_alone, [message]) for message in item.messages]
            item.arrived = all(taken)
        # If the broker took each message alone, it refuses only their company.
        self._alone = self._alone or all(item.arrived for item in group)

    async def _taken(self, send: _Send, messages: Sequence[ServiceBusMessage]) -> bool:
        """Whether the broker took messages, or refused them. Raises for neither, or for a refusal of all messages alike."""
        may_be_dead, self._may_be_dead = self._may_be_dead, False
        try:
            await send(messages)
        except ServiceBusError as error:
            # Some refusals end the link, and the SDK would go on using it.
            await self._drop()
            if may_be_dead:  # As by a token that expired; then the error says nothing about this use.
                return await self._taken(send, messages)
            if _is_of_the_link(error):
                raise
            self._warn(error, messages)
            return False
        return True

    async def _send_together(self, messages: Sequence[ServiceBusMessage]) -> None:
        """Send in as few batches as the link's limit allows."""
        batch = await self._batch()
        for message in messages:
            if not _added(batch, message):
                await self._open().send_messages(batch)
                batch = await self._batch()
                if not _added(batch, message):
                    await self._open().send_messages(message)  # A batch takes some bytes for itself.
        await self._open().send_messages(batch)

    async def _send_alone(self, messages: Sequence[ServiceBusMessage]) -> None:
        """Send a message alone; without a session in a session of its own, since queues with sessions require a session."""
        (message,) = messages
        message.session_id = message.session_id or message.message_id
        await self._open().send_messages(message)

    async def _ask_for_room(self) -> int:
        # The SDK shows a link as open that the broker is about to refuse, so it has to be used. This request changes nothing.
        with suppress(MessageNotFoundError):
            await self._open().cancel_scheduled_messages(_NEVER_GIVEN)
        return (await self._batch()).max_size_in_bytes

    async def _batch(self) -> ServiceBusMessageBatch:
        return await self._open().create_message_batch()

    def _open(self) -> ServiceBusSender:
        if self._sender is None:
            self._sender = self._client.get_queue_sender(self._address)  # A topic's sender is no different.
        return self._sender

    async def _drop(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            with suppress(*FAILURES):
                await asyncio.wait_for(sender.close(), _CLOSING_SECONDS)

    def _warn(self, error: Exception, messages: Sequence[ServiceBusMessage]) -> None:
        # The error's text may quote a message.
        failed = "could not send %s message(s), the first of them %s, to %s: %s"
        _log.warning(failed, len(messages), messages[0].message_id, self._address, type(error).__name__)


def _added(batch: ServiceBusMessageBatch, message: ServiceBusMessage) -> bool:
    try:
        batch.add_message(message)
    except MessageSizeExceededError:
        return False
    return True


HEADER_BYTES: Final = 8 * 1024
"""Room in a message besides its envelope: names of attributes are longer there, and Service Bus adds its own."""

DELIVERY_LIMIT: Final = timedelta(days=7)

_LONGEST_ID: Final = 128
"""Most UTF-16 units, as the service counts, in the id of a message or a session."""

_SETTINGS: Final[dict[str, Any]] = {
    # The SDK's defaults wait up to two minutes before a repetition, and without end for a reply. It repeats a single time,
    # often by the failed link; a `Link` repeats by a fresh link, and both have to fit a time limit.
    "retry_total": 1,
    "retry_backoff_factor": 0.2,
    "retry_backoff_max": 5,
    "try_timeout": 10,
}


def is_connection_string(text: str) -> bool:
    """Whether a text is a connection string of a Service Bus namespace, and not of a queue in it."""
    try:
        return not parse_connection_string(text).entity_path
    except ValueError:
        return False


class ServiceBusTransport:
    """Sends to the queues and topics of a namespace, which have to exist.

    Args:
        namespace: a connection string, or the namespace's host name (`….servicebus.windows.net`).
        credential: for a host name; its owner closes it. Without it, the transport opens a `DefaultAzureCredential`, and closes
            it.
        delivery_limit: time after which an undelivered message expires, counted from its appearance. Clean-up's retention has
            to exceed it.
        message_bytes: most bytes of a message in the namespace, with its header.
        time_limit: most seconds of a call, with its repetitions.
        now: the time of day, for messages that appear later.
    """

    def __init__(
        self,
        namespace: str,
        credential: AsyncTokenCredential | None = None,
        *,
        delivery_limit: timedelta = DELIVERY_LIMIT,
        message_bytes: int = MAX_BYTES,
        time_limit: float = 30.0,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._namespace = namespace
        self._credential = credential
        self._own_credential: AsyncTokenCredential | None = None
        self._lifetime = timedelta(seconds=math.ceil(delivery_limit.total_seconds()))  # The SDK cuts fractions off.
        self._message_bytes = message_bytes
        self._time_limit = time_limit
        self._now = now
        self._client: ServiceBusClient | None = None
        self._links: dict[str, Link] = {}

    @property
    def max_bytes(self) -> int:
        return self._message_bytes - HEADER_BYTES

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        if not outputs:
            return PUBLISHED
        arrived = await self._link(address).send([self._message(output) for output in outputs])
        return PUBLISHED if arrived else UNKNOWN

    async def verify(self, addresses: Iterable[str]) -> None:
        """Check that the namespace takes messages for all these addresses. No message is sent.

        Raises:
            ConfigurationError: names all faults that an operator has to correct.
            TryAgainLater: no fault was found, but the namespace did not answer.
        """
        names = sorted(set(addresses))
        answers = await asyncio.gather(*(self._examined(name) for name in names))
        if problems := [answer for answer in answers if isinstance(answer, str)]:
            raise ConfigurationError(
                "Service Bus is not set up as it has to be:\n" + "\n".join(f"- {problem}" for problem in problems)
            )
        for name, error in zip(names, answers, strict=True):
            if isinstance(error, Exception):
                raise TryAgainLater(
                    f"Service Bus could not be asked for {name!r} ({type(error).__name__}). If this stays, check the "
                    "connection's fullyQualifiedNamespace and the network."
                ) from error

    async def close(self) -> None:
        """Close the links, the client, and the credential if it was opened here. A later use opens all again."""
        links, self._links = self._links, {}
        client, self._client = self._client, None
        credential, self._own_credential = self._own_credential, None
        await asyncio.gather(*(link.close() for link in links.values()))
        if client is not None:
            with suppress(*FAILURES):
                await client.close()
        if credential is not None:
            await credential.close()

    async def _examined(self, address: str) -> str | Exception | None:
        """The fault of an address; an error without an answer; None for no fault."""
        try:
            most = await self._link(address).most_bytes()
        except FAILURES as error:
            return refusal(address, error) or error
        if most < self._message_bytes:
            return (
                f"{address!r} takes messages of {most} bytes, but EXACTLYONCE__maxMessageBytes says {self._message_bytes}: "
                "set it to what the namespace's tier takes."
            )
        return None

    def _message(self, output: Output) -> ServiceBusMessage:
        content = written(output.envelope)
        properties: dict[Any, Any] = dict(content.properties)
        delay = timedelta(seconds=output.delay)
        return ServiceBusMessage(
            content.body,
            content_type=content.type,
            application_properties=properties,
            message_id=_short(output.id),
            session_id=_session(output),
            time_to_live=self._lifetime,
            scheduled_enqueue_time_utc=self._now() + delay if delay else None,
        )

    def _link(self, address: str) -> Link:
        if self._client is None:
            self._client = self._open()
        if address not in self._links:
            self._links[address] = Link(self._client, address, self._time_limit)
        return self._links[address]

    def _open(self) -> ServiceBusClient:
        if "=" in self._namespace:
            return ServiceBusClient.from_connection_string(self._namespace, **_SETTINGS)
        credential = self._credential
        if credential is None:
            credential = self._own_credential = default_credential()
        return ServiceBusClient(self._namespace, credential, **_SETTINGS)


def _session(output: Output) -> str | None:
    key = output.envelope.value.get(RECEIVER)
    return _short(key) if isinstance(key, str) and key else None


def _short(name: str) -> str:
    """A name as it is, or its hash if the name is too long for the service: the same every time."""
    length = len(name.encode("utf-16-le")) // 2
    return name if length <= _LONGEST_ID else hashlib.sha256(name.encode()).hexdigest()
