"""The store in Cosmos DB does what every store has to do.

It runs on the local Cosmos DB, or, with EXACTLYONCE_TEST_AZURE=1, on the account COSMOS__accountEndpoint: in its database
COSMOS__database (default `exactlyonce-contract`), which has to hold the containers already, since data-plane roles cannot
create any: `contract-plain` (/id), `contract-owned` (/owner), `contract-levels` (/tenant, /place/region, /number) and
`exactlyonce` (/pk, defaultTtl -1).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from exactlyonce.identity import EntityRef
from exactlyonce.stores.cosmos import LIBRARY_CONTAINER, CosmosStore
from exactlyonce.stores.cosmos_client import CosmosConnection
from exactlyonce.stores.cosmos_layout import processed_id
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.store_contract import StoreContract
from tests.contract.conftest import ENTITY_CONTAINERS

IN_AZURE = os.environ.get("EXACTLYONCE_TEST_AZURE") == "1"


# The SDK hands bodies to aiohttp as bytes; above 1 MiB aiohttp would rather have a stream.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


class CosmosContract(StoreContract):
    @pytest.fixture(autouse=True)
    def _reading_past_the_store(self, connection: CosmosConnection) -> None:
        self._connection = connection

    @pytest.fixture
    def store(self, connection: CosmosConnection) -> AsyncStore:
        return CosmosStore(connection, ENTITY_CONTAINERS)

    async def etag_of_record(self, store: AsyncStore, entity: EntityRef, message: str) -> str:
        container = await self._connection.container(LIBRARY_CONTAINER)
        record = await container.read_item(processed_id(message), entity.key)
        return str(record["_etag"])


if IN_AZURE:

    class TestCosmosStoreInAzure(CosmosContract):
        @pytest.fixture
        async def connection(self) -> AsyncIterator[CosmosConnection]:
            endpoint = os.environ["COSMOS__accountEndpoint"]  # noqa: SIM112  # The host's own name for it.
            database = os.environ.get("COSMOS__database", "exactlyonce-contract")  # noqa: SIM112
            connection = CosmosConnection(endpoint, database)
            yield connection
            await connection.close()

else:

    class TestCosmosStore(CosmosContract):
        """On the local Cosmos DB."""
