"""The sample's games on the local Cosmos, without hosts: what is sent goes through queues in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

from exactlyonce import Destination, Entity, Envelope, Outbox
from exactlyonce.attempt import Strategy, Work
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards, leader_board
from handlers.messages import Hit, Missed
from handlers.shooting_range import ranges, shooting_range
from local_cosmos.administration import Administration
from spark_jobs.job.configuration import Job

IN_FLIGHT = 16


class App:
    """The sample in this process.

    Args:
        cosmos: where the database is.
        database: its name; the containers are there.
        strategy: of the games.
    """

    def __init__(self, cosmos: Administration, database: str, strategy: Strategy) -> None:
        self.games: Entity[Any] = ranges.using(strategy)
        self.entities = (self.games, boards)
        self._connection = CosmosConnection(cosmos.endpoint, database, key=cosmos.key)
        containers = [
            EntityContainer(
                entity.name, entity.container, entity.paths, companions=not isinstance(entity.strategy, Outbox)
            )
            for entity in self.entities
        ]
        self._transport = MemoryTransport()
        destinations = (shooting_range, leader_board, Destination("audience", receives=(Hit, Missed)))
        publisher = Publisher(
            {destination.name: Address(self._transport, destination.name) for destination in destinations}
        )
        self._routes = Routes.to(destinations, publisher.limits)
        driver = AsyncDriver(CosmosStore(self._connection, containers), publisher, Runtime())
        retrying = Retrying(Backoff(), Random(0))
        self._lanes = Lanes(driver, retrying, Runtime().clock)
        self._books = driver.books

    async def play(self, shots: Iterable[Envelope]) -> None:
        """Fire shots, so many at a time, and count their outcomes on the board."""
        waiting = iter(shots)

        async def player() -> None:
            for shot in waiting:
                await self._process(self.games, shot)
                await self._count()

        await asyncio.gather(*(player() for _ in range(IN_FLIGHT)))

    async def close(self) -> None:
        """Finish what is under way."""
        await self._count()
        await self._lanes.quiesce()
        await self._books.end()
        await self._connection.close()

    async def _count(self) -> None:
        queue = self._transport.queues["leader-board"]
        while queue:
            await self._process(boards, Envelope.read(queue.pop(0).envelope.text.encode()))

    async def _process(self, entity: Entity[Any], envelope: Envelope) -> None:
        ref = entity.ref_of(envelope)
        runner = Runner(entity, ref, self._routes)
        await self._lanes.process(entity.strategy, Work(ref, (), runner, runner.absent, runner.evolve), envelope)


def shot(number: int, games: int = 8, prefix: str = "") -> Envelope:
    """The n-th shot, at one of some games in turn, whose names begin with a prefix."""
    data = Json.of({"game_id": f"{prefix}game-{number % games}", "position": number % 3})
    return Envelope("test", f"shot-{number}", "shooting-range.fire-at", data)


def job(app: App, database: str, **more: Any) -> Job:
    """The job file of the app."""
    return Job.of(app.entities, database=database, consumers={"leader-board": "board"}, **more)
