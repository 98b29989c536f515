"""The store and the listings do on a real account what every store and every listing has to do."""

from __future__ import annotations

import pytest

from exactlyonce.records.library import BOOKS
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.listing import CosmosListing
from exactlyonce.stores.cosmos.partition import book_id, request_id
from exactlyonce.stores.port import AsyncListing, AsyncStore
from exactlyonce.testing.contracts.listing import ListingContract
from exactlyonce.testing.contracts.store import StoreContract
from exactlyonce.values.envelope import EntityRef
from tests.azure.conftest import CONTAINERS, Environment

# The SDK hands bodies to aiohttp as bytes; above 1 MiB aiohttp would rather have a stream.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


class TestCosmosStoreInAzure(StoreContract):
    """Entities, documents of the library, companions, streams."""

    @pytest.fixture
    def store(self, store: AsyncStore) -> AsyncStore:
        return store

    @pytest.fixture(autouse=True)
    def _reading_past_the_store(self, connection: CosmosConnection, environment: Environment) -> None:
        self._connection, self._library = connection, environment[0].library_container

    async def etag_of_book(self, store: AsyncStore, book: str) -> str:
        container = await self._connection.container(self._library)
        document = await container.read_item(book_id(book), BOOKS)
        return str(document["_etag"])

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        container = await self._connection.container(self._library)
        document = await container.read_item(request_id(request), entity.key)
        return str(document["_etag"])


class TestCosmosListingInAzure(ListingContract):
    @pytest.fixture
    def store(self, store: AsyncStore) -> AsyncStore:
        return store

    @pytest.fixture
    def listing(self, connection: CosmosConnection, environment: Environment, store: AsyncStore) -> AsyncListing:
        return CosmosListing(connection, CONTAINERS, environment[0].library_container)
