"""What an application needs in its accounts, for tools that create it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to exist in the accounts of an application.

    Attributes:
        database: of Cosmos DB.
        containers: for each container of its entities, the paths of the partition key.
        library_container: where the library keeps its documents; its partition key is `/pk`, its `defaultTtl` -1.
        queues: queues, or topics, that its destinations lead to.
        blob_container: for large messages; None for none.
    """

    database: str
    containers: Mapping[str, tuple[str, ...]]
    library_container: str
    queues: tuple[str, ...]
    blob_container: str | None

    @classmethod
    def of(cls, entities: Iterable[Entity[Any]], destinations: Iterable[Destination], settings: Settings) -> Needs:
        """The needs of an application with these entities, destinations and settings."""
        names = (one.name for one in destinations)
        return cls(
            database=settings.database,
            containers={one.container: one.paths for one in entities},
            library_container=settings.library_container,
            queues=tuple(settings.destinations.get(name, name) for name in names),
            blob_container=settings.blob_container,
        )
