"""What the protocols cost, counted by running them on the local Cosmos DB, without trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from typing import Any, Final

from azure.cosmos import PartitionKey

from devtools.cosmos_emulator.inprocess import RunningEmulator, running_emulator
from devtools.modelcheck.specification.places import name_of
from devtools.modelcheck.specification.playing import Start, attempt, marking
from devtools.modelcheck.specification.stored import ENTITY
from exactlyonce import Outbox
from exactlyonce.drivers.operations import store_operations
from exactlyonce.effects import PUBLISHED, Begin, Begun, Effect, Publish, Together
from exactlyonce.envelope import Envelope
from exactlyonce.handling.attempts import Memory, Strategy
from exactlyonce.stores.cosmos import LIBRARY_CONTAINER, CosmosStore
from exactlyonce.stores.cosmos_client import CosmosConnection
from exactlyonce.stores.cosmos_layout import EntityContainer

AT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one attempt asked of the store.

    Attributes:
        what: the attempt.
        requests: to the store; those side by side count each.
        units: request units that they were charged.
        rounds: to the store, one after the other; those side by side count once.
        asked: names of the effects, in order; sending included.
    """

    what: str
    requests: int
    units: float
    rounds: int
    asked: tuple[str, ...]


class Counting:
    """Runs generators on an entity in the local Cosmos DB, and counts.

    Attributes:
        strategy: of the entity.
        memory: what the process knows that runs them.
    """

    def __init__(self, strategy: Strategy, store: CosmosStore, emulator: RunningEmulator) -> None:
        self.strategy = strategy
        self.memory = Memory()
        self._perform = store_operations(store)
        self._emulator = emulator
        self._transactions = count()

    async def process(self, *messages: Envelope, what: str = "", forgetful: bool = False) -> Cost:
        """Process messages; in the process that ran before, or in one that knows nothing."""
        return await self.run(attempt(self.strategy, Memory() if forgetful else self.memory, *messages), what)

    async def mark(self, what: str) -> Cost:
        """Mark what was published."""
        return await self.run(marking(self.strategy, self.memory), what)

    async def die(self, one: Envelope) -> None:
        """Process a message in a process that dies right before it publishes."""
        await self.run(attempt(self.strategy, Memory(), one), "", until=Publish)

    async def run(self, start: Start, what: str, *, until: type[Effect[Any]] | None = None) -> Cost:
        """Run a generator, to its end or up to an effect, and go on with what it remembers."""
        step, before = start.run(), len(self._emulator.requests())
        asked: list[str] = []
        rounds = 0
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                self.memory = getattr(finished.value, "memory", Memory())
                break
            if until is not None and isinstance(effect, until):
                break
            asked += [name_of(effect)] * (not isinstance(effect, Begin))
            rounds += not isinstance(effect, Begin | Publish)
            reply = await self._answer(effect)
        requests = self._emulator.requests()[before:]
        return Cost(what, len(requests), sum(one.charge for one in requests), rounds, tuple(asked))

    async def _answer(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Together):
            return await self._answer(effect.first), await self._answer(effect.second)
        if isinstance(effect, Begin):
            return Begun(AT, tuple(f"t{next(self._transactions)}" for _ in range(effect.count)))
        return PUBLISHED if isinstance(effect, Publish) else await self._perform[type(effect)](effect)


Scenario = Callable[[Counting], AsyncIterator[Cost]]
"""The usual attempts of a strategy, one after the other."""
Costing = tuple[str, Strategy, Scenario]
"""A strategy, by the name that a page gives it, and what is counted."""


def counted(costings: Iterable[Costing]) -> list[tuple[str, list[Cost]]]:
    """The costs of each strategy, on an entity of its own."""

    async def count_all() -> list[tuple[str, list[Cost]]]:
        found = []
        for name, strategy, scenario in costings:
            with running_emulator() as emulator:
                async with _store(emulator, beside=not isinstance(strategy, Outbox)) as store:
                    found.append((name, [cost async for cost in scenario(Counting(strategy, store, emulator))]))
        return found

    return asyncio.run(count_all())


@asynccontextmanager
async def _store(emulator: RunningEmulator, *, beside: bool) -> AsyncIterator[CosmosStore]:
    connection = CosmosConnection(emulator.endpoint, "costs", key=emulator.key)
    try:
        client = await connection.client()
        database = await client.create_database(connection.database)
        await database.create_container("entities", PartitionKey("/key"))
        await database.create_container(LIBRARY_CONTAINER, PartitionKey("/pk"), default_ttl=-1)
        yield CosmosStore(connection, [EntityContainer(ENTITY.type, "entities", ("/key",), companions=beside)])
    finally:
        await connection.close()
