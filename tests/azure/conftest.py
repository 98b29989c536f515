"""The accounts of `make test-azure`: as settings name them, under an identity, and left as they were found."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from azure.identity.aio import DefaultAzureCredential

from exactlyonce.effects.library import NoteSearch, ReadBooks, WriteBook
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting import Settings, StorageConnection
from exactlyonce.hosting.config.connections import ServiceBusConnection
from exactlyonce.hosting.config.settings import load_all
from exactlyonce.records.library import BOOKS
from exactlyonce.stores.cosmos.application import verify
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer, book_id
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import ENTITY_TYPES, LEVELS, OWNED
from exactlyonce.values.envelope import EntityRef

CONTAINERS = [
    EntityContainer(type, type, paths, companions=type in (OWNED, LEVELS)) for type, paths in ENTITY_TYPES.items()
]
Environment = tuple[Settings, StorageConnection]

if os.environ.get("EXACTLYONCE_TEST_AZURE") != "1":
    collect_ignore_glob = ["test_*.py"]  # `make test` needs no account.
    settings_of_environment: Environment | None = None
    namespace_of_environment: ServiceBusConnection | None = None
else:
    try:
        found, connections = load_all((), "storage")
        if connections.storage is None or connections.storage.blobs is None:
            raise ConfigurationError(f"Set {found.connection}__blobServiceUri, too: blobs are tested beside queues.")
        settings_of_environment = found, connections.storage
        bus = found.service_bus
        names = {name.removeprefix("AzureWebJobs") for name, value in os.environ.items() if value}
        named = names & {bus, f"{bus}__fullyQualifiedNamespace"}
        namespace_of_environment = ServiceBusConnection.load(bus) if named else None
    except ConfigurationError as wrong:
        raise pytest.UsageError(f"`make test-azure` needs accounts (CONTRIBUTING.md says which). {wrong}") from None


@pytest.fixture(scope="session")
def environment() -> Environment:
    assert settings_of_environment is not None
    return settings_of_environment


@pytest.fixture(scope="session")
def namespace() -> ServiceBusConnection:
    """Of Service Bus, which not everybody has."""
    if namespace_of_environment is None:
        pytest.skip("No setting names a namespace of Service Bus: CONTRIBUTING.md says which does.")
    return namespace_of_environment


@pytest.fixture
async def credential(environment: Environment) -> AsyncIterator[DefaultAzureCredential | None]:
    """Of the storage account; None where a connection string brings its own."""
    if "=" in environment[1].account:
        yield None
        return
    async with DefaultAzureCredential(managed_identity_client_id=environment[1].client_id) as found:
        yield found


@pytest.fixture
async def connection(environment: Environment) -> AsyncIterator[CosmosConnection]:
    """The database, which holds the containers of the contract."""
    settings, _ = environment
    key = settings.account_key.get_secret_value() if settings.account_key else None
    connection = CosmosConnection(settings.account_endpoint, settings.database, key=key, client_id=settings.client_id)
    try:
        await verify(await connection.client(), settings.database, CONTAINERS, settings.library_container)
        yield connection
    finally:
        await connection.close()


class Tidy:
    """A store that notes the entities it is asked about, and books, so that what was written about them can be removed."""

    def __init__(self, store: CosmosStore) -> None:
        self._store = store
        self.entities: set[EntityRef] = set()
        self.books: set[str] = set()

    async def perform(self, effect: Any) -> Any:
        match effect:
            case WriteBook(book) | NoteSearch(book):
                self.books.add(book.id)
            case ReadBooks():
                pass
            case _:
                self.entities.add(effect.entity)
        return await self._store.perform(effect)


@pytest.fixture
async def store(environment: Environment, connection: CosmosConnection) -> AsyncIterator[AsyncStore]:
    library = environment[0].library_container
    tidy = Tidy(CosmosStore(connection, CONTAINERS, library))
    yield tidy
    for entity in tidy.entities:
        await _remove(await connection.container(library), [entity.key], entity)
        if len(entity.partition) == len(ENTITY_TYPES[entity.type]):
            await _remove(await connection.container(entity.type), list(entity.partition), entity)
    for book in tidy.books:
        with suppress(CosmosResourceNotFoundError):
            await (await connection.container(library)).delete_item(book_id(book), BOOKS)


async def _remove(container: ContainerProxy, partition: list[Any], entity: EntityRef) -> None:
    """Delete the documents of an entity from a partition: its own, and the library's about it."""
    key = partition[0] if len(partition) == 1 else partition
    found = container.query_items(
        "SELECT VALUE c.id FROM c WHERE c.id = @id OR c.entity = @key OR c.pk = @key",
        parameters=[{"name": "@id", "value": entity.id}, {"name": "@key", "value": entity.key}],
        partition_key=key,
    )
    for id in [str(item) async for item in found]:
        with suppress(CosmosResourceNotFoundError):  # It had a time to live.
            await container.delete_item(id, key)
