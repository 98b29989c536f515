"""What a container holds: its usage, for the header `x-ms-resource-usage`, and statistics of its physical partitions."""

from __future__ import annotations

from collections.abc import Sequence

from local_cosmos.semantics.container import Container
from local_cosmos.semantics.key_hashes import LARGEST, SMALLEST
from local_cosmos.semantics.ranges import PhysicalPartition
from local_cosmos.storage.items import Item
from local_cosmos.values import JsonObject

_KILOBYTE = 1024


def statistics(container: Container) -> list[JsonObject]:
    """Size in KB, and numbers of visible items and of partition keys, of each physical partition."""
    return [_statistics(container, partition) for partition in container.partitions.all()]


def resource_usage(container: Container, low: str = SMALLEST, high: str = LARGEST) -> str:
    """Number and size (in KB, rounded up) of the visible items with effective keys from `low` to `high`, exclusive.

    The Spark connector takes both from the container's header, and for each physical partition from its change feed's.
    """
    count, kilobytes = _size(_visible(container, low, high))
    return f"documentsSize={kilobytes};documentsCount={count};collectionSize={kilobytes};"


def _statistics(container: Container, partition: PhysicalPartition) -> JsonObject:
    items = _visible(container, partition.low, partition.high)
    count, kilobytes = _size(items)
    return {
        "id": partition.id,
        "sizeInKB": kilobytes,
        "documentCount": count,
        "sampledDistinctPartitionKeyCount": len({effective for effective, _ in items}),
        "partitionKeys": [],
    }


def _visible(container: Container, low: str, high: str) -> list[tuple[str, Item]]:
    return [found for found in container.store.scan(low, high) if not container.is_expired(found[1])]


def _size(items: Sequence[tuple[str, Item]]) -> tuple[int, int]:
    """Number of items, and their size in KB."""
    return len(items), -(-sum(len(item.raw) for _, item in items) // _KILOBYTE)
