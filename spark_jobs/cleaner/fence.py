"""Deletes of staged documents in a task: `clean_staged` for each entity, behind a fence. Without Spark.

Staged documents are never deleted in bulk. Only a fence shows that no attempt can still commit them, and a fence needs the
reply to a conditional save: so the task uses the library's own driver and store. The store counts request units, and in a dry
run sends no write.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from random import SystemRandom
from typing import Any, Final, TypeVar

from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.errors import MessageError, StoredDataError, TryAgainLater, UniqueKeyTaken
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer, staged_id
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from spark_jobs.cleaner.verdicts import Reason
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.pace import Allowance
from spark_jobs.source.port import Meter, Outcome, placed

AT_ONCE: Final = 16
"""Entities that one task cleans at a time."""

Result = TypeVar("Result")

Fate = tuple[str, str, str]
"""Key of the entity, id of a staged document, and an `Outcome` or a `Reason` to keep the document."""


@dataclass(frozen=True)
class Place:
    """The containers of entities and of the library; Spark ships it to each task.

    Attributes:
        containers: by entity type.
        rate: RU per second that this task may spend; None for no limit.
        writes: whether writes are sent. If not, each is answered as if sent, so that a strategy decides the same.
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
        """A connection, to be closed in the event loop of its use. The meter counts RU."""
        return MeteredConnection(self.account, self.database, meter, self.rate)

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
    """A connection that counts the charge of every reply, and keeps to a rate of RU per second."""

    def __init__(self, account: Account, database: str, meter: Meter, rate: float | None) -> None:
        super().__init__(account.endpoint, database, key=account.key, client_id=account.client_id, charged=self._count)
        self._meter = meter
        self._allowance = Allowance(rate)

    async def turn(self) -> None:
        """Wait until more RU may be spent. In a thread: requests under way have their time limits."""
        await asyncio.to_thread(self._allowance.wait)

    def _count(self, units: float) -> None:
        self._allowance.spend(units)
        self._meter.count(0, units)


@dataclass(frozen=True)
class Fence:
    """Deletes staged documents; Spark ships it to each task."""

    place: Place
    meter: Meter = field(repr=False)
    backoff: Backoff = field(default_factory=Backoff)

    def __call__(self, rows: Iterable[Any]) -> Iterator[Fate]:
        """Delete staged documents that may go; yields the fate of each.

        Args:
            rows: with `entity` and `tx`; those of one entity next to each other.

        Raises:
            ConfigurationError: the account refuses, a container is absent, or an entity belongs to another protocol.
        """
        entities = (
            (key, tuple(row["tx"] for row in of_one)) for key, of_one in groupby(rows, key=lambda row: row["entity"])
        )
        connection = self.place.connect(self.meter)
        with asyncio.Runner() as runner:
            driver = AsyncDriver(self.place.store(connection), Publisher({}), Runtime())

            async def together(some: Iterable[tuple[str, tuple[str, ...]]]) -> list[list[Fate]]:
                return await asyncio.gather(*(self._of_one(driver, *item) for item in some))

            try:
                while some := list(islice(entities, AT_ONCE)):
                    runner.run(connection.turn())
                    for fates in runner.run(together(some)):
                        yield from fates
            finally:
                runner.run(connection.close())

    async def _of_one(self, driver: AsyncDriver, key: str, transactions: tuple[str, ...]) -> list[Fate]:
        entity = entity_of(key)
        fates = await cleaned(driver, entity, transactions, self.place.absent(entity), self.backoff)
        return [(key, staged_id(tx), fate) for tx, fate in fates.items()]


async def cleaned(
    driver: AsyncDriver,
    entity: EntityRef,
    transactions: tuple[str, ...],
    absent: Mapping[str, object],
    backoff: Backoff,
) -> dict[str, str]:
    """Clean the staged documents of one entity.

    Returns:
        By transaction: `Outcome.UNKNOWN` for a delete, which the store does not answer; else the reason to keep it.
    """
    tombstone = Json.of(dict(absent))
    result = await decided(
        driver, entity, lambda memory: clean_staged(entity, transactions, tombstone, memory), backoff
    )
    if isinstance(result, Reason):
        return dict.fromkeys(transactions, result.value)
    fates = dict.fromkeys(transactions, Reason.NAMED.value)
    return fates | dict.fromkeys(result.transactions, Outcome.UNKNOWN.value)


async def decided(
    driver: AsyncDriver, entity: EntityRef, step: Callable[[Memory], Step[Result | Again]], backoff: Backoff
) -> Result | Reason:
    """The result of a step of clean-up that fences an entity; a reason to keep all documents where it cannot decide."""
    try:
        return await driver.run(Retrying(backoff, SystemRandom()).process(entity, step, Memory()))
    except (StoredDataError, MessageError):  # An untrustworthy document, or a key that names no entity.
        return Reason.UNREADABLE
    except (TryAgainLater, UniqueKeyTaken):  # A tombstone may share a unique key with another one.
        return Reason.UNDECIDED


def entity_of(key: str) -> EntityRef:
    """The entity of a key."""
    type, *partition, id = json.loads(key)
    return EntityRef(type, tuple(partition), id)
