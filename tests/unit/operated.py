"""An application in memory, for what operators do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from exactlyonce import Destination, Entity, Envelope
from exactlyonce.application import OwnedType
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.retrying import Backoff, Retrying
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.effects import Park
from exactlyonce.handling.attempts import key_of
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.hosting.mending import Mending
from exactlyonce.hosting.operating import Operator
from exactlyonce.hosting.ownership import Declared, Ownership
from exactlyonce.hosting.sweeping import Sweeper
from exactlyonce.records import ParkedMessage
from exactlyonce.stores.application import MemoryApplicationStore
from exactlyonce.stores.awaiting import Awaited
from exactlyonce.stores.listing import entity_named
from exactlyonce.stores.memory_listing import MemoryListing
from exactlyonce.testing.chance import ManualClock
from exactlyonce.testing.world import World
from tests.samples import Deposited
from tests.unit.playing import AT

RECEIPTS = Destination("receipts", receives=(Deposited,))
WEEK = timedelta(days=7)
PLACE = '["account","a","a"]'


class InMemory(ExactlyOnce):
    """An application on a world in memory; its queues take nothing while they are not open."""

    def __init__(self, *entities: Entity[Any]) -> None:
        self.open = True
        self.clock = ManualClock()
        self.world = World((RECEIPTS,), outcome=lambda _: (self.open, self.open), clock=self.clock)
        surroundings = Surroundings(self.clock, self.world.random)
        driver = AsyncDriver(Awaited(self.world.store), self.world._publisher, surroundings)
        listing = MemoryListing(self.world.store)
        self._entities = entities
        self._mending = Mending(driver, Retrying(Backoff(tries=1), self.world.random), self.world.routes)
        self._operator = Operator(self._mending, listing, WEEK)
        self._sweeper = Sweeper(self._mending, listing, surroundings)
        self._sweep_after = timedelta(minutes=1)
        self.closed = 0
        types = tuple(OwnedType(one.name, one.container, one.paths) for one in entities)
        self.owns = Ownership(
            MemoryApplicationStore(self.clock.now),
            Declared("exactlyonce", "bank", types, None, WEEK),
            self.clock,
        )

    async def _ready(self) -> None:
        pass

    async def ownership(self) -> Ownership:
        return self.owns

    async def close(self) -> None:
        self.closed += 1

    def deliver(self, kind: Entity[Any], message: Envelope) -> None:
        async def delivering() -> None:
            process = self.world.process(backoff=Backoff(tries=1))
            try:
                await process.deliver(kind, message)
            finally:
                await process.crash()

        asyncio.run(delivering())

    def park(self, message: Envelope, reason: str = "its handler raised ValueError", place: str = PLACE) -> None:
        ref = entity_named(place)
        parked = ParkedMessage(place, key_of(message), reason, AT, message.to_json())
        self.world.store.park(Park(ref, parked))
