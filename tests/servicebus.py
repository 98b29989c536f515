"""The local Service Bus endpoint, for tests that need it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusSender
from azure.servicebus.exceptions import ServiceBusConnectionError

from devtools.servicebus_endpoint.topology import Topology
from exactlyonce.transports.service_bus_binding import Content

if TYPE_CHECKING:
    from devtools.servicebus_endpoint.inprocess import RunningEndpoint


def require_endpoint() -> None:
    """Skip the test where the endpoint's AMQP library is not installed; fail where everything has to run."""
    if find_spec("proton") is None:
        told = "The local Service Bus endpoint needs python-qpid-proton, which takes a C compiler: `make` says what is missing."
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)


@contextmanager
def endpoint(topology: Topology, **given: Any) -> Iterator[RunningEndpoint]:
    """An endpoint with these queues and topics."""
    require_endpoint()
    inprocess = import_module("devtools.servicebus_endpoint.inprocess")  # It needs what may not be there.
    with inprocess.running_endpoint(topology, **given) as running, eager_client():
        yield running


@contextmanager
def eager_client() -> Iterator[None]:
    """Open and close links without the SDK's pauses: it reads one frame every 50 ms, opening takes eleven, and what keeps a
    link alive looks once a second whether it is closed."""
    with pytest.MonkeyPatch.context() as patch:
        for module, uses in _PAUSING.items():
            patch.setattr(f"azure.servicebus.{module}.{uses}", _Eager(import_module(uses)))
        yield


_PAUSING: Final = {
    "_servicebus_sender": "time",
    "_servicebus_receiver": "time",
    "_pyamqp.client": "time",
    "aio._servicebus_sender_async": "asyncio",
    "aio._servicebus_receiver_async": "asyncio",
    "_pyamqp.aio._client_async": "asyncio",
}
"""Modules of the SDK, and what they pause by."""


class _Eager:
    """A module whose `sleep` is short."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def sleep(self, seconds: float) -> Any:
        return self._module.sleep(min(seconds, 0.01))


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
