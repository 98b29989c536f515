"""Azure Storage queues: the transport, and the lengths of queues.

A message is the envelope's JSON in base64, the default `messageEncoding` of a function host.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Literal

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.environment import default_credential
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import SendReply

MAX_BYTES: Final = 48 * 1024
"""Longest envelope: base64 makes 64 KiB of it, the service's limit for a message."""

DELIVERY_LIMIT: Final = timedelta(days=7)

MAX_DELAY: Final = timedelta(days=7)
"""Longest time for which the service lets a message stay invisible."""

_log = logging.getLogger(__name__)


def is_connection_string(text: str) -> bool:
    """Whether a text is a connection string of a storage account."""
    try:
        QueueServiceClient.from_connection_string(text)  # Opens no connection yet.
    except ValueError:
        return False
    return True


class StorageQueueTransport:
    """Sends to the queues of a storage account; a missing queue is created.

    Args:
        account: a connection string, or the address of the account's queue service (`https://….queue.core.windows.net`).
        credential: for an address; its owner closes it. Without it, the transport opens a `DefaultAzureCredential`, and closes
            it.
        delivery_limit: time after which an undelivered message expires. Clean-up's retention has to exceed it.
        time_limit: most seconds of a send, with the wait for its turn and its repetitions.
        concurrency: most messages on their way to a queue at the same time: a slow queue holds up no other queue.
    """

    def __init__(
        self,
        account: str,
        credential: AsyncTokenCredential | None = None,
        *,
        delivery_limit: timedelta = DELIVERY_LIMIT,
        time_limit: float = 30.0,
        concurrency: int = 16,
    ) -> None:
        self._account = account
        self._credential = credential
        self._own_credential: AsyncTokenCredential | None = None
        self._delivery_limit = delivery_limit
        self._time_limit = time_limit
        self._on_their_way: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(concurrency))
        self._service: QueueServiceClient | None = None
        self._queues: dict[str, QueueClient] = {}

    @property
    def max_bytes(self) -> int:
        return MAX_BYTES

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        arrived = await asyncio.gather(*(self._send(address, output) for output in outputs))
        return PUBLISHED if all(arrived) else UNKNOWN

    async def close(self) -> None:
        """Close the clients, and the credential if it was opened here. A later use opens all again."""
        service, self._service = self._service, None
        credential, self._own_credential = self._own_credential, None
        self._queues.clear()
        if service is not None:
            await service.close()
        if credential is not None:
            await credential.close()

    async def _send(self, address: str, output: Output) -> bool:
        """Whether the service has accepted the message. Copies do no harm: their id is the same."""
        try:
            await asyncio.wait_for(self._put_in_turn(address, output), self._time_limit)
        except (AzureError, asyncio.TimeoutError) as error:
            code = getattr(error, "error_code", None)
            failed = "could not send message %s to queue %s: %s, %s"
            _log.warning(failed, output.id, address, type(error).__name__, code)
            return False
        return True

    async def _put_in_turn(self, address: str, output: Output) -> None:
        async with self._on_their_way[address]:
            await self._put(self._queue(address), output)

    async def _put(self, queue: QueueClient, output: Output) -> None:
        text = base64.b64encode(output.envelope.text.encode()).decode()
        lifetime = math.ceil(self._delivery_limit.total_seconds())
        # A message has to appear before it expires; a longer delay is cut to the latest possible delivery.
        delay = min(math.ceil(output.delay), lifetime - 1, int(MAX_DELAY.total_seconds()))
        try:
            await queue.send_message(text, visibility_timeout=delay, time_to_live=lifetime)
        except ResourceNotFoundError:
            with suppress(ResourceExistsError):  # Another sender has just created it.
                await queue.create_queue()
            await queue.send_message(text, visibility_timeout=delay, time_to_live=lifetime)

    def _queue(self, name: str) -> QueueClient:
        if self._service is None:
            self._service = self._open()
        if name not in self._queues:
            self._queues[name] = self._service.get_queue_client(name)
        return self._queues[name]

    def _open(self) -> QueueServiceClient:
        # The SDK's default waits 15 s before a repetition, and a minute for a reply.
        patience: dict[str, Any] = {
            "initial_backoff": 1,
            "increment_base": 2,
            "random_jitter_range": 1,
            "retry_total": 2,
            "connection_timeout": 5,
            "read_timeout": 10,
        }
        if "=" in self._account:
            return QueueServiceClient.from_connection_string(self._account, **patience)
        if self._credential is None:
            self._own_credential = default_credential()
        return QueueServiceClient(self._account, self._credential or self._own_credential, **patience)


# Lengths of queues: how many messages wait in a storage account.


Length = int | Literal["absent", "refused", "no answer"]
"""Approximate number of messages in a queue; or the reason why it is unknown."""


async def lengths(account: str, client_id: str | None, names: Iterable[str]) -> AsyncIterator[tuple[str, Length]]:
    """The lengths of queues, by name. The account is a connection string, or the address of the queue service; an address takes
    the client id of a user-assigned identity."""
    credential = None
    if "=" in account:
        service = QueueServiceClient.from_connection_string(account, retry_total=0)
    else:
        credential = default_credential(client_id)
        service = QueueServiceClient(account, credential, retry_total=0)
    try:
        for name in names:
            yield name, await _length(service, name)
    finally:
        await service.close()
        if credential is not None:
            await credential.close()


async def _length(service: QueueServiceClient, name: str) -> Length:
    try:
        return (await service.get_queue_client(name).get_queue_properties()).approximate_message_count or 0
    except ResourceNotFoundError:
        return "absent"
    except HttpResponseError:
        return "refused"
    except AzureError:
        return "no answer"
