"""Queries of entities: what is there, without tombstones and the library's own documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.keys import EntityKey
from exactlyonce.stores.listing import AsyncListing, Condition
from exactlyonce.values.identity import PartitionValue

State = TypeVar("State")


async def queried(
    listing: AsyncListing,
    entity: Entity[State],
    condition: Condition,
    partition: PartitionValue | tuple[PartitionValue, ...] | None,
) -> AsyncIterator[tuple[EntityKey, State]]:
    """As `ExactlyOnce.query`, which documents it."""
    within = partition if isinstance(partition, tuple) or partition is None else (partition,)
    if within is not None and len(within) != len(entity.paths):
        raise ConfigurationError(
            f"Entity {entity.name!r} has the partition key {', '.join(entity.paths)}; partition= has {len(within)} value(s)."
        )
    async for page in listing.bodies(entity.name, condition, within):
        for ref, body in page:
            yield EntityKey(ref.id, ref.partition), entity.shape.read(ref, body)
