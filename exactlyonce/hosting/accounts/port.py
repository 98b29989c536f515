"""The accounts of an application: their port, their needs, and their checks at the start."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.drivers.observer import Observer
from exactlyonce.drivers.publisher import Address
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting.accounts.ownership import Ownership
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.stores.port import AsyncListing, AsyncStore
from exactlyonce.transports.http import Wire


class Accounts(Protocol):
    """Store, queues, blobs and the wire of one application in one process."""

    @property
    def store(self) -> AsyncStore: ...
    @property
    def listing(self) -> AsyncListing: ...
    @property
    def ownership(self) -> Ownership: ...
    @property
    def addresses(self) -> Mapping[str, Address]:
        """The queue or topic of each destination."""

    @property
    def blobs(self) -> AsyncBlobs | None:
        """The container for blobs; None without blobs."""

    @property
    def wire(self) -> Wire:
        """The wire for the requests of calls."""

    async def ready(self) -> None:
        """Verify the accounts, and the owner of the library's container.

        Raises:
            ConfigurationError, TryAgainLater: an account is not set up as required, or did not answer.
            DamagedDocument, NewerSchema: the document of the application cannot be trusted.
        """

    async def verify(self) -> None:
        """Verify the accounts only. Raises `ConfigurationError`, `TryAgainLater`."""

    def lifetime(self, end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
        """A generator for the time of the event loop: at its end the generator awaits `end` and closes the clients."""

    async def close(self) -> None:
        """Close the clients. A second call does nothing."""


# Needs of an application, for tools that create accounts.


@dataclass(frozen=True, slots=True)
class Needs:
    """The containers, queues and topics that an application requires.

    Attributes:
        database: the database of Cosmos DB.
        containers: for each container of entities, the paths of the partition key.
        library_container: the library's container; its partition key is `/pk`, its `defaultTtl` -1.
        queues: the queues or topics of the destinations.
        blob_container: the container for large messages; None for no blobs.
    """

    database: str
    containers: Mapping[str, tuple[str, ...]]
    library_container: str
    queues: tuple[str, ...]
    blob_container: str | None

    @classmethod
    def of(cls, entities: Iterable[Entity[Any]], destinations: Iterable[Destination], settings: Settings) -> Needs:
        names = (destination.name for destination in destinations)
        return cls(
            database=settings.database,
            containers={entity.container: entity.paths for entity in entities},
            library_container=settings.library_container,
            queues=tuple(settings.destinations.get(name, name) for name in names),
            blob_container=settings.blob_container,
        )


# Start-up: the checks before the first request to an account.


class Startup:
    """Binds an application to its event loop, looks for an observer, and verifies the accounts, each on first use.

    Args:
        resources: the accounts: verified before the first request to the store, closed at the end of the event loop.
        runtime: holds the observer.
        end: awaited before the clients are closed.
    """

    def __init__(self, resources: Accounts, runtime: Runtime, end: Callable[[], Awaitable[None]]) -> None:
        self._resources = resources
        self._runtime = runtime
        self._lifetime = resources.lifetime(end)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def begin(self) -> None:
        """Bind the application to the running event loop, and look for an observer. No account gets a request.

        Raises:
            ConfigurationError: the application was used on another event loop, and its clients belong to that loop.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            await anext(self._lifetime)  # The end of the loop finishes the generator, and so closes the clients.
        if self._loop is not loop:
            raise ConfigurationError(
                "The application is used from a second event loop. Let an `async def` function await it."
            )
        self._runtime.observer_slot.look(lambda: observer_of_this_process(self._runtime.clock.now))

    async def ready(self) -> None:
        """Begin, and verify the accounts and the container's owner. Raises as `begin` and `Accounts.ready` do."""
        await self.begin()
        await self._resources.ready()


# The OpenTelemetry SDK of a process.


def observer_of_this_process(now: Callable[[], datetime]) -> Observer | None:
    """An observer that reports to the process's SDK; None without an SDK."""
    # Configuring an SDK imports the API: a process without that import has no SDK and need not load the adapter.
    if "opentelemetry" not in sys.modules:
        return None
    from exactlyonce.telemetry.opentelemetry import configured  # noqa: PLC0415

    return configured(now)
