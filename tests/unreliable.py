"""Transports whose replies get lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.storage.queue.aio import QueueClient

from exactlyonce.transports.storage_queue import StorageQueueTransport


@contextmanager
def without_replies(transport: StorageQueueTransport) -> Iterator[None]:
    """Every message arrives, and the sender hears that the connection broke."""
    queue = transport._queue

    class Deaf:
        def __init__(self, client: QueueClient) -> None:
            self._client = client

        async def send_message(self, text: str, **options: Any) -> None:
            await self._client.send_message(text, **options)
            raise ServiceResponseError("cut")

        async def create_queue(self) -> None:
            await self._client.create_queue()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "_queue", lambda name: Deaf(queue(name)))
        yield
