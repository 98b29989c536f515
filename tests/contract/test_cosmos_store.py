"""The store in Cosmos DB does what every store has to do.

It runs on the local Cosmos DB, or, with EXACTLYONCE_TEST_AZURE=1, on the account COSMOS__accountEndpoint: in its database
COSMOS__database (default `exactlyonce-contract`), which has to hold the containers already, since data-plane roles cannot
create any: `contract-plain` (/id), `contract-levels` (/tenant, /place/region, /number) and `exactlyonce` (/pk, defaultTtl -1).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from exactlyonce.stores.cosmos import CosmosStore
from exactlyonce.stores.cosmos_client import CosmosConnection
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.store_contract import StoreContract
from tests.contract.conftest import ENTITY_CONTAINERS

IN_AZURE = os.environ.get("EXACTLYONCE_TEST_AZURE") == "1"


# The SDK hands bodies to aiohttp as bytes; above 1 MiB aiohttp would rather have a stream.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

if IN_AZURE:

    class TestCosmosStoreInAzure(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[AsyncStore]:
            endpoint = os.environ["COSMOS__accountEndpoint"]  # noqa: SIM112  # The host's own name for it.
            database = os.environ.get("COSMOS__database", "exactlyonce-contract")  # noqa: SIM112
            connection = CosmosConnection(endpoint, database)
            yield CosmosStore(connection, ENTITY_CONTAINERS)
            await connection.close()

else:

    class TestCosmosStore(StoreContract):
        @pytest.fixture
        def store(self, connection: CosmosConnection) -> AsyncStore:
            return CosmosStore(connection, ENTITY_CONTAINERS)
