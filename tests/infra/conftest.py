"""The sample app, imported with the settings that infrastructure gives it, and no others; and all requests of a store."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from types import ModuleType
from typing import Any, Final

import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from exactlyonce.records.library import Search
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.listing import CosmosListing
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import Condition
from exactlyonce.testing.contracts.samples import OWNED, PLAIN
from exactlyonce.values.envelope import EntityRef
from local_cosmos.inprocess import running_emulator
from tests.contract.conftest import ENTITY_CONTAINERS, create_containers
from tests.contract.cosmos_requests import REQUESTS
from tests.infra.bicep import deployment, one

ADDRESSES: Final = {
    "storage.outputs.blobServiceUri": "https://example.blob.core.windows.net/",
    "storage.outputs.queueServiceUri": "https://example.queue.core.windows.net/",
    "cosmos.outputs.endpoint": "https://example.documents.azure.com:443/",
    "identity.outputs.clientId": "00000000-0000-0000-0000-00000000c11e",
}
"""What Azure would make of outputs."""


def settings_of(**parameters: Any) -> dict[str, str]:
    """Application settings of a deployment, with addresses as Azure would give them."""
    (config,) = one(deployment(**parameters), "web/site")["configs"]
    assert config["name"] == "appsettings"
    found: dict[str, str] = config["properties"]
    return {name: ADDRESSES.get(value, value) for name, value in found.items()}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """function_app.py."""
    for name in [name for name in os.environ if name.startswith(("AzureWebJobs", "COSMOS__", "EXACTLYONCE__"))]:
        monkeypatch.delenv(name)
    for name, value in settings_of().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    module = importlib.import_module("function_app")
    yield module
    asyncio.run(module.once.close())
    monkeypatch.delitem(sys.modules, "function_app")


NOW: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)


async def _all(pages: Any) -> None:
    async for _ in pages:
        pass


LISTINGS: Final[Mapping[str, Callable[[CosmosListing], Awaitable[Any]]]] = {
    "books": lambda listing: _all(listing.books(0)),
    "owing": lambda listing: _all(listing.owing(OWNED, (Search("0" * 20, 7, (3,)),))),
    "due": lambda listing: _all(listing.due(OWNED, NOW)),
    "companions": lambda listing: _all(listing.companions(OWNED, NOW)),
    "holding": lambda listing: _all(listing.holding(OWNED, NOW)),
    "bodies": lambda listing: _all(listing.bodies(OWNED, Condition(), None)),
    "parked": lambda listing: _all(listing.parked()),
    "belongings": lambda listing: listing.belongings(EntityRef(OWNED, ("o-1",), "e-1")),
}
"""By the names of the port. The requests of strategies are listed with the contract of stores."""


@dataclass(frozen=True)
class Recorded:
    """What was asked of the service.

    Attributes:
        operations: words of the request log; of a batch, those of its operations.
        queries: their texts, by container.
    """

    operations: set[str] = field(default_factory=set)
    queries: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


@pytest.fixture
async def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Every request that the library may make of a store, made once on the local Cosmos."""
    recorded = Recorded()
    _listen(recorded, monkeypatch)
    with running_emulator() as emulator:
        async with CosmosClient(emulator.endpoint, emulator.key) as client:
            await create_containers(await client.create_database("recorded"))
        connection = CosmosConnection(emulator.endpoint, "recorded", key=emulator.key)
        store = CosmosStore(connection, ENTITY_CONTAINERS)
        for number, request in enumerate(REQUESTS.values()):
            await request(store, EntityRef(PLAIN, (f"e-{number}",), f"e-{number}"))
        types = [replace(container, companions=container.type == OWNED) for container in ENTITY_CONTAINERS]
        for search in LISTINGS.values():
            await search(CosmosListing(connection, types))
        await connection.close()
        recorded.operations.update(total.operation for total in emulator.totals())
    recorded.operations.remove("batch")
    return recorded


def _listen(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request log has neither the texts of queries nor what batches hold; the SDK is asked with them."""
    batch, query = ContainerProxy.execute_item_batch, ContainerProxy.query_items

    def execute_item_batch(self: ContainerProxy, operations: Any, *rest: Any, **options: Any) -> Any:
        recorded.operations.update(operation[0] for operation in operations)
        return batch(self, operations, *rest, **options)

    def query_items(self: ContainerProxy, text: str, *rest: Any, **options: Any) -> Any:
        recorded.queries[self.id].add(text)
        return query(self, text, *rest, **options)

    monkeypatch.setattr(ContainerProxy, "execute_item_batch", execute_item_batch)
    monkeypatch.setattr(ContainerProxy, "query_items", query_items)
