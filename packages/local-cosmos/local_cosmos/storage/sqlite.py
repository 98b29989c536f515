"""An account in one SQLite file: one transaction per write or batch, on disk before the client is answered.

Items are read from memory: the file is read when a container is opened, and written with every commit. Only newest versions
are kept; after a restart no replica lags behind what was there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from local_cosmos.storage.items import Item
from local_cosmos.storage.keeper import Keeper, KeptContainer, KeptDatabase, KeptRange, NotKeptError
from local_cosmos.storage.memory import MemoryItemStore

FILE_NAME: Final = "cosmos.sqlite3"
_LAYOUT: Final = 1
"""Rises when the tables change; a file with another number is refused."""

_TABLES: Final = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value NUMERIC NOT NULL);
INSERT INTO settings VALUES ('generation', -1), ('clock_advanced', 0);
CREATE TABLE databases (rid TEXT PRIMARY KEY, kept TEXT NOT NULL);
CREATE TABLE containers (rid TEXT PRIMARY KEY, database TEXT NOT NULL, kept TEXT NOT NULL);
CREATE TABLE items (
    container TEXT NOT NULL, key TEXT NOT NULL, id BLOB NOT NULL, lsn INTEGER NOT NULL, raw BLOB NOT NULL,
    etag TEXT NOT NULL, modified INTEGER NOT NULL, ordinal INTEGER NOT NULL, ttl INTEGER,
    PRIMARY KEY (container, key, id)
);
CREATE TABLE commits (
    container TEXT NOT NULL, key TEXT NOT NULL, lsn INTEGER NOT NULL, PRIMARY KEY (container, key)
) WITHOUT ROWID;
"""

_WRITE = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM items WHERE container = ? AND key = ? AND id = ?"
_ADVANCE = "INSERT OR REPLACE INTO commits VALUES (?, ?, ?)"
_READ = "SELECT key, id, lsn, raw, etag, modified, ordinal, ttl FROM items WHERE container = ? ORDER BY lsn, ordinal"


class DataInUseError(Exception):
    """Another process has the directory open, or its file is not one of this version."""


class SqliteKeeper(Keeper):
    """Keeps an account in a directory.

    Args:
        directory: Made if it does not exist.

    Raises:
        DataInUseError: The directory cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / FILE_NAME
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            self._open()
        except (sqlite3.DatabaseError, NotKeptError) as error:
            self._connection.close()
            raise DataInUseError(f"{file} cannot be used: {error}") from error
        self.is_durable = True
        self.generation = int(self._setting("generation"))
        self.clock_advanced = float(self._setting("clock_advanced"))

    def keep_clock(self, advanced: float) -> None:
        """Remember by how many seconds the clock is moved."""
        with transaction(self._connection):
            self._connection.execute("UPDATE settings SET value = ? WHERE name = 'clock_advanced'", (advanced,))

    def databases(self) -> Sequence[KeptDatabase]:
        """In the order of their creation."""
        rows = self._connection.execute("SELECT kept FROM databases ORDER BY rowid")
        return [KeptDatabase(**json.loads(kept)) for (kept,) in rows]

    def containers(self, database_rid: str) -> Sequence[KeptContainer]:
        """Of one database, in the order of their creation."""
        rows = self._connection.execute(
            "SELECT kept FROM containers WHERE database = ? ORDER BY rowid", (database_rid,)
        )
        return [self._container(json.loads(kept)) for (kept,) in rows.fetchall()]

    def keep_database(self, database: KeptDatabase) -> None:
        """A database was created."""
        row = (database.rid, json.dumps(asdict(database)))
        with transaction(self._connection):
            self._connection.execute("INSERT INTO databases VALUES (?, ?)", row)

    def forget_database(self, rid: str) -> None:
        """A database was deleted, with all that is in it."""
        inside = "(SELECT rid FROM containers WHERE database = ?)"
        with transaction(self._connection):
            self._connection.execute(f"DELETE FROM items WHERE container IN {inside}", (rid,))  # noqa: S608
            self._connection.execute(f"DELETE FROM commits WHERE container IN {inside}", (rid,))  # noqa: S608
            self._connection.execute("DELETE FROM containers WHERE database = ?", (rid,))
            self._connection.execute("DELETE FROM databases WHERE rid = ?", (rid,))

    def keep_container(self, container: KeptContainer) -> None:
        """A container was created, replaced or split."""
        row = (container.rid, container.database_rid, json.dumps(asdict(container)))
        change = "INSERT INTO containers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET kept = excluded.kept"
        with transaction(self._connection):
            self._connection.execute(change, row)

    def forget_container(self, rid: str) -> None:
        """A container was deleted, with its items."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM items WHERE container = ?", (rid,))
            self._connection.execute("DELETE FROM commits WHERE container = ?", (rid,))
            self._connection.execute("DELETE FROM containers WHERE rid = ?", (rid,))

    def items(self, container_rid: str) -> MemoryItemStore:
        """The store of a container's items."""
        return SqliteItemStore(self._connection, container_rid)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _open(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")  # Two emulators on one file would not see each other's writes.
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")  # What was answered survives a power cut, too.
        (layout,) = execute("PRAGMA user_version").fetchone()
        with transaction(self._connection):
            if layout == 0:
                for statement in _TABLES.split(";"):
                    execute(statement)
                execute(f"PRAGMA user_version = {_LAYOUT}")
            elif layout != _LAYOUT:
                raise sqlite3.DatabaseError(f"it has layout {layout}, and this version knows {_LAYOUT} only")
            execute("UPDATE settings SET value = value + 1 WHERE name = 'generation'")

    def _setting(self, name: str) -> float:
        ((value,),) = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,))
        return float(value)

    def _container(self, kept: dict[str, Any]) -> KeptContainer:
        ranges = tuple(self._advanced(kept["rid"], KeptRange(**part)) for part in kept.pop("ranges"))
        return KeptContainer(**kept, ranges=ranges)

    def _advanced(self, container_rid: str, part: KeptRange) -> KeptRange:
        """A range as of the last commit to one of its keys."""
        ((lsn,),) = self._connection.execute(
            "SELECT max(lsn) FROM commits WHERE container = ? AND key >= ? AND key < ?",
            (container_rid, part.low, part.high),
        )
        return replace(part, lsn=max(part.lsn, lsn or 0), parents=tuple(part.parents))


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
