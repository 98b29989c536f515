"""For tests that use the endpoint through `azure-servicebus`. Needs pytest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

from local_service_bus.topology import Topology

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint


def require_endpoint() -> None:
    """Skip the test where the endpoint's AMQP library is not installed; fail where `CI` is set."""
    if find_spec("proton") is None:
        message = "The local Service Bus endpoint needs python-qpid-proton, which takes a C compiler."
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@contextmanager
def endpoint(topology: Topology, **given: Any) -> Iterator[RunningEndpoint]:
    """An endpoint with these queues and topics, and a client without pauses.

    Args:
        given: Further arguments of `running_endpoint`.
    """
    require_endpoint()
    inprocess = import_module("local_service_bus.inprocess")  # It needs what may not be there.
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
