"""The sample's games on the local Cosmos."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from exactlyonce import Destination, Entity, Envelope
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards, leader_board
from handlers.messages import Hit, Missed
from handlers.shooting_range import ranges, shooting_range
from local_cosmos.administration import Administration
from spark_jobs.job.configuration import Job
from tests.spark.application import LocalApp

IN_FLIGHT = 16
DESTINATIONS = (shooting_range, leader_board, Destination("audience", receives=(Hit, Missed)))


class App(LocalApp):
    """The sample in this process, with this strategy of its games."""

    def __init__(self, cosmos: Administration, database: str, strategy: Strategy) -> None:
        self.games: Entity[Any] = ranges.using(strategy)
        super().__init__(cosmos, database, (self.games, boards), DESTINATIONS, runtime=Runtime())

    async def play(self, shots: Iterable[Envelope]) -> None:
        """Fire shots, so many at a time, and count their outcomes on the board."""
        waiting = iter(shots)

        async def player() -> None:
            for shot in waiting:
                await self.handle(self.games, shot)
                await self._count()

        await asyncio.gather(*(player() for _ in range(IN_FLIGHT)))

    async def close(self) -> None:
        """Finish what is under way."""
        await self._count()
        await self.quiesce()
        await super().close()

    async def _count(self) -> None:
        queue = self.transport.queues["leader-board"]
        while queue:
            await self.handle(boards, Envelope.read(queue.pop(0).envelope.text.encode()))


def shot(number: int, games: int = 8, prefix: str = "") -> Envelope:
    """The n-th shot, at one of some games in turn, whose names begin with a prefix."""
    data = Json.of({"game_id": f"{prefix}game-{number % games}", "position": number % 3})
    return Envelope("test", f"shot-{number}", "shooting-range.fire-at", data)


def job(app: App, database: str, **more: Any) -> Job:
    """The job file of the app."""
    return Job.of(app.entities, database=database, consumers={"leader-board": "board"}, **more)
