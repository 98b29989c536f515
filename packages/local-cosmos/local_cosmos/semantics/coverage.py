"""What a feed (query, list, change feed) reads: which keys of which physical partitions, as of which commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from local_cosmos.semantics.container import Container
from local_cosmos.semantics.errors import bad_request
from local_cosmos.semantics.key_hashes import LARGEST, SMALLEST
from local_cosmos.semantics.ranges import PhysicalPartition
from local_cosmos.semantics.requests import Reply, Request
from local_cosmos.semantics.sessions import token

_DEFAULT_PAGE: Final = 100
_NO_LIMIT: Final = 1_000_000
CROSSES: Final = "Cross partition query is required but disabled: name a partition key or enable it."


@dataclass(frozen=True, slots=True)
class Part:
    """What a feed reads of one physical partition: keys from `low` to `high`, as of an LSN."""

    partition: PhysicalPartition
    low: str
    high: str
    lsn: int


def seen(container: Container, parts: Sequence[Part], reply: Reply) -> Reply:
    """A feed's reply, with the token of what has been seen of each partition."""
    lsns = [(part.partition, min(part.lsn, part.partition.lsn)) for part in parts]
    reply = replace(reply, session_token=token(lsns), content_path=container.path)
    if len(lsns) != 1:
        return reply
    ((partition, lsn),) = lsns
    return replace(reply, range_id=partition.id, lsn=lsn)


def covered(container: Container, request: Request) -> list[Part]:
    """What a request for a feed reads.

    Raises:
        RefusedError: 400, 404 or 410; see the documentation of session tokens and ranges.
    """
    low, high = _bounds(container, request)
    partitions = container.partitions.overlapping(low, high)
    # A client that reads a container range by range sends what it has seen so far, which need not speak of this one.
    alone = len(partitions) == 1 and request.range_id is None
    return [
        Part(
            partition,
            max(low, partition.low),
            min(high, partition.high),
            container.snapshot(request, partition, alone=alone),
        )
        for partition in partitions
    ]


def _bounds(container: Container, request: Request) -> tuple[str, str]:
    """The effective keys that a feed covers, the end exclusive."""
    if request.partition_key is not None:
        key = container.definition.keys.read(request.partition_key, prefix=True)
        return key.effective, key.effective + LARGEST
    low, high = request.low or SMALLEST, request.high or LARGEST
    if request.range_id is not None:
        partition = container.partitions.named(request.range_id)
        return max(low, partition.low), min(high, partition.high)
    if request.operation == "query" and not request.cross_partition:
        raise bad_request(CROSSES)
    return low, high


def page_size(request: Request) -> int:
    """Most items in the page that a request asks for."""
    if request.page_size is None:
        return _DEFAULT_PAGE
    return request.page_size if request.page_size > 0 else _NO_LIMIT
