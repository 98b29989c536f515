"""This library: `Outbox()` on the local Cosmos DB in a process of its own, with a set latency per request."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy
from pydantic import BaseModel

from benchmarks.peers.port import Message, Peer, Running, installed
from benchmarks.peers.processes import first_line, process
from benchmarks.subjects import channel_of
from demo.stack import create_containers
from exactlyonce import Context, Destination, Entity, Envelope, Outbox, message
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import BUDGET, Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.outbox import Place
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from local_cosmos.admin_client import AdminClient

_DATABASE: Final = "peers"


@message("peers.count")
class Count(BaseModel):
    """One more."""

    entity: str


@message("peers.counted")
class Counted(BaseModel):
    """It was counted."""

    entity: str


class Total(BaseModel):
    """State of one entity."""

    n: int = 0


counters = Entity("counter", state=Total, container="games", partition_key="/gameId", strategy=Outbox())
sink = Destination("sink", receives=(Counted,), to="sink", entity_by=lambda counted: counted.entity)


@counters.handles(Count, key=lambda given: given.entity)
def count(state: Total, given: Count, context: Context) -> Total:
    """Count one more, and say so."""
    context.announce(Counted(entity=given.entity))
    return Total(n=state.n + 1)


class Ours:
    """The library as a host would run it: deliveries of one entity that arrive together share a commit."""

    def __init__(self, connection: CosmosConnection) -> None:
        self._connection = connection
        self._sink = MemoryTransport()
        self._routes = Routes.to((sink,), {sink.name: self._sink.max_bytes})
        store = CosmosStore(
            connection, [EntityContainer(counters.name, counters.container, counters.paths, companions=False)]
        )
        runtime = Runtime()
        driver = AsyncDriver(store, Publisher({sink.name: Address(self._sink, sink.name)}), runtime)
        self._lanes = Lanes(driver, Retrying(Backoff(), runtime.random), runtime.clock, memory=BUDGET)
        self._places: dict[str, Place] = {}
        self._numbers: Counter[str] = Counter()

    async def deliver(self, message: Message) -> None:
        ref = counters.ref(message.entity)
        runner = Runner(counters, ref, self._routes)
        work = Work(ref, (), runner, runner.absent, runner.evolve)
        data = Json.of({"entity": message.entity})
        extensions = self._place(message, ref).extensions
        envelope = Envelope("peers", message.id, "peers.count", data, extensions=extensions)
        await self._lanes.process(counters.strategy, work, envelope)

    def _place(self, message: Message, receiver: EntityRef) -> Place:
        """The message's number, as the entity that sends it gave it: the same to every copy."""
        if message.id not in self._places:
            self._numbers[message.entity] += 1
            number = self._numbers[message.entity]
            self._places[message.id] = Place(channel_of(message.entity), receiver.source, number)
        return self._places[message.id]

    async def sent(self) -> int:
        return len({output.id for output in self._sink.queues[sink.name]})

    async def counted(self) -> int:
        return sum([document["n"] async for document in await self._documents("games")])

    async def stored(self) -> int:
        """Of the documents, as JSON. What is left to mark is marked first, since it would be sooner or later."""
        await self._lanes.quiesce()
        containers = [await self._documents(name) for name in ("games", "exactlyonce")]
        return sum([len(json.dumps(document)) for documents in containers async for document in documents])

    async def _documents(self, container: str) -> Any:
        read: ContainerProxy = await self._connection.container(container)
        return read.read_all_items()

    def close(self) -> None:
        """Stop at once."""
        self._lanes.abandon()


def ours(milliseconds: int) -> Peer[Running]:
    """The library on a store that takes so much longer for every request."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Running]:
        with emulator(folder / "cosmos.log") as cosmos:
            create_containers(cosmos, _DATABASE)
            cosmos.set_latency(milliseconds)
            connection = CosmosConnection(cosmos.endpoint, _DATABASE, key=cosmos.key)
            running = Ours(connection)
            try:
                yield running
            finally:
                running.close()
                await connection.close()

    return Peer(f"exactlyonce, {milliseconds} ms", lambda: installed("azure-cosmos"), opened)


@contextmanager
def emulator(log: Path) -> Iterator[AdminClient]:
    """Run a local Cosmos DB in a process of its own for the length of a `with` block."""
    command = [sys.executable, "-m", "local_cosmos", "--port", "0", "--admin"]
    with process(command, log) as started:
        yield AdminClient(json.loads(first_line(started, "The local Cosmos", log))["endpoint"])
