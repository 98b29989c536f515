"""The accounts of an application, as its parts see them: those of Azure, or others in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Protocol

from exactlyonce.blobs.port import AsyncBlobs
from exactlyonce.drivers.publisher import Address
from exactlyonce.hosting.accounts.ownership import Ownership
from exactlyonce.hosting.calls.wire import Wire
from exactlyonce.stores.listing import AsyncListing
from exactlyonce.stores.port import AsyncStore


class Accounts(Protocol):
    """Store, queues, blobs and the wire of one application in one process."""

    @property
    def store(self) -> AsyncStore:
        """The store of documents."""
        ...

    @property
    def listing(self) -> AsyncListing:
        """The listings of that store."""
        ...

    @property
    def ownership(self) -> Ownership:
        """The ownership of the library's container."""
        ...

    @property
    def addresses(self) -> Mapping[str, Address]:
        """By destination its queue or topic."""
        ...

    @property
    def blobs(self) -> AsyncBlobs | None:
        """The container for blobs; None if there is none."""
        ...

    @property
    def wire(self) -> Wire:
        """What sends the requests of calls."""
        ...

    async def ready(self) -> None:
        """Verify the accounts, and that the library's container is this application's.

        Raises:
            ConfigurationError, TryAgainLater: they are not set up as required, or did not answer.
            DamagedDocument, NewerSchema: the document of the application cannot be trusted.
        """
        ...

    async def verify(self) -> None:
        """Verify the accounts only. Raises `ConfigurationError`, `TryAgainLater`."""
        ...

    def lifetime(self, end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
        """A generator that ends with the event loop, and then awaits `end` and closes the clients."""
        ...

    async def close(self) -> None:
        """Close the clients. Calling it twice does no harm."""
        ...
