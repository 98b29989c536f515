"""Documents near the limit, and a queue that takes one message at a time: on the host, Azurite and the local Cosmos."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import azure.functions as func
import pytest
from azure.cosmos.aio import CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from exactlyonce import Context, Destination, Entity, Outbox, message
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from exactlyonce.records.outbox import Output
from exactlyonce.transports.storage_queue import StorageQueueTransport
from function_host.azurite import Azurite, azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import Passed, hosted

pytestmark = pytest.mark.acceptance

aiohttp_warns = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
"""Of a body of more than a megabyte, which the SDK gives it in one piece."""

LARGE, TOO_LARGE = 1_400_000, 2_200_000
DEQUEUES = 3
MESSAGES = 64
AT_ONCE = 24
"""Messages of a queue that a host has in hand: a batch of 16, and the next one once half of it is done."""


@message("album.paste")
@dataclass
class Paste:
    album: str
    size: int


@message("album.turn")
@dataclass
class Turn:
    album: str


@message("album.turned")
@dataclass
class Turned:
    page: int


@dataclass
class Album:
    pages: list[str] = field(default_factory=list)
    turned: int = 0


def albums() -> Entity[Album]:
    entity = Entity("album", state=Album, container="albums", strategy=Outbox())

    @entity.handles(Paste, key=lambda given: given.album)
    def paste(state: Album, given: Paste, context: Context) -> Album:
        return Album([*state.pages, "x" * given.size], state.turned)

    @entity.handles(Turn, key=lambda given: given.album)
    def turn(state: Album, given: Turn, context: Context) -> Album:
        context.send("readers", Turned(state.turned + 1))
        return Album(state.pages, state.turned + 1)

    return entity


class Library:
    """Two functions: one turns pages, the other settles what its queue gave up."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, name: str) -> None:
        self.albums = albums()
        self.once = ExactlyOnce(
            [self.albums],
            destinations=[Destination("albums"), Destination("readers")],
            settings=Settings.model_validate(
                {
                    "COSMOS__accountEndpoint": cosmos.endpoint,
                    "COSMOS__accountKey": cosmos.key,
                    "COSMOS__database": name,
                    "EXACTLYONCE__destinations": {"albums": f"{name}-albums", "readers": f"{name}-readers"},
                }
            ),
            storage=StorageConnection(storage.connection_string),
        )
        self.storage, self.name = storage, name
        self.passed = Passed()
        self.app = func.FunctionApp()

        @self.app.queue_trigger(arg_name="message", queue_name=f"{name}-albums", connection="AzureWebJobsStorage")
        async def process(message: func.QueueMessage) -> None:
            await self.once.process(message, self.albums)

        @self.app.queue_trigger(
            arg_name="message", queue_name=f"{name}-albums-poison", connection="AzureWebJobsStorage"
        )
        async def settle(message: func.QueueMessage) -> None:
            await self.once.settle(message, self.albums, queue="albums")

    async def send(self, message: Any, id: str, copies: int = 1) -> None:
        for _ in range(copies):
            await self.once.send("albums", message, message_id=id)

    async def read(self, album: str) -> Album:
        return await self.once.read(self.albums, album) or Album()

    async def readers(self) -> int:
        """How many messages wait for readers."""
        async with QueueServiceClient.from_connection_string(self.storage.connection_string) as queues:
            found = await queues.get_queue_client(f"{self.name}-readers").get_queue_properties()
            return found.approximate_message_count or 0


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite() as running:
        yield running


@pytest.fixture
async def library(storage: Azurite, cosmos: RunningEmulator) -> AsyncIterator[Library]:
    library = Library(storage, cosmos, f"load-{uuid4().hex[:12]}")
    async with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        database = await client.create_database(library.name)
        await database.create_container("albums", PartitionKey("/id"))
        await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
    async with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
        for suffix in ("albums", "albums-poison", "readers"):
            await queues.create_queue(f"{library.name}-{suffix}")
    async with hosted(library.app, storage, library.passed, DEQUEUES):
        yield library
    await library.once.close()


@aiohttp_warns
async def test_an_entity_of_more_than_a_megabyte_counts_each_message_once(library: Library) -> None:
    await library.send(Paste("a", LARGE), "m-0")
    await library.passed.until(1)
    for number in range(10):
        await library.send(Turn("a"), f"m-{number + 1}", copies=2)
    await library.passed.until(21)
    album = await library.read("a")
    assert (len(album.pages[0]), album.turned) == (LARGE, 10)
    assert await library.readers() == 10


@aiohttp_warns
async def test_a_message_that_would_make_a_document_too_large_is_parked_and_others_go_on(library: Library) -> None:
    await library.send(Paste("a", LARGE), "m-0")
    await library.passed.until(1)
    await library.send(Paste("a", TOO_LARGE - LARGE), "m-1")
    await library.send(Turn("a"), "m-2")
    await library.passed.until(3)  # One of them is that the settler has parked the other.
    album = await library.read("a")
    assert (len(album.pages), album.turned) == (1, 1)
    parked = [item async for page in (await library.once.operator()).parked() for item in page]
    assert [item.message for item in parked] == ["external/m-1"]
    assert re.search(r"EntityTooLarge: the document would have \d+ bytes", parked[0].reason)


async def test_a_queue_that_takes_one_message_at_a_time_holds_the_host_back_and_gets_each_message_once(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = asyncio.Semaphore(0)
    waiting: set[str] = set()
    most = 0
    put = StorageQueueTransport._put

    async def put_when_let_in(self: StorageQueueTransport, queue: QueueClient, output: Output) -> None:
        nonlocal most
        if queue.queue_name.endswith("readers"):
            waiting.add(output.id)
            most = max(most, len(waiting))
            await door.acquire()
            waiting.remove(output.id)
        await put(self, queue, output)

    monkeypatch.setattr(StorageQueueTransport, "_put", put_when_let_in)
    for number in range(MESSAGES):
        await library.send(Turn(f"album-{number}"), f"m-{number}")
    for number in range(MESSAGES):
        door.release()
        await library.passed.until(number + 1)
    turned = [(await library.read(f"album-{number}")).turned for number in range(MESSAGES)]
    assert turned == [1] * MESSAGES
    assert await library.readers() == MESSAGES
    assert most <= AT_ONCE
