"""Indexes of a container's items by their values at property paths: B-trees of SQLite in memory, one for each path that a
query has had use for.

An entry says that a version of an item that somebody may still read has a value. Readers look at the version they see again,
since it may be another one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from local_cosmos.query.comparing import rank
from local_cosmos.storage.items import IndexKey, Item, PropertyPath, Range
from local_cosmos.values import UNDEFINED, follow, serialise

_LARGEST_INTEGER: Final = 1 << 63
_STRING: Final = 4
_TABLE: Final = """
CREATE TABLE entries (
    path INTEGER, rank INTEGER, value, effective TEXT, ordinal INTEGER, id BLOB,
    PRIMARY KEY (path, rank, value, effective, ordinal)
) WITHOUT ROWID
"""
_ADD: Final = "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE: Final = "DELETE FROM entries WHERE path = ? AND rank = ? AND value = ? AND effective = ? AND ordinal = ?"
_FIND: Final = """
SELECT effective, ordinal, id FROM entries
WHERE path = ? AND rank = ? AND value BETWEEN ? AND ? AND effective >= ? AND effective < ?
"""
_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM ({}) LIMIT ?)"
_WALK: Final = """
SELECT effective, ordinal, id, rank, value FROM entries
WHERE path = ? AND effective >= ? AND effective < ? AND (rank, value) {comparison} (?, ?)
ORDER BY rank {order}, value {order}, ordinal {order}
"""
_BEGINNINGS: Final[tuple[IndexKey, IndexKey]] = ((0, None), (9, 0))
"""Before the first key, and after the last one."""


class Entry(NamedTuple):
    """Where an item is that has, or had, a value."""

    effective: str
    ordinal: int
    id: str


class Indexes:
    """The indexes of one container."""

    def __init__(self) -> None:
        self._paths: dict[PropertyPath, int] = {}
        self._database: sqlite3.Connection | None = None

    def __contains__(self, path: PropertyPath) -> bool:
        return path in self._paths

    @property
    def are_there(self) -> bool:
        """Whether there is any index."""
        return bool(self._paths)

    def build(self, path: PropertyPath, items: Iterable[tuple[str, Item]]) -> None:
        """Make the index of a path; `items` are all versions that somebody may read, with their effective keys."""
        number = len(self._paths)
        rows = (
            (number, *key, effective, item.ordinal, _blob(item.id))
            for effective, item in items
            if (key := key_of(follow(item.document, path))) is not None
        )
        self._connection().executemany(_ADD, rows)
        self._paths[path] = number

    def add(self, effective: str, item: Item) -> None:
        """A version of an item is there."""
        for number, key in self._keys(item).items():
            self._connection().execute(_ADD, (number, *key, effective, item.ordinal, _blob(item.id)))

    def remove(self, effective: str, item: Item, kept: Iterable[Item]) -> None:
        """A version of an item is gone; `kept` are others of the item, which may have the same values."""
        others = [(other.ordinal, self._keys(other)) for other in kept]
        for number, key in self._keys(item).items():
            if not any(ordinal == item.ordinal and keys.get(number) == key for ordinal, keys in others):
                self._connection().execute(_REMOVE, (number, *key, effective, item.ordinal))

    def count(self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str, *, most: int) -> int:
        """How many entries `find` gives; no more than `most` are counted."""
        found, values = self._found(path, ranges, low, high)
        return int(self._connection().execute(_COUNT.format(found), (*values, most)).fetchone()[0]) if found else 0

    def find(self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str) -> Iterator[Entry]:
        """The entries of values in any of the ranges, for `low <= effective < high`, in the order of the store."""
        found, values = self._found(path, ranges, low, high)
        if not found:
            return
        for effective, ordinal, item_id in self._connection().execute(
            f"{found} ORDER BY effective, ordinal",
            values,
        ):
            yield Entry(effective, ordinal, _text(item_id))

    def walk(
        self, path: PropertyPath, low: str, high: str, *, descending: bool, begin: IndexKey | None
    ) -> Iterator[tuple[Entry, IndexKey]]:
        """All entries with their keys, in the order of values and, where these are the same, of creation.

        Args:
            low, high: Bounds of the effective keys, the end exclusive.
            begin: The first key; None for the beginning.
        """
        text = _WALK.format(comparison="<=" if descending else ">=", order="DESC" if descending else "ASC")
        values = (self._paths[path], low, high, *(begin or _BEGINNINGS[descending]))
        for effective, ordinal, item_id, *key in self._connection().execute(text, values):
            yield Entry(effective, ordinal, _text(item_id)), (key[0], key[1])

    def _found(self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str) -> tuple[str, list[Any]]:
        values = [value for item in ranges for value in (self._paths[path], *item, low, high)]
        return " UNION ".join([_FIND] * len(ranges)), values

    def _keys(self, item: Item) -> dict[int, IndexKey]:
        """By number of the path, the keys of an item."""
        document = item.document
        keys = {number: key_of(follow(document, path)) for path, number in self._paths.items()}
        return {number: key for number, key in keys.items() if key is not None}

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(":memory:", check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = OFF")  # Nothing is rolled back, nor ever committed.
            self._database.execute(_TABLE)
        return self._database


def key_of(value: Any) -> IndexKey | None:
    """The key of a value; None for undefined, which is in no index."""
    kind = rank(value)
    if value is UNDEFINED:
        return None
    if value is None:
        return kind, 0
    if isinstance(value, int):
        return kind, value if -_LARGEST_INTEGER <= value < _LARGEST_INTEGER else float(value)
    if kind < _STRING:
        return kind, value
    return kind, _blob(value) if kind == _STRING else serialise(value)


def _blob(text: str) -> bytes:
    """Bytes sort as the characters do, and may hold half a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")
