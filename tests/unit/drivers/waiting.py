"""Loads that wait until a test lets them through, and turns of the event loop."""

from __future__ import annotations

import asyncio

from exactlyonce.effects.effect import Awaited, Busy, Effect, Reply
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.stores.memory.store import MemoryStore
from tests.samples import accounts

ENTITY = accounts().ref("a")


class WaitingLoads(Awaited):
    """A store each of whose loads waits to be let through."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.waiting: list[asyncio.Future[None]] = []

    async def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        if isinstance(effect, LoadEntity):
            self.waiting.append(asyncio.get_running_loop().create_future())
            await self.waiting[-1]
        return await super().perform(effect)

    async def let_through(self) -> None:
        self.waiting.pop(0).set_result(None)
        await turn()


async def turn() -> None:
    """Let every task run until it waits."""
    for _ in range(60):
        await asyncio.sleep(0)
