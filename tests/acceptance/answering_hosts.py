"""Hosts of an app, in processes of their own, and what the app needs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
from azure.cosmos.aio import CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.queue import QueueClient

from exactlyonce.records.ledger import LEDGER
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator

APP: Final = Path(__file__).parent / "answering_app"


class Host:
    """A host in a process of its own. It dies at its moments, and another process takes its place.

    Args:
        settings: of the app.
        app: its folder.
        moments: at which it dies, one after the other (see `tests.acceptance.lives`).

    Attributes:
        address: of the process that lives now, or lived last.
        lives: how many processes there have been.
    """

    def __init__(self, settings: Mapping[str, str], app: Path = APP, moments: Sequence[str] = ()) -> None:
        self._settings, self._app, self._moments = settings, app, moments
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._born = asyncio.Event()
        self.address = ""
        self.lives = 0

    @property
    def has_died_everywhere(self) -> bool:
        """Whether the process lives that is not going to die."""
        return self.lives > len(self._moments)

    async def start(self) -> None:
        """Start, and wait until it answers."""
        command = [sys.executable, "-m", "tests.acceptance.lives", str(self._app), *self._moments]
        environment = {**os.environ, **self._settings}
        self._born.clear()
        self._process = await create_subprocess_exec(*command, env=environment, stdout=PIPE, start_new_session=True)
        assert self._process.stdout is not None
        self._reading = asyncio.ensure_future(self._read(self._process.stdout))
        await self._born.wait()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            self.address = json.loads(line)["http"]
            self.lives += 1
            self._born.set()

    async def kill(self) -> None:
        """End it for good."""
        if self._process is not None and self._reading is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            await self._reading


class Hosts:
    """Hosts of one app, its store and its queues.

    Args:
        storage, cosmos: the accounts.
        moments: for each host, those at which it dies.
        app: folder of the app.
        container: of its entities.
        queues: names of its destinations.
        more: settings.

    Attributes:
        name: of the database, and the beginning of each queue's.
    """

    def __init__(
        self,
        storage: Azurite,
        cosmos: RunningEmulator,
        moments: Sequence[Sequence[str]] = ((), ()),
        *,
        app: Path = APP,
        container: str = "counters",
        queues: Sequence[str] = ("added",),
        **more: str,
    ) -> None:
        self.storage, self.cosmos, self.name = storage, cosmos, f"{container}-{uuid4().hex[:12]}"
        self.container, self.queues = container, {queue: f"{self.name}-{queue}" for queue in queues}
        settings = {
            "AzureWebJobsStorage": storage.connection_string,
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": self.name,
            "EXACTLYONCE__destinations": json.dumps(self.queues),
            "EXACTLYONCE__sweepAfter": "0.1",
        }
        self.hosts = [Host({**settings, **more}, app, moment) for moment in moments]

    async def open(self) -> None:
        """Create what the app needs, and start the hosts."""
        async with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            database = await client.create_database(self.name)
            await database.create_container(self.container, PartitionKey("/id"))
            await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
        for item in self.queues:
            with self.queue(item) as queue:
                queue.create_queue()
        await asyncio.gather(*(host.start() for host in self.hosts))

    async def kill(self) -> None:
        """End all hosts."""
        for host in self.hosts:
            await host.kill()

    def queue(self, name: str) -> QueueClient:
        """The queue of a destination."""
        return QueueClient.from_connection_string(self.storage.connection_string, self.queues[name])

    def documents(self) -> dict[str, dict[str, Any]]:
        """The documents of the entities by id, as they were written last."""
        return {document["id"]: document for document in self._last(self.container)}

    def library(self) -> list[dict[str, Any]]:
        """The documents of the library's container."""
        return self._last("exactlyonce")

    def _last(self, container: str) -> list[dict[str, Any]]:
        """What a container holds."""
        written = self.cosmos.history(self.name, container)
        return [item for item in {(item.partition_key, item.id): item.document for item in written}.values() if item]

    async def settled(self) -> None:
        """Sweep until no outbox holds anything, while the store's time goes on: books are searched once they are silent."""
        async with aiohttp.ClientSession() as http:
            while any("outbox" in document[LEDGER] for document in self.documents().values()):
                self.cosmos.advance_clock(300)
                with suppress(aiohttp.ClientError):  # Sweeping may be the moment at which the host dies.
                    await http.post(f"{self.hosts[0].address}/admin/functions/exactlyonce_sweep", json={})
                await asyncio.sleep(0.1)

    async def emptied(self, *names: str) -> None:
        """Wait until nothing waits in these queues, nor is under way."""
        for name in names:
            with self.queue(name) as queue:
                waiting = queue.get_queue_properties().approximate_message_count
                while waiting:
                    await asyncio.sleep(0.1)
                    waiting = queue.get_queue_properties().approximate_message_count

    def published(self, name: str = "added") -> list[str]:
        """The bodies of all messages in the queue of a destination, which go from sight."""
        with self.queue(name) as queue:
            return [
                message.content for message in queue.receive_messages(messages_per_page=32, visibility_timeout=3600)
            ]
