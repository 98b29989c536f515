"""Entities of every protocol for clean-ups: in memory, and on the local Cosmos with several physical partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from azure.cosmos import CosmosClient, PartitionKey

from exactlyonce import (
    Colocated,
    Context,
    Destination,
    Entity,
    EntityKey,
    Envelope,
    Outbox,
    Resequencer,
    VersionStream,
    message,
)
from exactlyonce.drivers.lanes import BUDGET
from exactlyonce.drivers.runtime import Runtime, SystemClock
from exactlyonce.effects.attempt import Strategy
from exactlyonce.records.outbox import Place
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Retention
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Job
from tests.spark.application import LocalApp, own

DAY, HOUR = 86_400, 3_600


@message("cleanup.paid")
@dataclass
class Paid:
    shop: str
    amount: int = 1
    pictured: bool = False


@message("cleanup.receipt")
@dataclass
class Receipt:
    total: int
    number: str


@message("cleanup.counted")
@dataclass
class Counted:
    amount: int


@dataclass
class Shop:
    total: int = 0
    seen: list[int] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


RECEIPTS = Destination("receipts", receives=(Receipt,))


def shops(type: str, strategy: Strategy, container: str, paths: str | tuple[str, ...] = "/owner") -> Entity[Shop]:
    """A type of shops, which answer every payment with a receipt, and keep pictures of some. Keepers send it a year later."""
    entity = Entity(type, state=Shop, container=container, partition_key=paths, strategy=strategy)

    @entity.handles(Paid, key=lambda paid: _key(type, paid.shop, deep=not isinstance(paths, str)))
    def pay(state: Shop, paid: Paid, context: Context) -> Shop:
        total = state.total + paid.amount
        if isinstance(strategy, Outbox | Colocated | VersionStream):
            later = context.now + timedelta(days=365) if type == "keeper" else None
            context.send("receipts", Receipt(total, context.new_id()), at=later)
        pictures = [context.write_once("picture", f"{paid.amount}")] if paid.pictured else []
        return Shop(total, [*state.seen, paid.amount], [*state.pictures, *pictures])

    return entity


def _key(type: str, shop: str, *, deep: bool) -> EntityKey:
    """Shops of two types may share a container, and a logical partition."""
    return EntityKey(f"{type}-{shop}", ("t 1", shop) if deep else shop)


def sourced(type: str, strategy: Strategy, container: str) -> Entity[Shop]:
    """The same, made of events."""
    entity = Entity(type, state=Shop, container=container, partition_key="/owner", strategy=strategy)
    entity.applies(Counted)(lambda state, event: Shop(state.total + event.amount, [*state.seen, event.amount]))

    @entity.handles(Paid, key=lambda paid: _key(type, paid.shop, deep=False))
    def pay(state: Shop, paid: Paid, context: Context) -> list[object]:
        context.send("receipts", Receipt(state.total + paid.amount, context.new_id()))
        return [Counted(paid.amount)]

    return entity


TYPES: dict[str, Entity[Shop]] = {
    "outbox": shops("outbox", Outbox(), "shops"),
    "keeper": shops("keeper", Outbox(), "keepers", ("/tenant", "/owner")),
    "colocated": shops("colocated", Colocated(), "shops"),
    "stream": shops("stream", VersionStream(2), "shops"),
    "events": sourced("events", VersionStream(3), "shops"),
    "reader": shops("reader", Resequencer(), "shops"),
}
"""One for each protocol, and more. Most share a container, and even their logical partitions."""


def paid(
    type: str, number: int, shop: str, *, place: int | None = None, pictured: bool = False
) -> tuple[str, Envelope]:
    """The n-th payment in a shop of a type; at a place in the channel of one source, if one is given, and for readers."""
    more: dict[str, Any] = {}
    if type == "reader" or place is not None:
        receiver = TYPES[type].ref(_key(type, shop, deep=False))
        more["extensions"] = Place("fromweb", receiver.source, place or number).extensions
    data = Json.of({"shop": shop, "amount": number, "pictured": pictured})
    return type, Envelope("web", f"m-{number}", "cleanup.paid", data, **more)


def everywhere(numbers: Iterable[int], shop: str = "s", types: Iterable[str] = TYPES) -> list[tuple[str, Envelope]]:
    """These payments in a shop of each type, in order."""
    return [paid(type, number, shop) for number in numbers for type in types]


def job(database: str, **more: Any) -> Job:
    """The job file."""
    return Job.of(TYPES.values(), database=database, source="feed_ranges", **more)


def create(cosmos: RunningEmulator, database: str, retention: Retention | None = None) -> None:
    """Create database and containers, and say whose they are."""
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        made = client.create_database(database)
        for name, paths in {kind.container: kind.paths for kind in TYPES.values()}.items():
            made.create_container(
                name, PartitionKey(list(paths), kind="MultiHash") if len(paths) > 1 else PartitionKey(paths[0])
            )
        made.create_container("exactlyonce", PartitionKey(LIBRARY_PATH), default_ttl=-1)
    own(cosmos, job(database), retention)


class ServiceClock(SystemClock):
    """The service's time, which tests move."""

    def __init__(self, cosmos: RunningEmulator) -> None:
        self._cosmos = cosmos

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._cosmos.now(), timezone.utc)


class App(LocalApp):
    """The application in this process, by the service's time."""

    def __init__(self, cosmos: RunningEmulator, database: str, blobs: AsyncBlobs | None = None) -> None:
        runtime, types = Runtime(ServiceClock(cosmos)), [*TYPES.values()]
        super().__init__(cosmos, database, types, (RECEIPTS,), runtime=runtime, memory=BUDGET, blobs=blobs)

    async def process(self, messages: Sequence[tuple[str, Envelope]]) -> None:
        """Process messages in order, those of different shops at the same time; and end in order."""
        lines: dict[str, list[tuple[Entity[Shop], Envelope]]] = {}
        for type, envelope in messages:
            entity = TYPES[type]
            lines.setdefault(entity.ref_of(envelope).key, []).append((entity, envelope))

        async def line(waiting: list[tuple[Entity[Shop], Envelope]]) -> None:
            for entity, envelope in waiting:
                await self.handle(entity, envelope)

        await asyncio.gather(*map(line, lines.values()))
        await self.quiesce()


def within(
    cosmos: RunningEmulator, database: str, action: Callable[[App], Awaitable[Any]], blobs: AsyncBlobs | None = None
) -> Any:
    """Do something in an application that lives no longer."""

    async def live() -> Any:
        app = App(cosmos, database, blobs)
        try:
            return await action(app)
        finally:
            await app.close()

    return asyncio.run(live())


def ref(type: str, shop: str = "s") -> EntityRef:
    """The shop of a type."""
    return TYPES[type].ref_of(paid(type, 1, shop)[1])
