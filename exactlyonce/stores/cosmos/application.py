"""The document of the application in Cosmos DB."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Final

from exactlyonce.effects.entity import Conflict
from exactlyonce.errors import TryAgainLater
from exactlyonce.records.application import KIND, Application, application_document, read_application
from exactlyonce.stores.application import StoredApplication
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.containers import LIBRARY_CONTAINER, TIME_LIMIT
from exactlyonce.stores.cosmos.layout import LIBRARY_PATH, from_library
from exactlyonce.stores.cosmos.partition import Applied, CosmosPartition, Document
from exactlyonce.stores.cosmos.replies import Absent

_TRIES: Final = 3


class CosmosApplicationStore:
    """The document, in a partition of its own.

    A view may be stale, and this document must not be: a process that judges by a retention that was changed long ago
    judges wrongly. So it is created first, every time; the conflict has the token at which it is read.

    Args:
        connection: the account and database; closing it is its owner's.
        library: name of the library's container.
        time_limit: seconds that one request may take.
    """

    def __init__(
        self, connection: CosmosConnection, library: str = LIBRARY_CONTAINER, *, time_limit: float = TIME_LIMIT
    ) -> None:
        self._partition = CosmosPartition(connection, library, (KIND,), time_limit)

    async def claim(self, application: Application) -> StoredApplication:
        for _ in range(_TRIES):
            reply = await self._partition.create(_document(application))
            if isinstance(reply, Applied | Conflict) and (found := await self._read(reply.token)) is not None:
                return found
        raise TryAgainLater(
            "The document of the application could not be written, or not be read, in the library container."
        )

    async def load(self) -> StoredApplication | None:
        return await self._read(None)

    async def replace(self, application: Application, etag: str) -> bool:
        reply = await self._partition.replace(KIND, _document(application), etag)
        return isinstance(reply, Applied)

    async def _read(self, token: str | None) -> StoredApplication | None:
        reply = await self._partition.read(KIND, token)
        if isinstance(reply, Absent):
            return None
        if not isinstance(reply, Document) or reply.read_at is None:
            raise TryAgainLater("The document of the application could not be read in the library container.")
        present = datetime.fromtimestamp(reply.read_at, timezone.utc)
        return StoredApplication(read_application(from_library(reply.properties)), reply.properties["_etag"], present)


def _document(application: Application) -> dict[str, Any]:
    return {"id": KIND, LIBRARY_PATH[1:]: KIND, **application_document(application)}
