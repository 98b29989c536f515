"""Blobs of lost attempts, cleaned by `clean_blobs` on the driver: there are few, and each needs its entity's fence.

The application's settings name their container: `EXACTLYONCE__blobContainer`, and the storage connection that
`EXACTLYONCE__connection` names (`AzureWebJobsStorage` by default).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from azure.identity.aio import DefaultAzureCredential

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.drivers.driver import AsyncDriver, Backoff
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Strategy
from exactlyonce.effects.effect import AsyncAdapter, AsyncPort, performs
from exactlyonce.effects.library import DeleteBlobs
from exactlyonce.environment import setting
from exactlyonce.errors import ConfigurationError
from exactlyonce.protocols.steps.clean import blob_candidates, clean_blobs
from exactlyonce.records.blobs import ListedBlob
from exactlyonce.stores.blobs.azure import AzureBlobs
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.values.frozen_json import Json
from spark_jobs.cleaner.fence import AT_ONCE, MeteredConnection, Place, decided
from spark_jobs.cleaner.summary import REMOVED
from spark_jobs.cleaner.verdicts import GOES, Reason
from spark_jobs.job.configuration import EntityPlace, Job, Protocol
from spark_jobs.source.port import Meter

_STRATEGIES: Final[Mapping[Protocol, Strategy]] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
    "resequencer": Resequencer(),
}
_LISTED_AT_ONCE: Final = 2_000
_JUDGED_AT_ONCE: Final = 100
"""Most that `clean_blobs` takes."""


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """The container of blobs.

    Attributes:
        account: connection string, or address of the blob service.
        client_id: of a user-assigned managed identity.
    """

    container: str
    account: str = field(repr=False)
    client_id: str | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> BlobPlace | None:
        """The container of the settings; None if they name none.

        Raises:
            ConfigurationError: the settings name a container without a storage account.
        """
        container = setting(environment, "EXACTLYONCE__blobContainer")
        if not container:
            return None
        name = setting(environment, "EXACTLYONCE__connection") or "AzureWebJobsStorage"
        service, account = (setting(environment, f"{name}__{part}") for part in ("blobServiceUri", "accountName"))
        found = setting(environment, name) or service or (account and f"https://{account}.blob.core.windows.net")
        if not found:
            raise ConfigurationError(
                f"EXACTLYONCE__blobContainer names a container without a storage account: set {name}__blobServiceUri."
            )
        return cls(container, found, setting(environment, f"{name}__clientId"))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[AsyncBlobs]:
        """The blobs, for an `async with` block."""
        identity = DefaultAzureCredential(managed_identity_client_id=self.client_id) if self.client_id else None
        blobs = AzureBlobs(self.account, self.container, identity)
        try:
            yield blobs
        finally:
            await blobs.close()
            if identity is not None:
                await identity.close()


@dataclass
class LostBlobs:
    """Cleans blobs of lost attempts.

    Attributes:
        retention: age up to which every record of a commit is certainly there.
        names: names of deleted blobs, or of blobs that would go.
        results: number of each result, as in `summary.Counts`.
    """

    job: Job
    retention: timedelta
    place: Place
    meter: Meter
    blobs: AsyncBlobs
    backoff: Backoff = field(default_factory=Backoff)
    names: list[str] = field(default_factory=list)
    results: Counter[str] = field(default_factory=Counter)

    async def clean(self) -> None:
        """Go through all blobs, so many at a time.

        Raises:
            ConfigurationError, TryAgainLater: the storage account refuses or does not answer.
        """
        connection = self.place.connect(self.meter)
        blobs: AsyncPort = self.blobs if self.place.writes else _Unsent()
        driver = AsyncDriver(self.place.store(connection), Publisher({}), Runtime(), blobs)
        try:
            listed: list[ListedBlob] = []
            async for blob in self.blobs.list_blobs():
                listed.append(blob)
                if len(listed) == _LISTED_AT_ONCE:
                    await self._judge(driver, connection, listed)
                    listed = []
            await self._judge(driver, connection, listed)
        finally:
            await connection.close()
        if self.place.writes:
            await self._count_again()
        self.names.sort()
        self.results = +self.results  # Without zeros.

    async def _judge(self, driver: AsyncDriver, connection: MeteredConnection, listed: list[ListedBlob]) -> None:
        found = blob_candidates(listed, horizon=self.job.horizon, retention=self.retention)
        places = {entity.type: entity for entity in self.job.entities}
        groups = [
            blobs[first : first + _JUDGED_AT_ONCE]
            for blobs in found.values()
            for first in range(0, len(blobs), _JUDGED_AT_ONCE)
        ]
        for first in range(0, len(groups), AT_ONCE):
            await connection.turn()
            await asyncio.gather(*(self._of_one(driver, places, some) for some in groups[first : first + AT_ONCE]))

    async def _of_one(
        self, driver: AsyncDriver, places: Mapping[str, EntityPlace], blobs: tuple[ListedBlob, ...]
    ) -> None:
        """Clean blobs of one entity."""
        assert blobs[0].author is not None  # noqa: S101  # So `blob_candidates` picks them.
        entity = blobs[0].author.entity
        place = places.get(entity.type)
        if place is None or len(place.partition_key) != len(entity.partition):
            self.results[Reason.NO_TYPE] += len(blobs)
            return
        tombstone, strategy = Json.of(self.place.absent(entity)), _STRATEGIES[place.protocol]
        result = await decided(
            driver,
            entity,
            lambda memory: clean_blobs(entity, blobs, tombstone, memory, strategy),
            self.backoff,
        )
        if isinstance(result, Reason):
            self.results[result] += len(blobs)
            return
        self.names += result.names
        self.results[REMOVED if self.place.writes else GOES] += len(result.names)
        self.results[Reason.NAMED] += len(blobs) - len(result.names)

    async def _count_again(self) -> None:
        for name in self.names:
            async for found in self.blobs.list_blobs(name):
                if found.name == name:
                    self.results[REMOVED] -= 1
                    self.results[Reason.LEFT] += 1


class _Unsent(AsyncAdapter):
    """Performs no deletion, but answers as if it had."""

    @performs(DeleteBlobs)
    async def delete_blobs(self, effect: DeleteBlobs) -> None:
        pass
