"""The port: how the semantics see the items of one container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from local_cosmos.values import JsonObject

ItemKey = tuple[str, str]
"""Effective partition key, in hexadecimal digits, and id: what an item is unique by."""


@dataclass(frozen=True, slots=True)
class Item:
    """One version of an item.

    Attributes:
        id: Unique within its partition key.
        document: All properties, system properties included; shared between readers, never changed.
        raw: The same as JSON text.
        etag: Quoted; new with every write.
        modified: Time of the write, in whole seconds since 1970 (`_ts`).
        ordinal: Rises with every item created in the container; the order of a scan within a partition key.
        ttl: Its own time to live in seconds, -1 for never; None when the container decides.
    """

    id: str
    document: JsonObject
    raw: bytes
    etag: str
    modified: int
    ordinal: int
    ttl: int | None


class ItemStore(Protocol):
    """Items of one container, with the versions that lagging replicas may still serve.

    A log sequence number (LSN) counts the commits of one physical partition. `lsn=None` reads the newest version.
    """

    def find(self, key: ItemKey, lsn: int | None = None) -> Item | None:
        """The version of an item as of `lsn`; expired items included."""

    def scan(self, low: str, high: str, lsn: int | None = None) -> Iterator[tuple[str, Item]]:
        """Effective key and item, for `low <= key < high`, in the order of key and ordinal."""

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
