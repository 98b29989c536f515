"""One Azurite for all tests of the host; each test has queues of its own."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from azure.storage.queue.aio import QueueClient

from function_host.azurite import Azurite, azurite


@pytest.fixture(scope="session")
def storage() -> Iterator[Azurite]:
    """A running Azurite."""
    with azurite() as running:
        yield running


@pytest.fixture
async def queue(storage: Azurite) -> AsyncIterator[QueueClient]:
    """A new queue with a unique name."""
    async with _client(storage, f"q-{uuid.uuid4().hex}") as client:
        await client.create_queue()
        yield client


@pytest.fixture
async def poison(storage: Azurite, queue: QueueClient) -> AsyncIterator[QueueClient]:
    """The poison queue of `queue`, which does not exist yet."""
    async with _client(storage, f"{queue.queue_name}-poison") as client:
        yield client


def _client(storage: Azurite, name: str) -> QueueClient:
    return QueueClient.from_connection_string(storage.connection_string, name)
