"""This library: `once.answer` on two function hosts, with the local Cosmos DB."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient, DatabaseProxy

from benchmarks.peers.ours import emulator
from benchmarks.peers.port import installed
from benchmarks.retries.killing import Killable
from benchmarks.retries.port import Door, Product, Serving
from exactlyonce.effects.library import DeletePages
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import RETENTION
from local_cosmos.admin_client import AdminClient

HOSTS: Final = 2
_KNOWN: Final = "known for the retention (30 days by default)"
DATED: Final = f'{_KNOWN}, `keys="uuid7"`'
"""Keys that carry their time."""
_DATABASE: Final = "retries"
_NEW_KEY: Final = {"Idempotency-Key": "what-time-is-it"}
_APP: Final = Path(__file__).parent / "app"


class Ours:
    """The library at work."""

    path = "/api/uuid7/{entity}"
    expiring: Final = {
        f'{_KNOWN}, `keys="any"`': "/api/any/{entity}",
        DATED: "/api/uuid7/{entity}",
    }
    processes = HOSTS

    def __init__(self, cosmos: AdminClient, folder: Path) -> None:
        self._cosmos = cosmos
        self._client = CosmosClient(cosmos.endpoint, cosmos.key)
        settings = {
            "AzureWebJobsStorage": "UseDevelopmentStorage=true",  # Nothing is sent.
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": _DATABASE,
        }
        command = [sys.executable, "-m", "function_host", "--app", str(_APP)]
        self._hosts = [Killable(command, folder / f"host-{number}.log", settings) for number in range(HOSTS)]
        self._doors: dict[int, Door] = {}

    @property
    def doors(self) -> Sequence[Door]:
        return tuple(self._doors.values())

    async def open(self) -> None:
        """Create the containers, and start the hosts."""
        database = await self._client.create_database(_DATABASE)
        await database.create_container("tallies", PartitionKey("/id"))
        await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
        for number in range(HOSTS):
            await self._start(number)

    async def restart(self, process: int) -> None:
        await self._hosts[process].kill()
        await self._start(process)

    async def _start(self, number: int) -> None:
        await self._hosts[number].start()
        self._doors[number] = Door(json.loads(await self._hosts[number].first_line())["http"])

    async def effects(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for document in await self._documents("tallies"):
            found.update(document["times"])
        return found

    async def expire(self) -> None:
        """Let the retention go by, and delete pages as clean-up does."""
        self._cosmos.advance_clock((RETENTION + timedelta(days=1)).total_seconds())
        connection = CosmosConnection(self._cosmos.endpoint, _DATABASE, key=self._cosmos.key)
        store = CosmosStore(connection, [EntityContainer("tally", "tallies", ("/id",))])
        for page in await self._documents("exactlyonce"):
            if page["kind"] == "page":
                type, *partition, id = json.loads(page["entity"])
                entity = EntityRef(type, tuple(partition), id)
                await store.perform(DeletePages(entity, ((page["number"], page["_etag"]),)))
        await connection.close()
        async with ClientSession() as http:
            for door in self.doors:  # A host learns the account's time by a reply. It has not jumped in life.
                await http.post(f"{door.address}/api/any/clock", json={"key": "", "amount": 1}, headers=_NEW_KEY)

    async def _documents(self, container: str) -> list[dict[str, Any]]:
        database: DatabaseProxy = self._client.get_database_client(_DATABASE)
        return [item async for item in database.get_container_client(container).read_all_items()]

    async def close(self) -> None:
        """End the hosts."""
        for host in self._hosts:
            await host.kill()
        await self._client.close()


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Serving]:
    with emulator(folder / "cosmos.log") as cosmos:
        running = Ours(cosmos, folder)
        try:
            await running.open()
            yield running
        finally:
            await running.close()


OURS: Final = Product("exactlyonce", lambda: installed("azure-cosmos"), _opened)
