"""Hosts of an app that answers requests, in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from azure.cosmos.aio import CosmosClient
from azure.cosmos.partition_key import PartitionKey
from azure.storage.queue import QueueClient

from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator

APP: Final = Path(__file__).parent / "answering_app"


class Host:
    """A host in a process of its own, which can be killed and starts again."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._process: Process | None = None
        self.address = ""

    async def start(self) -> None:
        """Start, and wait until it answers."""
        command = [sys.executable, "-m", "function_host", "--app", str(APP)]
        environment = {**os.environ, **self._settings}
        self._process = await create_subprocess_exec(*command, env=environment, stdout=PIPE)
        assert self._process.stdout is not None
        self.address = json.loads(await self._process.stdout.readline())["http"]

    async def kill(self) -> None:
        """End the process by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()


class Hosts:
    """Hosts of one app, its store and its queue."""

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, number: int = 2, **more: str) -> None:
        self.storage, self.cosmos, self.name = storage, cosmos, f"counting-{uuid4().hex[:12]}"
        settings = {
            "AzureWebJobsStorage": storage.connection_string,
            "COSMOS__accountEndpoint": cosmos.endpoint,
            "COSMOS__accountKey": cosmos.key,
            "COSMOS__database": self.name,
            "EXACTLYONCE__destinations": json.dumps({"added": self.name}),
            "EXACTLYONCE__sweepAfter": "0.1",
        }
        self.hosts = [Host({**settings, **more}) for _ in range(number)]

    async def open(self) -> None:
        """Create what the app needs, and start the hosts."""
        async with CosmosClient(self.cosmos.endpoint, self.cosmos.key) as client:
            database = await client.create_database(self.name)
            await database.create_container("counters", PartitionKey("/id"))
            await database.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)
        with QueueClient.from_connection_string(self.storage.connection_string, self.name) as queue:
            queue.create_queue()
        await asyncio.gather(*(host.start() for host in self.hosts))

    def documents(self) -> dict[str, dict[str, Any]]:
        """The counters' documents, as they were written last."""
        return {
            write.document["id"]: write.document
            for write in self.cosmos.history(self.name, "counters")
            if write.document
        }

    def published(self) -> list[str]:
        """The bodies of all messages in the queue."""
        found: list[str] = []
        with QueueClient.from_connection_string(self.storage.connection_string, self.name) as queue:
            while batch := [one.content for one in queue.receive_messages(max_messages=32)]:
                found += batch
        return found
