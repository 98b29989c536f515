"""Messages too large for their queue, and blobs that handlers write: on the function host, Azurite and the local Cosmos."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import azure.functions as func
import pytest
from azure.cosmos.aio import CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.blob.aio import BlobClient, ContainerClient
from azure.storage.queue.aio import QueueServiceClient

from exactlyonce import ConfigurationError, Context, Destination, Entity, Outbox, message
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import WriteOnce
from exactlyonce.hosting import ExactlyOnce, Settings, StorageConnection
from exactlyonce.protocols.steps.clean import CleanedBlobs, blob_candidates, clean_blobs
from function_host.azurite import ACCOUNT_KEY, Azurite, azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import Passed, hosted

pytestmark = pytest.mark.acceptance

LARGE = 300_000


@message("mail.write")
@dataclass
class Write:
    desk: str
    size: int


@message("mail.letter")
@dataclass
class Letter:
    text: str
    notes: str = ""


@dataclass
class Desk:
    written: int = 0


@dataclass
class Shelf:
    letters: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def digest(text: str) -> str:
    return f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()}"


def text_of(size: int) -> str:
    return ("Ä" + "x" * 9) * (size // 10)


def desks() -> Entity[Desk]:
    entity = Entity("desk", state=Desk, container="desks", strategy=Outbox())

    @entity.handles(Write, key=lambda given: given.desk)
    def write(state: Desk, given: Write, context: Context) -> Desk:
        notes = context.write_once("notes.txt", f"{given.size} bytes", content_type="text/plain")
        context.send("post", Letter(text_of(given.size), notes))
        return Desk(state.written + 1)

    return entity


def shelves() -> Entity[Shelf]:
    entity = Entity("shelf", state=Shelf, container="shelves", strategy=Outbox())

    @entity.handles(Letter, key=lambda _: "only")
    def keep(state: Shelf, given: Letter, context: Context) -> Shelf:
        return Shelf([*state.letters, digest(given.text)], [*state.notes, given.notes])

    return entity


class Crash(Exception):
    """The end of a process, right after a request was answered."""


class PostOffice:
    """Two functions: one writes letters, the other puts them on a shelf. A crash is followed by another process."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, name: str) -> None:
        self.storage, self.name = storage, name
        self.desks, self.shelves = desks(), shelves()
        self.settings = Settings.model_validate(
            {
                "COSMOS__accountEndpoint": cosmos.endpoint,
                "COSMOS__accountKey": cosmos.key,
                "COSMOS__database": name,
                "EXACTLYONCE__destinations": {"post": f"{name}-post", "desks": f"{name}-desks"},
                "EXACTLYONCE__blobContainer": name,
            }
        )
        self.crashes: list[type[Effect[Any]]] = []
        self.ended: list[ExactlyOnce] = []
        self.once = self.process()
        self.passed = Passed()
        self.app = func.FunctionApp()

        @self.app.queue_trigger(arg_name="message", queue_name=f"{name}-desks", connection="AzureWebJobsStorage")
        async def write(message: func.QueueMessage) -> None:
            await self.once.process(message, self.desks)

        @self.app.queue_trigger(arg_name="message", queue_name=f"{name}-post", connection="AzureWebJobsStorage")
        async def deliver(message: func.QueueMessage) -> None:
            await self.once.process(message, self.shelves)

    def process(self) -> ExactlyOnce:
        """A process, which ends after the first request of the kind that is first among `crashes`."""
        once = ExactlyOnce(
            [self.desks, self.shelves],
            destinations=[Destination("post"), Destination("desks")],
            settings=self.settings,
            storage=StorageConnection(self.storage.connection_string),
        )
        perform = once._parts.driver._performed

        async def performed(effect: Effect[Any]) -> Any:
            reply = await perform(effect)
            if self.crashes and isinstance(effect, self.crashes[0]):
                self.crashes.pop(0)
                self.ended.append(self.once)
                self.once = self.process()
                raise Crash
            return reply

        once._parts.driver._performed = performed  # type: ignore[method-assign]
        return once

    async def shelf(self) -> Shelf:
        return await self.once.read(self.shelves, "only") or Shelf()

    async def close(self) -> None:
        for once in (*self.ended, self.once):
            await once.close()


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite(blob=True) as running:
        yield running


@pytest.fixture
async def office(storage: Azurite, cosmos: RunningEmulator) -> AsyncIterator[PostOffice]:
    office = PostOffice(storage, cosmos, f"post-{uuid4().hex[:12]}")
    async with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        database = await client.create_database(office.name)
        for entities in ("desks", "shelves"):
            await database.create_container(entities, PartitionKey("/id"))
        await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
    async with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
        for suffix in ("desks", "post"):
            await queues.create_queue(f"{office.name}-{suffix}")
    async with ContainerClient.from_connection_string(storage.connection_string, office.name) as container:
        await container.create_container()
    async with hosted(office.app, storage, office.passed, 20):
        yield office
    await office.close()


async def names(office: PostOffice) -> list[str]:
    assert office.once._parts.resources.blobs is not None
    return [blob.name async for blob in office.once._parts.resources.blobs.list_blobs()]


async def test_a_large_message_arrives_whole_and_once_after_crashes(office: PostOffice) -> None:
    office.crashes = [WriteOnce, WriteOnce, SaveEntity, Publish, SaveEntity]
    for _ in range(2):
        await office.once.send("desks", Write("d", LARGE), message_id="m-1")
    await office.passed.until(
        4
    )  # Both copies of the order, and both copies of the letter: one was published before a crash.
    assert office.crashes == []
    assert (await office.shelf()).letters == [digest(text_of(LARGE))]
    desk = await office.once.read(office.desks, "d")
    assert desk == Desk(1)


async def test_a_blob_that_a_handler_wrote_is_read_at_the_address_in_the_message(office: PostOffice) -> None:
    await office.once.send("desks", Write("d", 1_000), message_id="m-1")
    await office.passed.until(2)
    (address,) = (await office.shelf()).notes
    async with BlobClient.from_blob_url(address, credential=ACCOUNT_KEY) as blob:
        found = await blob.download_blob()
        assert await found.readall() == b"1000 bytes"
        assert found.properties.content_settings.content_type == "text/plain"


async def clean(office: PostOffice) -> CleanedBlobs:
    """Clean up as a job would, but for the horizon."""
    once, ref = office.once, office.desks.ref("d")
    assert once._parts.resources.blobs is not None
    listed = [blob async for blob in once._parts.resources.blobs.list_blobs()]
    found = blob_candidates(listed, horizon=timedelta(seconds=-1), retention=timedelta(days=1))
    absent = office.desks.shape.tombstone(ref)
    steps = once._parts.retrying.process(
        ref, lambda memory: clean_blobs(ref, found[ref.key], absent, memory, office.desks.strategy), Memory()
    )
    cleaned: CleanedBlobs = await once._parts.driver.run(steps)
    return cleaned


async def test_clean_up_takes_what_lost_attempts_wrote_and_nothing_else(office: PostOffice) -> None:
    office.crashes = [WriteOnce, WriteOnce]
    for number in range(3):
        await office.once.send("desks", Write("d", LARGE), message_id=f"m-{number}")
    await office.passed.until(6)
    before = await names(office)
    assert len(before) >= 2 * 5
    cleaned = await clean(office)
    after = await names(office)
    assert sorted(cleaned.names) == sorted(set(before) - set(after))
    assert Counter(name.startswith("_messages/desk/d/") for name in after) == {True: 3, False: 3}
    for address in (await office.shelf()).notes:
        async with BlobClient.from_blob_url(address, credential=ACCOUNT_KEY) as blob:
            assert await blob.exists()


async def test_a_large_message_from_outside_is_sent_once_however_often_it_is_sent(office: PostOffice) -> None:
    for _ in range(3):
        await office.once.send("post", Letter(text_of(LARGE)), message_id="m-1")
    await office.passed.until(3)
    assert (await office.shelf()).letters == [digest(text_of(LARGE))]
    assert len(await names(office)) == 1


async def test_a_container_that_is_not_there_is_reported_at_the_first_use(office: PostOffice, storage: Azurite) -> None:
    async with ContainerClient.from_connection_string(storage.connection_string, office.name) as container:
        await container.delete_container()
    with pytest.raises(ConfigurationError, match=f"no blob container .*{office.name}: create it"):
        await office.once.read(office.desks, "d")
