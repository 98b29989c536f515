"""Fixtures: one endpoint per test module, and the real client in both its forms."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from local_service_bus.testing import endpoint as running_endpoint
from local_service_bus.topology import CorrelationFilter, Queue, Subscription, Topic, Topology
from local_service_bus_tests.sdk import COPIES, KINDS, Sdk

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

EVENTS = Topic(
    "events",
    (
        Subscription("all"),
        Subscription(
            "red", filters=(CorrelationFilter(subject="red", properties={"size": 1}), CorrelationFilter(to="red"))
        ),
        Subscription("grouped", requires_session=True),
    ),
    duplicate_window=60.0,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The client leaves sockets and transports behind that were cut off."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def swept() -> Iterator[None]:
    """They are not to be found in other tests."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    """An endpoint with many queues."""
    queues = tuple(
        Queue(f"{kind}-{number}", **settings) for kind, settings in KINDS.items() for number in range(COPIES[kind])
    )
    with running_endpoint(Topology(queues, (EVENTS,))) as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test inherits another's trouble."""
    yield
    if "endpoint" in request.fixturenames:
        request.getfixturevalue("endpoint").clear_faults()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sync", "async"])
async def sdk(request: pytest.FixtureRequest, endpoint: RunningEndpoint) -> AsyncIterator[Sdk]:
    """The unmodified SDK, as an application would configure it."""
    opened = Sdk(endpoint.connection_string, is_sync=request.param == "sync")
    await opened.prepare(getattr(request.module, "PREPARED", {}))
    yield opened
    await opened.close()
