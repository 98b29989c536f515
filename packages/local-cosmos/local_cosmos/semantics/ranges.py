"""Physical partitions: each owns a range of effective partition keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from local_cosmos.semantics.errors import RefusedError
from local_cosmos.semantics.key_hashes import LARGEST, SMALLEST, KeyHash
from local_cosmos.storage.keeper import KeptRange
from local_cosmos.values import JsonObject


@dataclass(slots=True)
class PhysicalPartition:
    """One range of keys.

    Attributes:
        low: Its first effective key.
        high: The end of the range, exclusive.
        lsn: The log sequence number of its last commit.
        parents: Ids of the ranges it was split from.
    """

    id: str
    low: str
    high: str
    lsn: int = 0
    parents: tuple[str, ...] = ()

    def document(self) -> JsonObject:
        """What `pkranges` says of it."""
        return {
            "id": self.id,
            "minInclusive": self.low,
            "maxExclusive": self.high,
            "parents": list(self.parents),
            "ridPrefix": int(self.id),
            "throughputFraction": 1,
            "status": "online",
            "lsn": self.lsn,
        }


class PhysicalPartitions:
    """All physical partitions of a container; together they own every key.

    Args:
        count: How many there are; each owns an equal part of the hashes, the last one also what is left over.
        hashing: Says where keys lie.
    """

    def __init__(self, count: int, hashing: KeyHash) -> None:
        inner = (hashing.bound(hashing.hashes // count * number) for number in range(1, count))
        bounds = [SMALLEST, *inner, LARGEST]
        self._hashing = hashing
        self._created = 0
        self._partitions = [PhysicalPartition(self._next_id(), low, high) for low, high in pairwise(bounds)]
        self._lows = bounds[:-1]

    @classmethod
    def restored(cls, kept: Sequence[KeptRange], hashing: KeyHash) -> PhysicalPartitions:
        """The partitions as they were kept."""
        partitions = cls(1, hashing)
        partitions._partitions = [PhysicalPartition(r.id, r.low, r.high, r.lsn, r.parents) for r in kept]
        partitions._lows = [r.low for r in kept]
        partitions._created = 1 + max(int(r.id) for r in kept)
        return partitions

    def kept(self) -> tuple[KeptRange, ...]:
        """What has to be kept of them."""
        return tuple(KeptRange(p.id, p.low, p.high, p.lsn, p.parents) for p in self._partitions)

    @property
    def etag(self) -> str:
        """Changes with the ranges."""
        return '"' + "-".join(partition.id for partition in self._partitions) + '"'

    def split(self, range_id: str) -> Sequence[PhysicalPartition]:
        """Replace a partition by two, each with half of its hashes and all of its past; returns them.

        Raises:
            RefusedError: 410/1002; there is no such partition.
        """
        parent = self.named(range_id)
        middle = self._hashing.bound((self._number(parent.low) + self._number(parent.high)) // 2)
        parents = (*parent.parents, parent.id)
        halves = [
            PhysicalPartition(self._next_id(), parent.low, middle, parent.lsn, parents),
            PhysicalPartition(self._next_id(), middle, parent.high, parent.lsn, parents),
        ]
        place = self._partitions.index(parent)
        self._partitions[place : place + 1] = halves
        self._lows.insert(place + 1, middle)
        return halves

    def all(self) -> Sequence[PhysicalPartition]:
        """In the order of their ranges."""
        return self._partitions

    def owner(self, effective: str) -> PhysicalPartition:
        """The partition that owns a key."""
        return self._partitions[bisect_right(self._lows, effective) - 1]

    def named(self, range_id: str) -> PhysicalPartition:
        """The partition with an id.

        Raises:
            RefusedError: 410/1002; it was split, or never was.
        """
        for partition in self._partitions:
            if partition.id == range_id:
                return partition
        raise RefusedError(410, f"The partition key range {range_id} is gone.", 1002)

    def overlapping(self, low: str, high: str) -> Sequence[PhysicalPartition]:
        """The partitions that own keys from `low` to `high`, exclusive."""
        return [partition for partition in self._partitions if partition.low < high and low < partition.high]

    def _next_id(self) -> str:
        self._created += 1
        return str(self._created - 1)

    def _number(self, bound: str) -> int:
        if bound == SMALLEST:
            return 0
        return self._hashing.hashes if bound == LARGEST else self._hashing.number(bound)
