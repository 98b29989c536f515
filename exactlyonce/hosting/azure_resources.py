"""The Azure side of one process: opened on first use, verified once, closed together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final

from azure.identity.aio import DefaultAzureCredential

from exactlyonce.drivers.publishing import Address
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting.settings import Settings, StorageConnection
from exactlyonce.stores.cosmos import CosmosStore
from exactlyonce.stores.cosmos_client import CosmosConnection
from exactlyonce.stores.cosmos_layout import EntityContainer
from exactlyonce.stores.cosmos_listing import CosmosListing
from exactlyonce.stores.cosmos_replies import FAILURES
from exactlyonce.stores.cosmos_verify import verify
from exactlyonce.strategies.outbox import Outbox
from exactlyonce.transports.azure_blobs import AzureBlobs
from exactlyonce.transports.storage_queue import StorageQueueTransport

_QUEUE_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")


class AzureResources:
    """Cosmos DB, Storage Queues and blobs, as settings name them.

    Args:
        settings: of the library.
        storage: the account whose queues outputs go to.
        entities: whose containers are verified.
        destinations: which get an address each.

    Raises:
        ConfigurationError: settings map a destination that nobody declared, a queue has no name that queues can have, or it is
            not known where blobs are.
    """

    def __init__(
        self,
        settings: Settings,
        storage: StorageConnection,
        entities: Iterable[Entity[Any]],
        destinations: Iterable[Destination],
    ) -> None:
        names = [destination.name for destination in destinations]
        if unknown := sorted(settings.destinations.keys() - set(names)):
            raise ConfigurationError(
                f"EXACTLYONCE__destinations maps {unknown[0]!r}, which is no destination of this application; declared are: "
                f"{', '.join(names) or 'none'}."
            )
        queues = {name: settings.destinations.get(name, name) for name in names}
        if wrong := [queue for queue in queues.values() if not _QUEUE_NAME.fullmatch(queue)]:
            raise ConfigurationError(
                f"{wrong[0]!r} cannot be the name of a queue: 3 to 63 lower-case letters, digits and single hyphens, the first "
                "and last no hyphen. Map the destination to a queue in EXACTLYONCE__destinations."
            )
        key = settings.account_key.get_secret_value() if settings.account_key else None
        self._database = settings.database
        self._containers = tuple(
            EntityContainer(one.name, one.container, one.paths, companions=not isinstance(one.strategy, Outbox))
            for one in entities
        )
        self._library = settings.library_container
        self._connection = CosmosConnection(
            settings.account_endpoint, settings.database, key=key, client_id=settings.client_id
        )
        self._identity = None
        if storage.client_id is not None:
            self._identity = DefaultAzureCredential(managed_identity_client_id=storage.client_id)
        self._transport = StorageQueueTransport(storage.account, self._identity, delivery_limit=settings.delivery_limit)
        self.blobs = self._blobs_of(settings, storage)
        self._verifying = asyncio.Lock()
        self._verified = False
        self.store = CosmosStore(self._connection, self._containers, self._library)
        self.listing = CosmosListing(self._connection, self._containers, self._library)
        self.addresses = {name: Address(self._transport, queue) for name, queue in queues.items()}

    def _blobs_of(self, settings: Settings, storage: StorageConnection) -> AzureBlobs | None:
        if settings.blob_container is None:
            return None
        if storage.blobs is None:
            raise ConfigurationError(
                f"EXACTLYONCE__blobContainer names a container, but not where it is: set {settings.connection}__blobServiceUri."
            )
        return AzureBlobs(storage.blobs, settings.blob_container, self._identity)

    async def ready(self) -> None:
        """Verify the accounts, once; until it passes, every call tries again.

        Raises:
            ConfigurationError: naming all that has to be changed.
            TryAgainLater: the account could not be asked.
        """
        if self._verified:
            return
        async with self._verifying:
            if not self._verified:
                try:
                    client = await self._connection.client()
                except FAILURES as error:
                    raise TryAgainLater(
                        f"Cosmos DB could not be reached ({type(error).__name__}). If this stays, check "
                        "COSMOS__accountEndpoint and the network."
                    ) from error
                await verify(client, self._database, self._containers, self._library)
                if self.blobs is not None:
                    await self.blobs.verify()
                self._verified = True

    async def close(self) -> None:
        """Close all clients."""
        await self._connection.close()
        await self._transport.close()
        if self.blobs is not None:
            await self.blobs.close()
        if self._identity is not None:
            await self._identity.close()
