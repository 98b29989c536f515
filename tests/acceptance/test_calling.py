"""A call on the function host: its queue, the wire, and a payment service that loses an answer and goes down."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timezone
from uuid import uuid4

import azure.functions as func
import pytest
from aiohttp import web
from azure.cosmos.aio import CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.queue import BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import Passed, hosted
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, Order, bill, orders

pytestmark = pytest.mark.acceptance


class Payments:
    """A payment service that honours keys, loses its first answer, and does not listen any more then.

    Attributes:
        keys: of the requests, in order.
        charges: for each key how often it was charged.
    """

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.charges: Counter[str] = Counter()
        self._port = 0

    async def open(self) -> str:
        """Listen, always on the same port."""
        serving = asyncio.get_running_loop().create_server(web.Server(self._charge), "127.0.0.1", self._port)
        self._server = await serving
        self._port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self._port}"

    async def close(self) -> None:
        self._server.close()

    async def _charge(self, request: web.BaseRequest) -> web.StreamResponse:
        key = request.headers["Idempotency-Key"]
        self.keys.append(key)
        if key not in self.charges:
            self.charges[key] += 1
            self._server.close()
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"amount": (await request.json())["amount"]}, status=201)


class Shop:
    """An app whose orders call the service."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, address: str) -> None:
        self.storage, self.cosmos, self.name = storage, cosmos, f"shop-{uuid4().hex[:12]}"
        api = replace(PAYMENTS, base=address)
        self.orders = orders(api=api)
        queues = {item: f"{self.name}-{item}" for item in ("orders", "receipts", "payments")}
        settings = {
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": self.name,
            "EXACTLYONCE__destinations": queues,
        }
        self.once = ExactlyOnce(
            [self.orders],
            destinations=(ORDERS, RECEIPTS, api),
            settings=Settings.model_validate(settings),
            storage=StorageConnection(storage.connection_string),
        )
        self.passed = Passed()
        self.app = func.FunctionApp()

        @self.app.queue_trigger(arg_name="message", queue_name=queues["orders"], connection="AzureWebJobsStorage")
        async def process_orders(message: func.QueueMessage) -> None:
            await self.once.process(message, self.orders)

        @self.app.queue_trigger(arg_name="message", queue_name=queues["payments"], connection="AzureWebJobsStorage")
        async def call_payments(message: func.QueueMessage) -> None:
            await self.once.call(message)

    async def create(self) -> None:
        """Create what the app needs."""
        needs = self.once.needs
        async with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            database = await client.create_database(needs.database)
            for name, (path,) in needs.containers.items():
                await database.create_container(name, PartitionKey(path))
            await database.create_container(needs.library_container, PartitionKey("/pk"), default_ttl=-1)
        for name in needs.queues:
            async with self.queue(name) as queue:
                await queue.create_queue()

    def queue(self, name: str) -> QueueClient:
        return QueueClient.from_connection_string(
            self.storage.connection_string, name, message_encode_policy=BinaryBase64EncodePolicy()
        )

    async def put(self) -> None:
        """Put the one message that makes the order call."""
        given = replace(bill("m-1"), time=datetime.now(timezone.utc))
        async with self.queue(f"{self.name}-orders") as queue:
            await queue.send_message(given.to_json().text.encode())


@pytest.fixture
async def payments() -> AsyncIterator[Payments]:
    service = Payments()
    yield service
    await service.close()


async def test_an_answer_is_lost_and_the_service_goes_down_and_an_order_is_charged_once(
    storage: Azurite, cosmos: RunningEmulator, payments: Payments
) -> None:
    shop = Shop(storage, cosmos, await payments.open())
    await shop.create()
    async with hosted(shop.app, storage, shop.passed, dequeues=5):
        await shop.put()
        await shop.passed.until(1)
        await shop.put()
        # The message and its copy; a try whose answer is lost; one that nobody takes.
        await shop.passed.until(4)
        assert await shop.once.read(shop.orders, "a") == Order(bills=1)
        assert len(payments.keys) == 1
        await payments.open()
        # A try that is answered; and the reply.
        await shop.passed.until(6)
        assert await shop.once.read(shop.orders, "a") == Order(bills=1, paid=1)
    await shop.once.close()
    assert list(payments.charges.values()) == [1]
    assert payments.keys == [next(iter(payments.charges))] * 2
    last = [write.document for write in cosmos.history(shop.name, "orders") if write.document][-1]
    assert "calls" not in last["_ledger"]
