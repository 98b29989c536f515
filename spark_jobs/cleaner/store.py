"""The library's own store for a clean-up: it counts its request units, and in a dry run sends no write."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.pace import Allowance
from spark_jobs.source.port import Meter, placed


@dataclass(frozen=True)
class Place:
    """The containers of entities and of the library; Spark ships it to each task.

    Attributes:
        account: address and identity.
        database, library: names.
        containers: by entity type.
        rate: RU per second that this task may spend; None for no limit.
        writes: whether writes are sent. If not, each is answered as if it had been, so that a strategy comes to the same
            decision.
    """

    account: Account
    database: str
    library: str
    containers: tuple[EntityContainer, ...]
    rate: float | None
    writes: bool

    @classmethod
    def of(cls, job: Job, account: Account, *, rate: float | None, writes: bool) -> Place:
        """The place of a job."""
        containers = tuple(
            EntityContainer(entity.type, entity.container, entity.partition_key, companions=entity.protocol != "outbox")
            for entity in job.entities
        )
        return cls(account, job.database, job.library, containers, rate, writes)

    def absent(self, entity: EntityRef) -> dict[str, object]:
        """Id and partition key properties of an entity's document, for its tombstone."""
        paths = next(container.paths for container in self.containers if container.type == entity.type)
        return {**placed(paths, list(entity.partition)), "id": entity.id}

    def connect(self, meter: Meter) -> MeteredConnection:
        """A connection, to be closed in the event loop that it was used in. The meter counts its RU."""
        return MeteredConnection(self.account, self.database, meter, Allowance(self.rate))

    def store(self, connection: CosmosConnection) -> CosmosStore:
        """The store, through a connection."""
        kind = CosmosStore if self.writes else Unsent
        return kind(connection, self.containers, self.library)


class Unsent(CosmosStore):
    """A store that answers the writes of a clean-up without sending them."""

    async def save_entity(self, effect: SaveEntity) -> Saved:
        return Saved(effect.etag or "", None)

    async def delete_staged(self, effect: DeleteStaged) -> None:
        pass


class MeteredConnection(CosmosConnection):
    """A connection that counts the charge of every reply, and keeps to a rate.

    Args:
        account: address and identity.
        database: its name.
        meter: counts RU.
        allowance: RU per second.
    """

    def __init__(self, account: Account, database: str, meter: Meter, allowance: Allowance) -> None:
        super().__init__(account.endpoint, database, key=account.key, client_id=account.client_id, charged=self._count)
        self._meter = meter
        self._allowance = allowance

    async def turn(self) -> None:
        """Wait until more RU may be spent. In a thread: requests under way have their time limits."""
        await asyncio.to_thread(self._allowance.wait)

    def _count(self, units: float) -> None:
        self._allowance.spend(units)
        self._meter.count(0, units)
