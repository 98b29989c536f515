"""A whole application in this process: the function host, Azurite's queues, the local Cosmos."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import uuid4

import azure.functions as func
import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from exactlyonce import Colocated, Destination, Outbox, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.hosting import ExactlyOnce, PlainJson, Settings, StorageConnection
from exactlyonce.records.companions import KIND
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator, running_emulator
from tests.acceptance.hosting import Passed, hosted
from tests.samples import Account, Deposit, Deposited, accounts

DEQUEUES = 2
STRATEGIES: dict[str, Strategy] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
}
"""Of entities whose messages come as they come."""


def every_strategy() -> list[Any]:
    """Values for the parameter `strategy`."""
    return [pytest.param(strategy, id=name) for name, strategy in STRATEGIES.items()]


@pytest.fixture(scope="session")
def storage() -> Iterator[Azurite]:
    with azurite() as running:
        yield running


@pytest.fixture(scope="session")
def cosmos() -> Iterator[RunningEmulator]:
    with running_emulator() as emulator:
        yield emulator


@pytest.fixture
def own_cosmos() -> Iterator[RunningEmulator]:
    """A store whose time only one test moves."""
    with running_emulator() as emulator:
        yield emulator


class Bank:
    """An app with one queue of envelopes and one of plain JSON, and everything there is to look at.

    Attributes:
        destinations: each with the end of its queue's name.
        passed: what the host did with messages.
    """

    destinations: ClassVar = {Destination("receipts", receives=(Deposited,)): "-receipts"}

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, name: str, strategy: Strategy) -> None:
        self.storage, self.cosmos, self.name = storage, cosmos, name
        self.entity = accounts(strategy)
        self.once = self._composed()
        self.passed = Passed()
        self.app = func.FunctionApp()

        @self.app.queue_trigger(arg_name="message", queue_name=name, connection="AzureWebJobsStorage")
        async def envelopes(message: func.QueueMessage) -> None:
            await self.once.process(message, self.entity)

        @self.app.queue_trigger(arg_name="message", queue_name=f"{name}-plain", connection="AzureWebJobsStorage")
        async def plain(message: func.QueueMessage) -> None:
            adapter = PlainJson(
                Deposit, "shop", lambda body: str(body["order"]), lambda body: datetime.fromisoformat(body["at"])
            )
            await self.once.process(message, self.entity, adapter=adapter)

    def _composed(self) -> ExactlyOnce:
        return ExactlyOnce(
            [self.entity],
            destinations=list(self.destinations),
            settings=Settings.model_validate(
                {
                    "COSMOS__accountEndpoint": self.cosmos.endpoint,
                    "COSMOS__accountKey": self.cosmos.key,
                    "COSMOS__database": self.name,
                    "EXACTLYONCE__destinations": {
                        item.name: self.name + suffix for item, suffix in self.destinations.items()
                    },
                }
            ),
            storage=StorageConnection(self.storage.connection_string),
        )

    async def redeploy(self, strategy: Strategy) -> None:
        """Go on with another strategy, as the next version of the app would."""
        await self.once.close()
        self.entity = self.entity.using(strategy)
        self.once = self._composed()

    async def put(self, *bodies: bytes, queue: str = "") -> None:
        """Put messages into the app's queue."""
        async with self.queue(queue) as client:
            for body in bodies:
                await client.send_message(body)

    async def contents(self, queue: str) -> list[bytes]:
        """All messages of a queue, which go from sight."""
        async with self.queue(queue) as client:
            return [message.content async for message in client.receive_messages(max_messages=32)]

    def queue(self, suffix: str = "") -> QueueClient:
        return QueueClient.from_connection_string(
            self.storage.connection_string,
            self.name + suffix,
            message_encode_policy=BinaryBase64EncodePolicy(),
            message_decode_policy=BinaryBase64DecodePolicy(),
        )

    async def state(self, account: str) -> Account:
        """The state of an account that is there."""
        found = await self.once.read(self.entity, account)
        assert found is not None
        return found

    def documents(self) -> list[dict[str, Any]]:
        """Every document ever accepted for an account, oldest first; without the library's companions."""
        written = [write.document for write in self.cosmos.history(self.name, "accounts") if write.document]
        return [document for document in written if KIND not in document]


@dataclass
class Plumbing:
    """Direct access to the containers, as somebody who does damage has it."""

    accounts: ContainerProxy


@pytest.fixture
def strategy() -> Strategy:
    """Of the accounts; a test that is to see others names them as a parameter of this name."""
    return Outbox()


@asynccontextmanager
async def opened(bank: Bank, *queues: str) -> AsyncIterator[None]:
    """Run the app, with empty containers, and empty queues with these ends of their names."""
    async with CosmosClient(bank.cosmos.endpoint, bank.cosmos.key) as client:
        database = await client.create_database(bank.name)
        await database.create_container("accounts", PartitionKey("/owner"))
        await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
    for suffix in queues:
        async with bank.queue(suffix) as queue:
            await queue.create_queue()
    async with hosted(bank.app, bank.storage, bank.passed, DEQUEUES):
        yield
    await bank.once.close()


@pytest.fixture
async def bank(storage: Azurite, cosmos: RunningEmulator, strategy: Strategy) -> AsyncIterator[Bank]:
    bank = Bank(storage, cosmos, f"bank-{uuid4().hex[:12]}", strategy)
    async with opened(bank, "", "-plain", "-receipts"):
        yield bank


@pytest.fixture
async def plumbing(bank: Bank) -> AsyncIterator[Plumbing]:
    async with CosmosClient(bank.cosmos.endpoint, bank.cosmos.key) as client:
        yield Plumbing(client.get_database_client(bank.name).get_container_client("accounts"))
