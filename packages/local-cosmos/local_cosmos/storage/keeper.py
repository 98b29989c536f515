"""What may outlive the process: databases, containers, their items, and how far the clock was moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local_cosmos.storage.memory import MemoryItemStore
from local_cosmos.values import JsonObject


@dataclass(frozen=True, slots=True)
class KeptDatabase:
    """A database: name, resource id, and when it was written, in seconds since 1970."""

    name: str
    rid: str
    modified: int


@dataclass(frozen=True, slots=True)
class KeptRange:
    """A physical partition (see `PhysicalPartition`)."""

    id: str
    low: str
    high: str
    lsn: int
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptContainer:
    """A container.

    Attributes:
        database_rid: Resource id of its database.
        modified: When its settings were written, in seconds since 1970.
        properties: Its settings, as a client gives them.
        ranges: Its physical partitions, in the order of their keys.
    """

    database_rid: str
    rid: str
    modified: int
    properties: JsonObject
    ranges: tuple[KeptRange, ...]


class NotKeptError(Exception):
    """What was to be kept could not be written, such as on a full disk; so it is as it was before."""


class Keeper:
    """Keeps an account: this one nothing beyond the process, what extends it more.

    Every method is durable, as far as the keeper is, when it returns; or it raises `NotKeptError`, and so do the item stores.

    Attributes:
        generation: How often the account was opened before. Numbers are counted anew in each generation and carry it in front,
            so that no ETag or resource id is ever given twice.
        is_durable: Whether anything outlives the process.
        clock_advanced: Seconds by which the clock was moved when the account was opened.
    """

    generation = 0
    is_durable = False
    clock_advanced = 0.0

    def keep_clock(self, advanced: float) -> None:
        """Remember by how many seconds the clock is moved."""

    def databases(self) -> Sequence[KeptDatabase]:
        """In the order of their creation."""
        return ()

    def containers(self, database_rid: str) -> Sequence[KeptContainer]:  # noqa: ARG002
        """Of one database, in the order of their creation; ranges as of their last commits."""
        return ()

    def keep_database(self, database: KeptDatabase) -> None:
        """A database was created."""

    def forget_database(self, rid: str) -> None:
        """A database was deleted, with all that is in it."""

    def keep_container(self, container: KeptContainer) -> None:
        """A container was created, replaced or split."""

    def forget_container(self, rid: str) -> None:
        """A container was deleted, with its items."""

    def items(self, container_rid: str) -> MemoryItemStore:  # noqa: ARG002
        """The store of a container's items."""
        return MemoryItemStore()

    def close(self) -> None:
        """Nothing is kept any more."""
