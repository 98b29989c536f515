"""The store in Cosmos DB does what every store has to do; on the local one. `tests/azure` asks the same of a real account."""

from __future__ import annotations

import pytest

from exactlyonce.records.library import BOOKS
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, book_id, request_id
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.store import StoreContract
from exactlyonce.values.envelope import EntityRef
from tests.contract.conftest import ENTITY_CONTAINERS

# The SDK hands bodies to aiohttp as bytes; above 1 MiB aiohttp would rather have a stream.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


class TestCosmosStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _reading_past_the_store(self, connection: CosmosConnection) -> None:
        self._connection = connection

    @pytest.fixture
    def store(self, connection: CosmosConnection) -> AsyncStore:
        return CosmosStore(connection, ENTITY_CONTAINERS)

    async def etag_of_book(self, store: AsyncStore, book: str) -> str:
        container = await self._connection.container(LIBRARY_CONTAINER)
        document = await container.read_item(book_id(book), BOOKS)
        return str(document["_etag"])

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        container = await self._connection.container(LIBRARY_CONTAINER)
        document = await container.read_item(request_id(request), entity.key)
        return str(document["_etag"])
