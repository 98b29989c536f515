"""Logical partitions in memory, as the fault model has them.

Every partition is a log of writes. A read sees the log up to the position of the answering replica; a session token is a
position in a log. Writes are judged at the end of the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from exactlyonce.effects.effect import UNKNOWN, Unknown
from exactlyonce.effects.port import Adapter, Busy
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.companions import KIND
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

# The fault model as a port of the memory store: possible outcomes of a write or a read.


class Fate(Enum):
    """The outcome of a write."""

    ANSWERED = "answered"
    LOST_BEFORE = "lost before applying"
    LOST_AFTER = "applied, the reply lost"
    REPEATED = "applied, the reply lost, sent again by the client library"
    DELAYED = "takes effect later, whatever its sender does meanwhile"
    BUSY = "refused, not applied"


class Trouble(Protocol):
    """Decides the fate of writes and the age of views. Injected, so that a test can script or seed it."""

    def fate(self, operation: str) -> Fate:
        """The fate of a write; `operation` is the name of the store's method."""

    def replica(self, newest: int) -> int:
        """The position of the replica that answers a read: 0 (empty) to `newest`."""


class NoTrouble:
    """A world without faults: every write is answered and every read is fresh."""

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        return Fate.ANSWERED

    def replica(self, newest: int) -> int:
        return newest


Reply = TypeVar("Reply")
_TOKEN: Final = "0:-1#"  # noqa: S105
_MARK: Final = f'"{KIND}":'


@dataclass(frozen=True, slots=True)
class Version:
    """An accepted write; `document` is None for a delete."""

    id: str
    document: Json | None
    etag: str
    timestamp: int

    @property
    def companion(self) -> dict[str, Any] | None:
        """The document, if it is a companion."""
        if self.document is None or _MARK not in self.document.text:  # Cheaper than to take every document apart.
            return None
        properties: dict[str, Any] = self.document.value
        return properties if KIND in properties else None


@dataclass(slots=True)
class Partition:
    """The accepted writes of a logical partition, in order.

    Attributes:
        log: the writes.
        within: positions inside a batch. A batch arrives at a replica as a whole, so no view ends there.
        places: for each id the positions of its versions in the log.
        reached: a position that no replica is behind.
    """

    log: list[Version] = field(default_factory=list)
    within: set[int] = field(default_factory=set)
    places: dict[str, list[int]] = field(default_factory=dict)
    reached: int = 0

    @property
    def token(self) -> str:
        return token_at(len(self.log))

    def newest(self, id: str, position: int | None = None) -> Version | None:
        """The newest version of a document at or before a position; None if absent or deleted."""
        places = self.places.get(id, [])
        before = bisect_left(places, len(self.log) if position is None else position)
        version = self.log[places[before - 1]] if before else None
        return version if version is not None and version.document is not None else None

    def append(self, version: Version) -> None:
        """Add a write to the log."""
        self.places.setdefault(version.id, []).append(len(self.log))
        self.log.append(version)

    def ids(self, position: int) -> list[str]:
        return list(dict.fromkeys(version.id for version in self.log[:position]))

    def view(self, position: int) -> dict[str, Version]:
        """The newest version of each document at a position, by id, without deleted documents."""
        newest = {version.id: version for version in self.log[:position]}
        return {id: version for id, version in newest.items() if version.document is not None}


class MemoryPartitions(Adapter):
    """The partitions of entities and of the library, and the faults of requests for them.

    Args:
        now: the server's clock.
        trouble: the faults of the world.
        unique_keys: by entity type the unique keys of its container, each a list of paths such as "/name/last".
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        trouble: Trouble | None = None,
        unique_keys: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> None:
        self._now = now
        self._trouble = trouble or NoTrouble()
        self._unique_keys = unique_keys or {}
        self.entities: dict[tuple[object, ...], Partition] = {}
        self.library: dict[str, Partition] = {}
        self._delayed: list[Callable[[], object]] = []
        self._writes = 0

    @property
    def writes(self) -> int:
        """How many writes were accepted so far."""
        return self._writes

    def land_delayed(self) -> int:
        """Let every delayed write take effect now, if its condition still holds; return the number of delayed writes."""
        delayed, self._delayed = self._delayed, []
        for write in delayed:
            write()
        return len(delayed)

    def _entity(self, entity: EntityRef) -> Partition:
        return self.entities.setdefault((entity.type, *entity.partition), Partition())

    def _library(self, entity: EntityRef) -> Partition:
        return self.library.setdefault(entity.key, Partition())

    def _is_taken(self, entity: EntityRef, document: Json) -> bool:
        """Whether another document of the logical partition has the same values for a unique key; an absent value is null."""
        keys = self._unique_keys.get(entity.type, ())
        partition = self._entity(entity)
        wanted = [_values(document, key) for key in keys]
        others = partition.view(len(partition.log)) if keys else {}
        return any(
            _values(version.document, key) == values
            for id, version in others.items()
            if id != entity.id and version.document is not None
            for key, values in zip(keys, wanted, strict=True)
        )

    def _append(self, partition: Partition, id: str, document: Json | None) -> Version:
        self._writes += 1
        written = Version(id, document, f'"{self._writes}"', int(self._now().timestamp()))
        partition.append(written)
        return written

    def _delete_unchanged(self, partition: Partition, id: str, etag: str) -> None:
        current = partition.newest(id)
        if current is not None and current.etag == etag:
            self._append(partition, id, None)

    def _replica(self, partition: Partition) -> int:
        """The position of the answering replica."""
        position = max(self._trouble.replica(len(partition.log)), partition.reached)
        while position in partition.within:
            position -= 1
        return position

    def _view(self, partition: Partition, token: str | None) -> int | None:
        """The position of the answering replica; None if it is behind the token."""
        position = self._replica(partition)
        needed = int(token.removeprefix(_TOKEN)) if token else 0
        return position if position >= needed else None

    def _write(self, operation: str, apply: Callable[[], Reply]) -> Reply | Unknown | Busy:
        fate = self._trouble.fate(operation)
        if fate is Fate.BUSY:
            return Busy()
        if fate is Fate.ANSWERED:
            return apply()
        if fate is Fate.REPEATED:
            apply()
            return apply()
        if fate is Fate.DELAYED:
            self._delayed.append(apply)
        elif fate is Fate.LOST_AFTER:
            apply()
        return UNKNOWN


def unless_taken(reply: Reply | UniqueKeyTaken) -> Reply:
    """The reply to a save. A reply of a taken unique key is raised; the reply may have been lost before."""
    if isinstance(reply, UniqueKeyTaken):
        raise reply
    return reply


def token_at(position: int) -> str:
    """The session token of a position."""
    return f"{_TOKEN}{position}"


def _values(document: Json, paths: Sequence[str]) -> str:
    """The values of a document at some paths, as a text; equal values have equal texts."""
    values: list[object] = []
    for path in paths:
        value: Any = document.value
        for name in path[1:].split("/"):
            value = value.get(name) if isinstance(value, dict) else None
        values.append(int(value) if isinstance(value, float) and value.is_integer() else value)
    return Json.of(values).text
