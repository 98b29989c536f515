"""The items of one container: read from memory, written to SQLite first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from local_cosmos.storage.items import IndexKey, Item, ItemKey, PropertyPath, Range
from local_cosmos.storage.keeper import NotKeptError
from local_cosmos.storage.memory import MemoryItemStore

_WRITE = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM items WHERE container = ? AND key = ? AND id = ?"
_ADVANCE = "INSERT OR REPLACE INTO commits VALUES (?, ?, ?)"
_READ = "SELECT key, id, lsn, raw, etag, modified, ordinal, ttl FROM items WHERE container = ? ORDER BY lsn, ordinal"


class SqliteItemStore:
    """The items of one container (see `ItemStore`).

    Args:
        connection: In autocommit mode.
        container_rid: Resource id of the container.
    """

    def __init__(self, connection: sqlite3.Connection, container_rid: str) -> None:
        self._connection = connection
        self._container = container_rid
        self._memory = MemoryItemStore()
        for key, item_id, lsn, *columns in connection.execute(_READ, (container_rid,)):
            item = Item(item_id.decode("utf-8", "surrogatepass"), *columns)
            self._memory.commit(key, {item.id: item}, lsn, horizon=lsn)

    def find(self, key: ItemKey, lsn: int | None = None) -> Item | None:
        """The version of an item as of `lsn`."""
        return self._memory.find(key, lsn)

    def scan(self, low: str, high: str, lsn: int | None = None) -> Iterator[tuple[str, Item]]:
        """Effective key and item, for `low <= key < high`, in the order of key and ordinal."""
        return self._memory.scan(low, high, lsn)

    def is_small(self, low: str, high: str) -> bool:
        """Whether there are so few items that no index spares anything."""
        return self._memory.is_small(low, high)

    def most_selective(
        self, demands: Mapping[PropertyPath, Sequence[Range]], low: str, high: str
    ) -> PropertyPath | None:
        """The path whose index leaves the fewest items; None where a scan is as good."""
        return self._memory.most_selective(demands, low, high)

    def search(
        self, path: PropertyPath, ranges: Sequence[Range], low: str, high: str, lsn: int | None = None
    ) -> Iterator[tuple[str, Item]]:
        """What `scan` gives, without most of the items whose value is in none of the ranges."""
        return self._memory.search(path, ranges, low, high, lsn)

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
        return self._memory.walk(path, low, high, lsn, descending=descending, begin=begin)

    def changes(self, low: str, high: str, after: int, lsn: int) -> Iterator[tuple[int, Item]]:
        """LSN and item for every item written after LSN `after` and by `lsn`, in the order of the LSNs."""
        return self._memory.changes(low, high, after, lsn)

    def commit(self, effective: str, changes: Mapping[str, Item | None], lsn: int, horizon: int) -> None:
        """Write items of one partition key under one LSN, in one transaction of SQLite."""
        execute = self._connection.execute
        with transaction(self._connection):
            for item_id, item in changes.items():
                if item is None:
                    execute(_DELETE, (self._container, effective, _blob(item_id)))
                else:
                    columns = (item.raw, item.etag, item.modified, item.ordinal, item.ttl)
                    execute(_WRITE, (self._container, effective, _blob(item_id), lsn, *columns))
            execute(_ADVANCE, (self._container, effective, lsn))
        self._memory.commit(effective, changes, lsn, horizon)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block, or nothing.

    Raises:
        NotKeptError: it could not be written, such as on a full disk.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:  # From a disk that is full, SQLite mostly rolls back by itself.
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.OperationalError):
            raise NotKeptError(
                f"Nothing was changed, since the directory of --data could not be written: {error}. Make room on its disk, or "
                "mend what else is wrong with it; then ask again."
            ) from error
        raise


def _blob(item_id: str) -> bytes:
    """An id may hold half a surrogate pair, which SQLite's texts may not."""
    return item_id.encode("utf-8", "surrogatepass")
