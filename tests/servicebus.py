"""The local Service Bus endpoint, for tests that need it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from azure.servicebus import ServiceBusReceivedMessage

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
    with inprocess.running_endpoint(topology, **given) as running:
        yield running


@pytest.fixture
def collected() -> Iterator[None]:
    """Collects what a test left, within the test."""
    yield
    gc.collect()


def content_of(message: ServiceBusReceivedMessage) -> Content:
    """What a message carries, as the SDK received it."""
    properties = {_text(name): _text(value) for name, value in (message.application_properties or {}).items()}
    return Content(b"".join(message.body), message.content_type, properties)


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
