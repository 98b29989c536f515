"""Items in memory, as linked versions; versions that no replica can serve any more are dropped with the next commits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from local_cosmos.storage.change_log import ChangeLogs
from local_cosmos.storage.index import Entry, Indexes, key_of
from local_cosmos.storage.items import IndexKey, Item, ItemKey, PropertyPath, Range
from local_cosmos.values import follow

FEW: Final = 100
"""Items that are looked at one by one sooner than an index finds them."""

_SPARED: Final = 4
"""An index is asked if it leaves at most one item in so many."""


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
    _indexes: Indexes = field(default_factory=Indexes)
    _logs: ChangeLogs = field(default_factory=ChangeLogs)

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

    def is_small(self, low: str, high: str) -> bool:
        """Whether there are so few items that no index spares anything."""
        return self._about(low, high) <= FEW

    def most_selective(
        self, demands: Mapping[PropertyPath, Sequence[Range]], low: str, high: str
    ) -> PropertyPath | None:
        """The path whose index leaves the fewest items; None where a scan is as good."""
        best, most = None, self._about(low, high) // _SPARED + 1
        if most <= FEW // _SPARED + 1:
            return None
        for path, ranges in demands.items():
            count = self._indexed(path).count(path, ranges, low, high, most=most)
            if count < most:
                best, most = path, count
        return best

    def search(
        self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str, lsn: int | None = None
    ) -> Iterator[tuple[str, Item]]:
        """What `scan` gives, without most of the items whose value is in none of the ranges."""
        for entry in self._indexed(path).find(path, ranges, low, high):
            item = self._entered(entry, lsn)
            if item is not None:
                yield entry.effective, item

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
        """What `scan` gives of the items that have a value at the path, in the order of the values."""
        for entry, key in self._indexed(path).walk(path, low, high, descending=descending, begin=begin):
            item = self._entered(entry, lsn)
            if item is not None and (self._is_alone(entry) or key_of(follow(item.document, path)) == key):
                yield entry.effective, item

    def changes(self, low: str, high: str, after: int, lsn: int) -> Iterator[tuple[int, Item]]:
        """LSN and item for every item written after LSN `after` and by `lsn`, in the order of the LSNs."""
        for written, (effective, item_id) in self._logs.since((low, high), after, lambda: self._writes(low, high)):
            version = _as_of(self._by_key.get(effective, {}).get(item_id), lsn)
            if version is not None and version.item is not None and version.lsn == written:
                yield written, version.item

    def commit(self, effective: str, changes: Mapping[str, Item | None], lsn: int, horizon: int) -> None:
        """Write items of one partition key under one LSN."""
        versions = self._by_key.get(effective)
        if versions is None:
            versions = self._by_key[effective] = {}
            insort(self._ordered_keys, effective)
        for item_id, item in changes.items():
            older = versions.get(item_id)
            versions[item_id] = _Version(lsn, item, older)
            if item is not None:
                self._logs.add((effective, item_id), lsn)
                if self._indexes.are_there:
                    self._indexes.add(effective, item)
            if older is not None or item is None:
                self._superseded.append((lsn, (effective, item_id)))
        self._forget(horizon)

    def _keys(self, low: str, high: str) -> Iterator[str]:
        keys = self._ordered_keys  # Not copied: there may be a million of them, and a page needs a few.
        return (keys[number] for number in range(bisect_left(keys, low), bisect_left(keys, high)))

    def _about(self, low: str, high: str) -> int:
        """How many items there are; where they have many keys, only these are counted."""
        keys = self._ordered_keys
        first, end = bisect_left(keys, low), bisect_left(keys, high)
        return end - first if end - first > FEW else sum(len(self._by_key[key]) for key in keys[first:end])

    def _indexed(self, path: PropertyPath) -> Indexes:
        """The indexes, with one of the path."""
        if path not in self._indexes:
            self._indexes.build(path, self._all_versions())
        return self._indexes

    def _all_versions(self) -> Iterator[tuple[str, Item]]:
        for effective, versions in self._by_key.items():
            for newest in versions.values():
                for version in _chain(newest):
                    if version.item is not None:
                        yield effective, version.item

    def _writes(self, low: str, high: str) -> Iterator[tuple[int, ItemKey]]:
        """Every version, with its LSN."""
        for effective in self._keys(low, high):
            for item_id, newest in self._by_key[effective].items():
                yield from (
                    (version.lsn, (effective, item_id)) for version in _chain(newest) if version.item is not None
                )

    def _entered(self, entry: Entry, lsn: int | None) -> Item | None:
        """The item of an entry as of `lsn`, unless it was deleted and created anew."""
        item = self.find((entry.effective, entry.id), lsn)
        return item if item is not None and item.ordinal == entry.ordinal else None

    def _is_alone(self, entry: Entry) -> bool:
        """Whether an item has one version, so that its entries are right."""
        return self._by_key[entry.effective][entry.id].older is None

    def _forget(self, horizon: int) -> None:
        """Drop what was superseded at or before the horizon."""
        while self._superseded and self._superseded[0][0] <= horizon:
            lsn, (effective, item_id) = self._superseded.popleft()
            versions = self._by_key.get(effective, {})
            version = versions.get(item_id)
            while version is not None and version.lsn > lsn:
                version = version.older
            if version is not None:
                dropped, version.older = version.older, None
                if self._indexes.are_there:
                    self._unindex(effective, dropped, versions[item_id])
            newest = versions.get(item_id)
            if newest is not None and newest.item is None and newest.lsn <= horizon:
                del versions[item_id]
                self._drop_if_empty(effective, versions)

    def _unindex(self, effective: str, dropped: _Version | None, newest: _Version) -> None:
        kept = [version.item for version in _chain(newest) if version.item is not None]
        for version in _chain(dropped):
            if version.item is not None:
                self._indexes.remove(effective, version.item, kept)

    def _drop_if_empty(self, effective: str, versions: _Versions) -> None:
        if not versions:
            del self._by_key[effective]
            del self._ordered_keys[bisect_left(self._ordered_keys, effective)]


def _chain(version: _Version | None) -> Iterator[_Version]:
    """A version and all older ones."""
    while version is not None:
        yield version
        version = version.older


def _as_of(version: _Version | None, lsn: int | None) -> _Version | None:
    while version is not None and lsn is not None and version.lsn > lsn:
        version = version.older
    return version
