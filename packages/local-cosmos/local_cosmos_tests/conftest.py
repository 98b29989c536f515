"""Fixtures: one emulator per test module, one database per test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.clock import Clock
from local_cosmos_tests.raw import RawClient

_numbers = count(1)


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    """An emulator whose clock moves only by a call of a test."""
    with running_emulator(clock=Clock(lambda: 1_800_000_000.0)) as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults(emulator: RunningEmulator) -> Iterator[None]:
    """No test inherits another's trouble."""
    yield
    emulator.clear_faults()


@pytest.fixture
async def client(emulator: RunningEmulator) -> AsyncIterator[CosmosClient]:
    """The real SDK, as an application would configure it."""
    async with CosmosClient(emulator.endpoint, emulator.key) as sdk:
        yield sdk


@pytest.fixture
async def database(client: CosmosClient) -> DatabaseProxy:
    """A database of the test's own."""
    return await client.create_database(f"test-{next(_numbers)}")


@pytest.fixture
async def container(database: DatabaseProxy) -> ContainerProxy:
    """A container with one physical partition and partition key `/pk`."""
    return await database.create_container("items", PartitionKey("/pk"), default_ttl=-1)


@pytest.fixture
def raw(emulator: RunningEmulator) -> RawClient:
    """Plain signed HTTP, one connection per request, no retries."""
    return RawClient(emulator.endpoint, emulator.key)
