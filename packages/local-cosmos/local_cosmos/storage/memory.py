"""Items in memory, as linked versions; versions that no replica can serve any more are dropped with the next commits."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from local_cosmos.storage.index import Entry, Indexes, key_of
from local_cosmos.storage.items import IndexKey, Item, ItemKey, PropertyPath, Range
from local_cosmos.values import follow

Bounds: TypeAlias = tuple[str, str]
"""Of the effective keys of a feed, the end exclusive. All of them lie in one physical partition."""
Write: TypeAlias = tuple[int, ItemKey]
"""An LSN, and an item that was written under it."""

_MOST_LOGS: Final = 16
_GROWTH: Final = 2
"""A log is made anew, without writes that others replaced, when it has grown to so many times its length."""
_SHORT: Final = 1_000
"""Writes that are not worth it."""


@dataclass(slots=True)
class _Log:
    """Writes in the order of their LSNs."""

    lsns: list[int]
    items: list[ItemKey]
    most: int

    @classmethod
    def of(cls, writes: Iterable[Write]) -> _Log:
        ordered = sorted(writes, key=lambda write: write[0])
        return cls([lsn for lsn, _ in ordered], [key for _, key in ordered], max(_SHORT, _GROWTH * len(ordered)))

    def follows(self, lsn: int) -> bool:
        """Whether a write may be appended."""
        return len(self.lsns) < self.most and (not self.lsns or self.lsns[-1] <= lsn)


@dataclass(slots=True)
class ChangeLogs:
    """Which items were written when: each feed that is read gets a log, so that a page does not look at all items."""

    _logs: dict[Bounds, _Log] = field(default_factory=dict)

    def add(self, key: ItemKey, lsn: int) -> None:
        """An item was written."""
        for bounds, log in list(self._logs.items()):
            low, high = bounds
            if low <= key[0] < high:
                if log.follows(lsn):
                    log.lsns.append(lsn)
                    log.items.append(key)
                else:
                    del self._logs[bounds]

    def since(self, bounds: Bounds, after: int, writes: Callable[[], Iterable[Write]]) -> Iterator[Write]:
        """The writes after an LSN, in order; some of them may have been replaced.

        Args:
            writes: Gives all versions within the bounds, in any order.
        """
        log = self._logs.get(bounds)
        if log is None:
            if len(self._logs) >= _MOST_LOGS:
                del self._logs[next(iter(self._logs))]
            log = self._logs[bounds] = _Log.of(writes())
        for number in range(bisect_right(log.lsns, after), len(log.lsns)):
            yield log.lsns[number], log.items[number]


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
    """The items of one container, with the versions that lagging replicas may still serve.

    A log sequence number (LSN) counts the commits of one physical partition. `lsn=None` reads the newest version.
    """

    _by_key: dict[str, _Versions] = field(default_factory=dict)
    _ordered_keys: list[str] = field(default_factory=list)
    _superseded: deque[tuple[int, ItemKey]] = field(default_factory=deque)
    _indexes: Indexes = field(default_factory=Indexes)
    _logs: ChangeLogs = field(default_factory=ChangeLogs)

    def find(self, key: ItemKey, lsn: int | None = None) -> Item | None:
        """The version of an item as of `lsn`; expired items included."""
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
        """Whether there are so few items, for `low <= key < high`, that no index spares anything."""
        return self._about(low, high) <= FEW

    def most_selective(
        self, demands: Mapping[PropertyPath, Sequence[Range]], low: str, high: str
    ) -> PropertyPath | None:
        """The path whose index leaves the fewest items, for `low <= key < high`; None where a scan is as good.

        Args:
            demands: By path, the ranges one of which has to have the value.
        """
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
        """What `scan` gives of the items that have a value at the path, in the order of the values and then of the ordinals.

        Args:
            begin: The value to begin at; None for the first.
        """
        for entry, key in self._indexed(path).walk(path, low, high, descending=descending, begin=begin):
            item = self._entered(entry, lsn)
            if item is not None and (self._is_alone(entry) or key_of(follow(item.document, path)) == key):
                yield entry.effective, item

    def changes(self, low: str, high: str, after: int, lsn: int) -> Iterator[tuple[int, Item]]:
        """LSN and item for the newest version, as of `lsn`, of every item written after LSN `after`, deletes left out; in
        the order of the LSNs."""
        for written, (effective, item_id) in self._logs.since((low, high), after, lambda: self._writes(low, high)):
            version = _as_of(self._by_key.get(effective, {}).get(item_id), lsn)
            if version is not None and version.item is not None and version.lsn == written:
                yield written, version.item

    def commit(self, effective: str, changes: Mapping[str, Item | None], lsn: int, horizon: int) -> None:
        """Write items (None: deleted) of one partition key, all of them or none.

        Args:
            effective: The partition key's hash.
            horizon: No reader will ask for anything older than this LSN.
        """
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
