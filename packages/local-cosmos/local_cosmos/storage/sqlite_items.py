"""The items of one container: read from memory, written to SQLite first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from local_cosmos.storage.items import Item
from local_cosmos.storage.keeper import NotKeptError
from local_cosmos.storage.memory import MemoryItemStore

_WRITE = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM items WHERE container = ? AND key = ? AND id = ?"
_ADVANCE = "INSERT OR REPLACE INTO commits VALUES (?, ?, ?)"
_READ = "SELECT key, id, lsn, raw, etag, modified, ordinal, ttl FROM items WHERE container = ? ORDER BY lsn, ordinal"


class SqliteItemStore(MemoryItemStore):
    """The items of one container.

    Args:
        connection: In autocommit mode.
    """

    def __init__(self, connection: sqlite3.Connection, container_rid: str) -> None:
        super().__init__()
        self._connection = connection
        self._container = container_rid
        for key, item_id, lsn, *columns in connection.execute(_READ, (container_rid,)):
            item = Item(item_id.decode("utf-8", "surrogatepass"), *columns)
            super().commit(key, {item.id: item}, lsn, horizon=lsn)

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
        super().commit(effective, changes, lsn, horizon)


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
