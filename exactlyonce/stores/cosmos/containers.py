"""The containers of entities and of the library, by the logical partitions that an entity has in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from exactlyonce.effects.port import AsyncAdapter
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer, require_storable
from exactlyonce.stores.cosmos.partition import CosmosPartition
from exactlyonce.values.identity import EntityRef, PartitionValue

LIBRARY_CONTAINER: Final = "exactlyonce"
TIME_LIMIT: Final = 10.0


class CosmosContainers(AsyncAdapter):
    """The base of the store: finds the partitions that an effect is about. Its arguments are those of `CosmosStore`."""

    def __init__(
        self,
        connection: CosmosConnection,
        entities: Iterable[EntityContainer],
        library: str = LIBRARY_CONTAINER,
        *,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self._connection = connection
        self._containers = {entity.type: entity for entity in entities}
        self._library_container = library
        self._time_limit = time_limit

    def _entity(self, entity: EntityRef) -> CosmosPartition:
        return self._partition(entity, self._containers[entity.type].container, entity.partition)

    def _library(self, entity: EntityRef) -> CosmosPartition:
        return self._partition(entity, self._library_container, (entity.key,))

    def _partition(self, entity: EntityRef, container: str, key: tuple[PartitionValue, ...]) -> CosmosPartition:
        require_storable(entity)
        return CosmosPartition(self._connection, container, key, self._time_limit)
