"""Items in memory, as linked versions; versions that no replica can serve any more are dropped with the next commits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from local_cosmos.storage.items import Item, ItemKey


@dataclass(slots=True)
class _Version:
    lsn: int
    item: Item | None  # None: deleted at this LSN
    older: _Version | None


_Versions = dict[str, _Version]


@dataclass(slots=True)
class MemoryItemStore:
    """The items of one container (see `ItemStore`)."""

    _by_key: dict[str, _Versions] = field(default_factory=dict)
    _ordered_keys: list[str] = field(default_factory=list)
    _superseded: deque[tuple[int, ItemKey]] = field(default_factory=deque)

    def find(self, key: ItemKey, lsn: int | None = None) -> Item | None:
        """The version of an item as of `lsn`."""
        effective, item_id = key
        version = _as_of(self._by_key.get(effective, {}).get(item_id), lsn)
        return None if version is None else version.item

    def scan(self, low: str, high: str, lsn: int | None = None) -> Iterator[tuple[str, Item]]:
        """Effective key and item, for `low <= key < high`, in the order of key and ordinal."""
        for effective in self._keys(low, high):
            versions = (_as_of(version, lsn) for version in self._by_key[effective].values())
            items = [version.item for version in versions if version is not None and version.item is not None]
            items.sort(key=lambda item: item.ordinal)
            for item in items:
                yield effective, item

    def changes(self, low: str, high: str, after: int, lsn: int) -> Iterator[tuple[int, Item]]:
        """LSN and item for every item written after LSN `after` and by `lsn`, in the order of the LSNs."""
        newest = (_as_of(version, lsn) for key in self._keys(low, high) for version in self._by_key[key].values())
        written = [(v.lsn, v.item) for v in newest if v is not None and v.item is not None and v.lsn > after]
        return iter(sorted(written, key=lambda change: change[0]))

    def commit(self, effective: str, changes: Mapping[str, Item | None], lsn: int, horizon: int) -> None:
        """Write items of one partition key under one LSN."""
        versions = self._by_key.get(effective)
        if versions is None:
            versions = self._by_key[effective] = {}
            insort(self._ordered_keys, effective)
        for item_id, item in changes.items():
            older = versions.get(item_id)
            versions[item_id] = _Version(lsn, item, older)
            if older is not None or item is None:
                self._superseded.append((lsn, (effective, item_id)))
        self._forget(horizon)

    def _keys(self, low: str, high: str) -> list[str]:
        return self._ordered_keys[bisect_left(self._ordered_keys, low) : bisect_left(self._ordered_keys, high)]

    def _forget(self, horizon: int) -> None:
        """Drop what was superseded at or before the horizon."""
        while self._superseded and self._superseded[0][0] <= horizon:
            lsn, (effective, item_id) = self._superseded.popleft()
            versions = self._by_key.get(effective, {})
            version = versions.get(item_id)
            while version is not None and version.lsn > lsn:
                version = version.older
            if version is not None:
                version.older = None
            newest = versions.get(item_id)
            if newest is not None and newest.item is None and newest.lsn <= horizon:
                del versions[item_id]
                self._drop_if_empty(effective, versions)

    def _drop_if_empty(self, effective: str, versions: _Versions) -> None:
        if not versions:
            del self._by_key[effective]
            del self._ordered_keys[bisect_left(self._ordered_keys, effective)]


def _as_of(version: _Version | None, lsn: int | None) -> _Version | None:
    while version is not None and lsn is not None and version.lsn > lsn:
        version = version.older
    return version
