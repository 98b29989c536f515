"""A Service Bus whose queues are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageNotFoundError, MessageSizeExceededError, ServiceBusError

from exactlyonce.records.outbox import RECEIVER, Output
from exactlyonce.transports.service_bus.sender import ServiceBusTransport
from exactlyonce.values.frozen_json import Json

SECRET = "what only the receiver may read"
CONNECTION = "Endpoint=sb://name.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey=c2VjcmV0"
NOT_THERE = MessageNotFoundError()
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


class FakeBatch:
    def __init__(self, most: int, max_size_in_bytes: int) -> None:
        self.messages: list[ServiceBusMessage] = []
        self.max_size_in_bytes = max_size_in_bytes
        self._most = most

    def add_message(self, message: ServiceBusMessage) -> None:
        if len(self.messages) == self._most:
            raise MessageSizeExceededError(message="?")
        self.messages.append(message)


class FakeClient:
    """Its only queue: raises the given errors, send by send, then accepts everything; each call is a list of messages.

    Args:
        errors: of the first sends.
        most: messages of one batch.
        room: bytes that the queue lets a message have.
        answer: to a request to cancel what is not there.
    """

    def __init__(
        self,
        *errors: BaseException | None,
        most: int = 1_000,
        room: int = 256 * 1024,
        answer: Exception | None = NOT_THERE,
    ) -> None:
        self.errors, self.most, self.room, self.answer = list(errors), most, room, answer
        self.sends: list[list[ServiceBusMessage]] = []
        self.refuses: Callable[[Sequence[ServiceBusMessage]], bool] = lambda _: False
        self.ends_links = False
        """Whether a refusal ends its link, which then refuses whatever is sent by it."""
        self.dead = False
        self.opened = self.closed = 0
        self.hanging = False
        self.called = asyncio.Event()

    def get_queue_sender(self, _: str) -> FakeClient:
        self.opened += 1
        self.dead = False
        return self

    async def create_message_batch(self) -> FakeBatch:
        return FakeBatch(self.most, self.room)

    async def send_messages(self, given: FakeBatch | ServiceBusMessage) -> None:
        messages = given.messages if isinstance(given, FakeBatch) else [given]
        self.called.set()
        await (asyncio.Event().wait() if self.hanging else asyncio.sleep(0))
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        if self.dead or self.refuses(messages):
            self.dead = self.ends_links
            raise ServiceBusError(SECRET)
        if messages:
            self.sends.append(messages)

    async def cancel_scheduled_messages(self, _: int) -> None:
        if self.answer is not None:
            raise self.answer

    async def close(self) -> None:
        self.closed += 1

    @property
    def ids(self) -> list[list[str | None]]:
        return [[message.message_id for message in messages] for messages in self.sends]


def sending(patch: pytest.MonkeyPatch, client: FakeClient, **settings: Any) -> ServiceBusTransport:
    """A transport whose every queue is this one."""
    transport = ServiceBusTransport(CONNECTION, now=lambda: NOW, **settings)
    patch.setattr(transport, "_open", lambda: client)
    return transport


def output(id: str = "o-1", *, delay: float = 0.0, session: str | None = None) -> Output:
    """One output."""
    attributes = {} if session is None else {RECEIVER: session}
    return Output(id, "receipts", Json.of({"id": id, **attributes, "data": SECRET}), delay)
