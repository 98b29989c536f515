"""The sample app on Service Bus, as it is deployed: the same shots, the same board, the same poison."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from demo.stack import ROOT, create_containers
from function_host import HostOptions, Point, function_host, load_host_json
from local_cosmos.inprocess import RunningEmulator
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology
from tests.acceptance.hosting import SECONDS, Passed

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.asyncio(loop_scope="module"),
    # The SDK drops a connection that ended without closing it.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SHAPES = [
    pytest.param(shape, id=f"sessions {shape[0]}, batches {shape[1]}") for shape in product(("on", "off"), repeat=2)
]


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Sessions, and batches."""
    given: tuple[str, str] = request.param
    return given


@pytest.fixture(scope="module")
def bus(shape: tuple[str, str]) -> Iterator[RunningEndpoint]:
    triggered = [
        Queue(name, requires_session=shape[0] == "on", max_delivery_count=2)
        for name in ("shooting-range", "leader-board")
    ]
    with endpoint(Topology(queues=(*triggered, Queue("audience")))) as running:
        yield running


@pytest.fixture(scope="module")
def function_app(bus: RunningEndpoint, cosmos: RunningEmulator, shape: tuple[str, str]) -> Iterator[ModuleType]:
    """The module, imported as the worker does. It needs no storage account."""
    database = f"sample-{uuid4().hex}"
    create_containers(cosmos, database)
    settings = {
        "EXACTLYONCE__transport": "servicebus",
        "SERVICEBUS_SESSIONS": shape[0],
        "SERVICEBUS_BATCH": shape[1],
        "ServiceBus": bus.connection_string,
        "COSMOS__accountEndpoint": cosmos.endpoint,
        "COSMOS__accountKey": cosmos.key,
        "COSMOS__database": database,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AzureWebJobsStorage", raising=False)
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.delitem(sys.modules, "demo.app.function_app", raising=False)
        yield importlib.import_module("demo.app.function_app")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(function_app: ModuleType, bus: RunningEndpoint) -> AsyncIterator[tuple[aiohttp.ClientSession, Passed]]:
    """The app on a host, which serves all tests of its shape."""
    passed = Passed()
    options = HostOptions(checkpoint=passed)
    host_json = load_host_json(ROOT / "host.json")
    settings = {"ServiceBus": bus.connection_string}
    async with (
        function_host(function_app.app, settings, host_json=host_json, options=options) as host,
        aiohttp.ClientSession(host.http) as session,
    ):
        yield session, passed
    await function_app.once.close()
    gc.collect()


async def test_a_shot_is_counted_once_however_often_it_is_fired(api: tuple[aiohttp.ClientSession, Passed]) -> None:
    session, passed = api
    before = passed.points[Point.HANDLED]
    for _ in range(2):
        reply = await session.post("/api/games/g-1/shots", json={"position": 0}, headers={"Idempotency-Key": "k-1"})
        assert reply.status == 201
    await passed.until(before + 1)  # One outcome; a copy would have no second outcome to count.
    score = await session.get("/api/games/g-1")
    assert await score.json() == {"hits": 1, "misses": 0, "streak": 1, "best": 1}


async def test_an_unreadable_message_is_parked_and_leaves_its_queue(
    api: tuple[aiohttp.ClientSession, Passed], function_app: ModuleType, bus: RunningEndpoint
) -> None:
    async with (
        ServiceBusClient.from_connection_string(bus.connection_string) as client,
        client.get_queue_sender("shooting-range") as sender,
    ):
        await sender.send_messages(ServiceBusMessage("no envelope", message_id="m-1", session_id="g-1"))
    operator = await function_app.once.operator()
    async with asyncio.timeout(SECONDS):
        while not (parked := [item async for page in operator.parked() for item in page]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert len(parked) == 1
    for queue in ("shooting-range", "shooting-range/$DeadLetterQueue"):
        async with asyncio.timeout(SECONDS):
            while (counts := bus.counts(queue)).active + counts.locked:  # noqa: ASYNC110 - a broker notifies nobody
                await asyncio.sleep(0.05)
