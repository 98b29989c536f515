"""Messages of Service Bus, for tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusSender
from azure.servicebus.exceptions import ServiceBusConnectionError

from exactlyonce.transports.service_bus.binding import Content


@pytest.fixture
def collected() -> Iterator[None]:
    """Collects what a test left, within the test."""
    yield
    gc.collect()


def content_of(message: ServiceBusReceivedMessage) -> Content:
    """What a message carries, as the SDK received it."""
    properties = {_text(name): _text(value) for name, value in (message.application_properties or {}).items()}
    return Content(b"".join(message.body), message.content_type, properties)


@contextmanager
def without_replies() -> Iterator[None]:
    """Every message arrives, and the sender hears that the connection broke."""
    send = ServiceBusSender.send_messages

    async def deaf(self: ServiceBusSender, message: Any, **options: Any) -> None:
        await send(self, message, **options)
        raise ServiceBusConnectionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServiceBusSender, "send_messages", deaf)
        yield


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
