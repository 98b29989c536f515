"""Where the document of the application lies: the port, and a place in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from exactlyonce.records.application import Application, application_document, read_application
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class StoredApplication:
    """The document, in the newest version there was.

    Attributes:
        application: what it says.
        etag: of that version.
        now: the store's present.
    """

    application: Application
    etag: str
    now: datetime


class AsyncApplicationStore(Protocol):
    """One document.

    All methods raise `TryAgainLater` where the store does not answer, and `ConfigurationError` for what only an operator can
    change.
    """

    async def claim(self, application: Application) -> StoredApplication:
        """Write the document if there is none; what is stored then.

        Raises:
            DamagedDocument, NewerSchema: there is one that cannot be trusted.
        """
        ...

    async def load(self) -> StoredApplication | None:
        """What is stored, if anything. Raises `DamagedDocument`, `NewerSchema`."""
        ...

    async def replace(self, application: Application, etag: str) -> bool:
        """Replace the document, if it still has this ETag; whether it had. If nobody knows, it had not."""
        ...


class MemoryApplicationStore:
    """The document in memory: for tests and simulations.

    Args:
        now: the store's clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._stored: Json | None = None
        self._version = 0

    async def claim(self, application: Application) -> StoredApplication:
        found = await self.load()
        if found is not None:
            return found
        return self._put(application)

    async def load(self) -> StoredApplication | None:
        if self._stored is None:
            return None
        return StoredApplication(read_application(self._stored.value), str(self._version), self._now())

    async def replace(self, application: Application, etag: str) -> bool:
        if self._stored is None or etag != str(self._version):
            return False
        self._put(application)
        return True

    def _put(self, application: Application) -> StoredApplication:
        self._stored = Json.of(application_document(application))
        self._version += 1
        return StoredApplication(application, str(self._version), self._now())
