"""The queues of a demo, on either transport, for those who send shots, bring outcomes to the board and judge."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Protocol

from azure.core.exceptions import ResourceNotFoundError
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from demo.bus import Bus
from demo.stack import Stack
from exactlyonce import Envelope
from exactlyonce.records.outbox import RECEIVER
from exactlyonce.transports.service_bus.binding import Content, read
from handlers.shooting_range import ranges

_PAGE: Final = 32
_INVISIBLE_SECONDS: Final = 30
_WAIT_SECONDS: Final = 10
"""Long enough to connect within it on a busy machine. A receiver comes back with the first message."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message that somebody has in hand.

    Attributes:
        body: its envelope, in JSON.
        token: what its queue deletes it by.
    """

    body: bytes
    token: Any


class Queue(Protocol):
    """A queue, as long as it is open."""

    async def send(self, body: bytes, delay: int = 0) -> None:
        """Send an envelope, in JSON; it appears after so many seconds."""

    async def receive(self) -> list[Received]:
        """Take some messages out of sight; none if none came while it waited."""

    async def delete(self, message: Received) -> None:
        """Remove a message."""

    async def waiting(self) -> int:
        """How many messages there are, those in work included."""

    async def given_up(self) -> int:
        """How many of its messages nobody could process."""


def open_queue(stack: Stack, name: str) -> AbstractAsyncContextManager[Queue]:
    """A queue of a demo, on its transport."""
    return StorageQueue(stack, name) if stack.bus is None else BusQueue(stack.bus, name)


class StorageQueue:
    """A storage queue, with its poison queue."""

    def __init__(self, stack: Stack, name: str) -> None:
        self._queue, self._poison = (_client(stack, item) for item in (name, f"{name}-poison"))

    async def __aenter__(self) -> StorageQueue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._queue.close()
        await self._poison.close()

    async def send(self, body: bytes, delay: int = 0) -> None:
        """See `Queue`."""
        await self._queue.send_message(body, visibility_timeout=delay)

    async def receive(self) -> list[Received]:
        """See `Queue`."""
        found = self._queue.receive_messages(
            messages_per_page=_PAGE, max_messages=_PAGE, visibility_timeout=_INVISIBLE_SECONDS
        )
        return [Received(message.content, message) async for message in found]

    async def delete(self, message: Received) -> None:
        """See `Queue`."""
        await self._queue.delete_message(message.token)

    async def waiting(self) -> int:
        """See `Queue`."""
        return await _length(self._queue)

    async def given_up(self) -> int:
        """See `Queue`."""
        return await _length(self._poison)


class BusQueue:
    """A queue of the local Service Bus, with its dead letters. Sessions are games, as the sample's destinations say."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._endpoint = bus.endpoint
        self._name = name
        self._clients = AsyncExitStack()
        self._turn = asyncio.Lock()  # The SDK's senders are not for several coroutines at once.
        self._sender: ServiceBusSender
        self._receiver: ServiceBusReceiver

    async def __aenter__(self) -> BusQueue:
        client = await self._clients.enter_async_context(
            ServiceBusClient.from_connection_string(self._endpoint.connection_string)
        )
        self._sender = await self._clients.enter_async_context(client.get_queue_sender(self._name))
        self._receiver = client.get_queue_receiver(
            self._name
        )  # Opened with its first use; not all queues are read here.
        self._clients.push_async_callback(self._receiver.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._clients.aclose()

    async def send(self, body: bytes, delay: int = 0) -> None:
        """See `Queue`."""
        async with self._turn:
            await self._sender.send_messages(_message(Envelope.read(body), delay))

    async def receive(self) -> list[Received]:
        """See `Queue`."""
        found = await self._receiver.receive_messages(max_message_count=_PAGE, max_wait_time=_WAIT_SECONDS)
        return [Received(_envelope(message), message) for message in found]

    async def delete(self, message: Received) -> None:
        """See `Queue`."""
        await self._receiver.complete_message(message.token)

    async def waiting(self) -> int:
        """See `Queue`."""
        counts = self._endpoint.counts(self._name)
        return counts.active + counts.locked + counts.scheduled

    async def given_up(self) -> int:
        """See `Queue`."""
        return self._endpoint.counts(self._name).dead_letters


def _message(envelope: Envelope, delay: int) -> ServiceBusMessage:
    """In structured mode, as many senders write it; the library itself writes binary mode."""
    entity = dict(envelope.extensions).get(RECEIVER) or ranges.ref(envelope.data.value["game_id"]).source
    appears = datetime.now(timezone.utc) + timedelta(seconds=delay)
    return ServiceBusMessage(
        envelope.to_json().text,
        content_type="application/cloudevents+json",
        message_id=envelope.id,
        session_id=str(entity),
        scheduled_enqueue_time_utc=appears if delay else None,
    )


def _envelope(message: ServiceBusReceivedMessage) -> bytes:
    properties = {_text(name): _text(value) for name, value in (message.application_properties or {}).items()}
    return read(Content(b"".join(message.body), message.content_type, properties))


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _client(stack: Stack, name: str) -> QueueClient:
    return QueueClient.from_connection_string(
        stack.storage.connection_string,
        name,
        message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy(),
        initial_backoff=1,  # Left alone the client waits 15 seconds after a connection that was closed.
        increment_base=2,
    )


async def _length(queue: QueueClient) -> int:
    """Messages in a queue, invisible ones included; 0 if there is no such queue."""
    try:
        return (await queue.get_queue_properties()).approximate_message_count or 0
    except ResourceNotFoundError:
        return 0
