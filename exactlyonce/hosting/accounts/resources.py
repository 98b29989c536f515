"""Azure clients of one process: opened on first use, verified once, closed together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from azure.core.credentials_async import AsyncTokenCredential

from exactlyonce.drivers.publisher import Address
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.environment import default_credential
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting.accounts.ownership import Declared, Ownership
from exactlyonce.hosting.config.connections import Connections
from exactlyonce.hosting.config.settings import Settings, require_fit
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.stores.cosmos.application import CosmosApplicationStore, verify
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.listing import CosmosListing
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.replies import FAILURES
from exactlyonce.stores.cosmos.store import CosmosStore, unfit_for_companions
from exactlyonce.transports.http import HttpWire

if TYPE_CHECKING:
    from exactlyonce.stores.blobs.azure import AzureBlobs
    from exactlyonce.transports.service_bus.sender import ServiceBusTransport
    from exactlyonce.transports.storage_queue import StorageQueueTransport


class AzureResources:
    """Clients of Cosmos DB, of queues of either kind, of blobs, and of called services, as the settings name them.

    Args:
        runtime: its observer gets the request units of every reply of Cosmos DB.
        dated: called with the time of every reply of Cosmos DB; None for no call.

    Raises:
        ConfigurationError: settings do not fit the destinations or the account; the text names all faults.
    """

    def __init__(
        self,
        settings: Settings,
        connections: Connections,
        entities: Iterable[Entity[Any]],
        destinations: Iterable[Destination],
        *,
        runtime: Runtime,
        dated: Callable[[datetime], None] | None = None,
    ) -> None:
        entities = tuple(entities)
        names = tuple(destination.name for destination in destinations)
        require_fit(settings, connections, names)
        storage = connections.storage
        queues = {name: settings.destinations.get(name, name) for name in names}
        charged = runtime.observer_slot.charged
        key = settings.account_key.get_secret_value() if settings.account_key else None
        self._database = settings.database
        self._containers = tuple(
            EntityContainer(item.name, item.container, item.paths, companions=not isinstance(item.strategy, Outbox))
            for item in entities
        )
        keepers = [container for container in self._containers if container.companions]
        if unfit := [problem for container in keepers for problem in unfit_for_companions(container)]:
            raise ConfigurationError("\n".join(unfit))
        self._library = settings.library_container
        client = settings.client_id
        self._connection = CosmosConnection(
            settings.account_endpoint, self._database, key=key, client_id=client, charged=charged, dated=dated
        )
        self._checks: list[Callable[[], Awaitable[None]]] = [self._verify_cosmos]
        self._identities: list[AsyncTokenCredential] = []
        identity = None if storage is None else self._identity(storage.client_id)
        self._transport = self._transport_of(settings, connections, identity, queues.values())
        self.blobs: AzureBlobs | None = None
        if settings.blob_container is not None and storage is not None and storage.blobs is not None:
            from exactlyonce.stores.blobs.azure import AzureBlobs  # noqa: PLC0415

            self.blobs = AzureBlobs(storage.blobs, settings.blob_container, identity)
            self._checks.append(self.blobs.verify)
        self.wire = HttpWire()
        self._verifying = asyncio.Lock()
        self._verified = False
        self.store = CosmosStore(self._connection, self._containers, self._library)
        self.listing = CosmosListing(self._connection, self._containers, self._library)
        application = CosmosApplicationStore(self._connection, self._library)
        self.ownership = Ownership(application, Declared.by(settings, entities), runtime.clock)
        self.addresses = {name: Address(self._transport, queue) for name, queue in queues.items()}

    def _transport_of(
        self,
        settings: Settings,
        connections: Connections,
        identity: AsyncTokenCredential | None,
        queues: Collection[str],
    ) -> StorageQueueTransport | ServiceBusTransport:
        # Imported here: each SDK takes a tenth of a second of a start, and few applications use all.
        storage, service_bus = connections.storage, connections.service_bus
        if settings.transport == "servicebus":
            from exactlyonce.transports.service_bus.sender import ServiceBusTransport  # noqa: PLC0415

            assert service_bus is not None  # noqa: S101  # `require_fit` has checked it.
            bus = ServiceBusTransport(
                service_bus.namespace,
                self._identity(service_bus.client_id),
                delivery_limit=settings.delivery_limit,
                message_bytes=settings.message_bytes,
            )
            self._checks.append(lambda: bus.verify(queues))
            return bus
        from exactlyonce.transports.storage_queue import StorageQueueTransport  # noqa: PLC0415

        assert storage is not None  # noqa: S101  # As above.
        return StorageQueueTransport(storage.account, identity, delivery_limit=settings.delivery_limit)

    async def ready(self) -> None:
        await self.verify()
        await self.ownership.ready()

    async def verify(self) -> None:
        """Verify the accounts until all checks pass, then never again. A `ConfigurationError` names all faults.

        Storage queues are not verified: an identity that may only send may not read their properties, and a missing queue is
        created.
        """
        if self._verified:
            return
        async with self._verifying:
            if not self._verified:
                await _pass_all(check() for check in self._checks)
                self._verified = True

    async def _verify_cosmos(self) -> None:
        try:
            client = await self._connection.client()
        except FAILURES as error:
            raise TryAgainLater(
                f"Cosmos DB could not be reached ({type(error).__name__}). If this stays, check "
                "COSMOS__accountEndpoint and the network, and, without a key, that this process has an identity."
            ) from error
        await verify(client, self._database, self._containers, self._library)

    async def lifetime(self, end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
        # The host does not notify an application of the end of its process, but an ending event loop finishes its generators.
        try:
            yield
        finally:
            await end()
            await self.close()

    async def close(self) -> None:
        await self._connection.close()
        await self._transport.close()
        await self.wire.close()
        if self.blobs is not None:
            await self.blobs.close()
        for identity in self._identities:
            await identity.close()

    def _identity(self, client_id: str | None) -> AsyncTokenCredential | None:
        """The credential of a user-assigned identity; None for the process's own, which every client finds alone."""
        if client_id is None:
            return None
        self._identities.append(default_credential(client_id))
        return self._identities[-1]


async def _pass_all(checks: Iterable[Awaitable[None]]) -> None:
    """Make all checks, and raise their failures as one error; failures of the configuration come first."""
    errors = [item for item in await asyncio.gather(*checks, return_exceptions=True) if item is not None]
    for error in errors:
        if not isinstance(error, ConfigurationError | TryAgainLater):
            raise error
    if any(isinstance(error, ConfigurationError) for error in errors):
        errors.sort(key=lambda item: isinstance(item, TryAgainLater))
        raise ConfigurationError("\n".join(str(error) for error in errors)) from errors[0]
    for error in errors:
        raise error
