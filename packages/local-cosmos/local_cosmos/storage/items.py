"""The port: how the semantics see the items of one container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from local_cosmos.values import JsonObject, parse_own

PropertyPath: TypeAlias = tuple[str, ...]
"""Names from the root of an item to one of its values."""

ItemKey = tuple[str, str]
"""Effective partition key, in hexadecimal digits, and id: what an item is unique by."""


IndexKey: TypeAlias = tuple[int, Any]
"""A value as indexes sort it: the rank of its type, and what compares within the type."""


class Range(NamedTuple):
    """Values of one type, both ends included: the rank of the type, and what compares within it."""

    rank: int
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Item:
    """One version of an item.

    Attributes:
        id: Unique within its partition key.
        raw: All properties, system properties included, as JSON text.
        etag: Quoted; new with every write.
        modified: Time of the write, in whole seconds since 1970 (`_ts`).
        ordinal: Rises with every item created in the container; the order of a scan within a partition key.
        ttl: Its own time to live in seconds, -1 for never; None when the container decides.
    """

    id: str
    raw: bytes
    etag: str
    modified: int
    ordinal: int
    ttl: int | None

    @property
    def document(self) -> JsonObject:
        """All properties, parsed anew: kept beside the text they would take more than twice its memory."""
        document: JsonObject = parse_own(self.raw)
        return document


class ItemStore(Protocol):
    """Items of one container, with the versions that lagging replicas may still serve.

    A log sequence number (LSN) counts the commits of one physical partition. `lsn=None` reads the newest version.
    """

    def find(self, key: ItemKey, lsn: int | None = None) -> Item | None:
        """The version of an item as of `lsn`; expired items included."""

    def scan(self, low: str, high: str, lsn: int | None = None) -> Iterator[tuple[str, Item]]:
        """Effective key and item, for `low <= key < high`, in the order of key and ordinal."""

    def is_small(self, low: str, high: str) -> bool:
        """Whether there are so few items, for `low <= key < high`, that no index spares anything."""

    def most_selective(
        self, demands: Mapping[PropertyPath, Sequence[Range]], low: str, high: str
    ) -> PropertyPath | None:
        """The path whose index leaves the fewest items, for `low <= key < high`; None where a scan is as good.

        Args:
            demands: By path, the ranges one of which has to have the value.
            low, high: Bounds of the effective keys.
        """

    def search(
        self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str, lsn: int | None = None
    ) -> Iterator[tuple[str, Item]]:
        """What `scan` gives, without most of the items whose value is in none of the ranges."""

    def walk(
        self,
        path: PropertyPath,
        low: str,
        high: str,
        lsn: int | None = None,
        *,
        descending: bool,
        begin: IndexKey | None,
    ) -> Iterator[tuple[str, Item]]:
        """What `scan` gives of the items that have a value at the path, in the order of the values and then of the ordinals.

        Args:
            path: From the root of an item.
            low, high: Bounds of the effective keys.
            lsn: As for `scan`.
            descending: Backwards.
            begin: The value to begin at; None for the first.
        """

    def changes(self, low: str, high: str, after: int, lsn: int) -> Iterator[tuple[int, Item]]:
        """LSN and item for the newest version, as of `lsn`, of every item written after LSN `after`, deletes left out; in
        the order of the LSNs."""

    def commit(self, effective: str, changes: Mapping[str, Item | None], lsn: int, horizon: int) -> None:
        """Write items (None: deleted) of one partition key, all of them or none.

        Args:
            effective: The partition key's hash.
            changes: New version by id.
            lsn: The LSN of this commit.
            horizon: No reader will ask for anything older than this LSN.
        """
