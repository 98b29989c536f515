"""The real client in both its forms, behind one face, so that each test is written once.

Opening and closing links takes the client long, so they stay open until the module is done.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from itertools import cycle
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, Final, NamedTuple

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient

KINDS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "thrice": {"max_delivery_count": 3},
    "unique": {"duplicate_window": 60.0},
    "sessions": {"requires_session": True},
    "small": {"max_bytes": 10_000},
    "deleting": {},
}
"""What queues there are in the tests' endpoint, by the beginning of their names."""

LINKS_AT_ONCE: Final = 64

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "sessions": {"session_id": "one"},
    "deleting": {"receive_mode": "receiveanddelete"},
}
"""How a receiver of such a queue is opened, unless a test says otherwise."""

COPIES: Final = dict.fromkeys(KINDS, 15) | {"plain": 60}
"""Queues of each kind: enough for the tests of a module."""

_numbers = {kind: cycle(range(copies)) for kind, copies in COPIES.items()}


def queue(kind: str = "plain") -> str:
    """The name of a queue that no other test of the module uses."""
    return f"{kind}-{next(_numbers[kind])}"


def message(text: str, **properties: Any) -> ServiceBusMessage:
    """A message whose id is its text, unless another is given."""
    return ServiceBusMessage(text, **{"message_id": text, **properties})


class Pair(NamedTuple):
    """A queue of one's own, with a sender and a receiver."""

    queue: str
    sender: Any
    receiver: Any


async def call(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of either form of the client."""
    if inspect.iscoroutinefunction(method):
        return await method(*args, **kwargs)
    return await asyncio.to_thread(method, *args, **kwargs)


class Sdk:
    """Opens links; whatever is open is closed at the end, all at once.

    Args:
        connection_string: Of the endpoint.
        is_sync: Which form.
        retries: Of the client.
    """

    def __init__(self, connection_string: str, *, is_sync: bool, retries: int = 0) -> None:
        self.is_sync = is_sync
        kind: Any = ServiceBusClient if is_sync else AsyncServiceBusClient
        # Without a context for TLS, which the endpoint does not speak, the client reads all certificates for every link.
        context, given = SSLContext(PROTOCOL_TLS_CLIENT), {"retry_total": retries, "retry_backoff_factor": 0.01}
        self._client = kind.from_connection_string(connection_string, ssl_context=context, **given)
        self._enter = "__enter__" if is_sync else "__aenter__"
        self._opened: list[Any] = []
        self._prepared: dict[str, list[Pair]] = {}

    async def prepare(self, kinds: Mapping[str, int]) -> None:
        """Open so many pairs of each kind beforehand, all at once."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(LINKS_AT_ONCE))
        wanted = [kind for kind, copies in kinds.items() for _ in range(copies)]
        for kind, pair in zip(wanted, await asyncio.gather(*map(self.pair, wanted)), strict=True):
            self._prepared.setdefault(kind, []).append(pair)

    async def sender(self, address: str) -> Any:
        """An open sender of a queue."""
        return await self._open(self._client.get_queue_sender(address))

    async def topic_sender(self, topic: str) -> Any:
        """An open sender of a topic."""
        return await self._open(self._client.get_topic_sender(topic))

    async def receiver(self, address: str, **options: Any) -> Any:
        """An open receiver of a queue."""
        return await self._open(self._client.get_queue_receiver(address, **options))

    async def subscriber(self, topic: str, subscription: str) -> Any:
        """An open receiver of a subscription."""
        return await self._open(self._client.get_subscription_receiver(topic, subscription))

    async def pair(self, kind: str = "plain", **options: Any) -> Pair:
        """A queue of one's own, with a sender and a receiver."""
        if not options and self._prepared.get(kind):
            return self._prepared[kind].pop()
        name = queue(kind)
        wanted = options or OPTIONS.get(kind, {})
        sender, receiver = await asyncio.gather(self.sender(name), self.receiver(name, **wanted))
        return Pair(name, sender, receiver)

    async def close(self) -> None:
        """Close all links."""
        await asyncio.gather(*(call(item.close) for item in self._opened))
        await call(self._client.close)
        self._opened.clear()

    async def _open(self, link: Any) -> Any:
        self._opened.append(link)
        await call(getattr(link, self._enter))
        return link


async def receive(receiver: Any, most: int = 1) -> list[Any]:
    """Receive so many messages, or what there is."""
    return list(await call(receiver.receive_messages, most, max_wait_time=2))


async def texts(receiver: Any, most: int = 1) -> list[str]:
    """What so many messages say, received and completed."""
    received = await receive(receiver, most)
    for item in received:
        await call(receiver.complete_message, item)
    return [str(item) for item in received]


async def refusals(*attempts: Awaitable[Any]) -> list[Any]:
    """What becomes of attempts that are made at once."""
    return list(await asyncio.gather(*attempts, return_exceptions=True))


def in_an_hour(now: float) -> datetime:
    """A time for scheduled messages; `now` in seconds since 1970."""
    return datetime.fromtimestamp(now, timezone.utc) + timedelta(hours=1)
