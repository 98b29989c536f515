"""Applications on the local Cosmos without hosts, whose messages go through queues in memory; and who owns a database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from azure.cosmos import CosmosClient

from exactlyonce import Destination, Entity, Envelope, Outbox
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.application import DEFAULT_NAME, KIND, OwnedType, application_document, application_of
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH, EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.lifetimes import RETENTION, Lifetimes, Retention
from local_cosmos.administration import Administration
from spark_jobs.job.configuration import Job
from spark_jobs.source.account import Beginning


def beginning(now: float, retention: timedelta = RETENTION) -> Beginning:
    """A job that begins now, where the retention never changed. It may be as short as a test likes."""
    return Beginning.of(now, Retention(retention))


def own(cosmos: Administration, job: Job, retention: Retention | None = None) -> None:
    """Write down whose a job's library container is, as the first start of the application does."""
    types = [OwnedType(entity.type, entity.container, entity.partition_key) for entity in job.entities]
    document = application_document(application_of(DEFAULT_NAME, types, retention or Retention()))
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        library = client.get_database_client(job.database).get_container_client(job.library)
        library.upsert_item({"id": KIND, LIBRARY_PATH[1:]: KIND, **document})


class LocalApp:
    """An application in this process.

    Args:
        cosmos: where the database is.
        database: its name; the containers are there.
        entities, destinations: of the application.
        runtime: its clock.
        memory: bytes that entities may take between their messages.
        blobs: where blobs are; None if there are none.
    """

    def __init__(
        self,
        cosmos: Administration,
        database: str,
        entities: Sequence[Entity[Any]],
        destinations: tuple[Destination, ...],
        *,
        runtime: Runtime,
        memory: int = 0,
        blobs: AsyncBlobs | None = None,
    ) -> None:
        self.entities = entities
        self.transport = MemoryTransport()
        self._connection = CosmosConnection(cosmos.endpoint, database, key=cosmos.key)
        containers = [
            EntityContainer(kind.name, kind.container, kind.paths, companions=not isinstance(kind.strategy, Outbox))
            for kind in entities
        ]
        self.store = CosmosStore(self._connection, containers)
        publisher = Publisher({item.name: Address(self.transport, item.name) for item in destinations})
        self._routes = Routes.to(destinations, publisher.limits, blobs=None if blobs is None else blobs.address)
        self.driver = AsyncDriver(self.store, publisher, runtime, blobs)
        self._lanes = Lanes(self.driver, Retrying(Backoff(), Random(0)), runtime.clock, memory)

    async def handle(self, entity: Entity[Any], envelope: Envelope) -> None:
        """Process a message."""
        ref = entity.ref_of(envelope)
        runner, refusal = Runner(entity, ref, self._routes), Lifetimes().refusal
        work = Work(ref, (), runner, runner.absent, runner.evolve, refusal=refusal)
        await self._lanes.process(entity.strategy, work, envelope)

    async def quiesce(self) -> None:
        """Finish what is under way."""
        await self._lanes.quiesce()
        await self.driver.books.end()

    async def close(self) -> None:
        """Close its connection."""
        await self._connection.close()
