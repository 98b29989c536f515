"""What a container holds, as the `x-ms-resource-usage` header says it to a client that asks for quota information."""

from __future__ import annotations

from local_cosmos.semantics.container import Container
from local_cosmos.semantics.key_hashes import LARGEST, SMALLEST

_KILOBYTE = 1024


def resource_usage(container: Container, low: str = SMALLEST, high: str = LARGEST) -> str:
    """Number and size (in KB, rounded up) of the visible items with effective keys from `low` to `high`, exclusive.

    The Spark connector takes both from the container's header, and for each physical partition from its change feed's.
    """
    sizes = [len(item.raw) for _, item in container.store.scan(low, high) if not container.is_expired(item)]
    kilobytes = -(-sum(sizes) // _KILOBYTE)
    return f"documentsSize={kilobytes};documentsCount={len(sizes)};collectionSize={kilobytes};"
