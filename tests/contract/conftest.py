"""A local Cosmos DB for the tests in this directory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import DatabaseProxy

from exactlyonce.effects.effect import Busy, Effect
from exactlyonce.hosting import Settings
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, LIBRARY_PATH, EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import ENTITY_TYPES, PLAIN, UNIQUE_KEYS
from exactlyonce.values.envelope import EntityRef
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.faults import FaultRule
from tests.contract.cosmos_requests import REQUESTS
from tests.contract.starting import SETTINGS

Answer = TypeVar("Answer")
Fault = Callable[..., None]
Elsewhere = Callable[[], CosmosStore]
ENTITY_CONTAINERS = [EntityContainer(type, type, paths) for type, paths in ENTITY_TYPES.items()]


@pytest.fixture(scope="session")
def account() -> Iterator[RunningEmulator]:
    with running_emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(account: RunningEmulator) -> Iterator[RunningEmulator]:
    """The account, without faults before and after."""
    account.clear_faults()
    yield account
    account.clear_faults()
    account.set_latency(0)


@pytest.fixture
async def connection(emulator: RunningEmulator) -> AsyncIterator[CosmosConnection]:
    """A connection to a fresh database with the containers of the store contract."""
    connection = CosmosConnection(emulator.endpoint, f"db-{uuid4().hex}", key=emulator.key)
    await create_containers(await (await connection.client()).create_database(connection.database))
    for container in (*ENTITY_TYPES, LIBRARY_CONTAINER):
        await connection.container(container)  # What opens it is no part of what tests break or count.
    yield connection
    await connection.close()


@pytest.fixture
def store(connection: CosmosConnection) -> CosmosStore:
    return CosmosStore(connection, ENTITY_CONTAINERS)


@pytest.fixture
async def elsewhere(emulator: RunningEmulator, connection: CosmosConnection) -> AsyncIterator[Elsewhere]:
    """Makes the same store in a process that is new each time: the SDK adds the tokens that its own client has seen, those of
    refusals included."""
    opened: list[CosmosConnection] = []

    def make() -> CosmosStore:
        opened.append(CosmosConnection(emulator.endpoint, connection.database, key=emulator.key))
        return CosmosStore(opened[-1], ENTITY_CONTAINERS)

    yield make
    for item in opened:
        await item.close()


@pytest.fixture
def entity() -> EntityRef:
    id = uuid4().hex
    return EntityRef(PLAIN, (id,), id)


@pytest.fixture
def fault(emulator: RunningEmulator, connection: CosmosConnection) -> Fault:
    """Arms a rule for the test's database."""

    def arm(**rule: Any) -> None:
        emulator.add_fault(FaultRule(connection.database, **rule))

    return arm


@dataclass(frozen=True)
class Place:
    """A store on the account, an entity of its own, and the means to disturb and to watch their requests."""

    store: CosmosStore
    entity: EntityRef
    connection: CosmosConnection
    emulator: RunningEmulator
    fault: Fault
    elsewhere: Elsewhere

    def perform(self, effect: Effect[Answer]) -> Coroutine[Any, Any, Answer | Busy]:
        return self.store.perform(effect)

    def ask(self, name: str) -> Awaitable[Any]:
        """Make a request of `REQUESTS`."""
        return REQUESTS[name](self.store, self.entity)


@pytest.fixture
def at(
    *,
    store: CosmosStore,
    entity: EntityRef,
    connection: CosmosConnection,
    emulator: RunningEmulator,
    fault: Fault,
    elsewhere: Elsewhere,
) -> Place:
    return Place(store, entity, connection, emulator, fault, elsewhere)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Settings as they have to be, and no others."""
    for name in (*(str(field.validation_alias) for field in Settings.model_fields.values()), "AzureWebJobsStorage"):
        monkeypatch.delenv(name, raising=False)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


async def create_containers(database: DatabaseProxy) -> None:
    """What infrastructure code creates in production."""
    for entity in ENTITY_CONTAINERS:
        keys = [{"paths": list(paths)} for paths in UNIQUE_KEYS.get(entity.type, ())]
        unique: Any = {"uniqueKeys": keys} if keys else None
        await database.create_container(
            entity.container, partition_key=partition_key(entity.paths), unique_key_policy=unique
        )
    await database.create_container(LIBRARY_CONTAINER, partition_key=partition_key((LIBRARY_PATH,)), default_ttl=-1)


def partition_key(paths: tuple[str, ...]) -> PartitionKey:
    """One path makes a plain key, several a hierarchical one."""
    return PartitionKey(path=paths[0]) if len(paths) == 1 else PartitionKey(path=list(paths), kind="MultiHash")
