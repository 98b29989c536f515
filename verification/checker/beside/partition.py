"""The model's store: one logical partition as a log of its versions, in which entity and companions change together.

It is the store of the other scenarios with one entity and no library: an entity's version holds its companions as well.
`committed` tells of each message what its output says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import EntityView, Ledger, read_entity
from exactlyonce.values.frozen_json import Json
from verification.checker.beside.business import ENTITY
from verification.checker.store import Entity, Store, Stores, Version, ledger_of, told_history

Beside = tuple[tuple[str, Companion, str], ...]
"""Id, companion and ETag of each."""


@dataclass(frozen=True, slots=True)
class PartitionVersion(Version):
    """One version of the partition.

    Attributes:
        beside: the companions, in the order in which they came.
    """

    beside: Beside = ()


EMPTY: Final = PartitionVersion(None, None)


class Partition(Entity):
    """Every version of the partition that a read may still return, oldest first; the last one is the truth."""

    def __init__(self, first: int, versions: tuple[Version, ...]) -> None:
        super().__init__(first, versions)
        self._views: dict[int, Mapping[str, tuple[Companion, str]]] = {}

    @cached_property
    def view(self) -> EntityView:
        """The newest document taken apart."""
        return taken_apart(self.truth.document)

    @property
    def told(self) -> tuple[str, ...]:
        """What it holds, in a few lines for a story."""
        ledger = self.view.ledger or Ledger()
        entries = ", ".join(f"{one.message}{'' if one.owed is None else ', which owes'}" for one in ledger.entries)
        received = (f"{one.next} is next from {one.source}" for one in ledger.receptions)
        parts = (f"{entries} in its ledger" if entries else "", *received)
        history = told_history(self.truth.document) or "nothing"
        beside = ", ".join(_shown(one) for one, _ in self.now.values())
        return (
            f": version {ledger.version}, {history} in its state{''.join(f'; {part}' for part in parts if part)}",
            f", beside it: {beside or 'nothing'}",
        )

    @cached_property
    def transactions(self) -> frozenset[str]:
        """Transactions that any version tells of that may be read."""
        records = (one for version in self.versions for _, one, _ in _beside(version))
        told = (one.tx for one in records if not isinstance(one, NumberedMessage))
        entries = (entry for version in self.versions for entry in ledger_of(version.document).entries)
        return frozenset((*told, *(entry.tx for entry in entries)))

    def beside(self, position: int) -> Mapping[str, tuple[Companion, str]]:
        """The companions at a position, each with its ETag, by their ids."""
        found = self._views.get(position)
        if found is None:
            beside = _beside(self.versions[position - self.first])
            found = self._views[position] = MappingProxyType({id: (one, etag) for id, one, etag in beside})
        return found

    @property
    def now(self) -> Mapping[str, tuple[Companion, str]]:
        """The companions that there are."""
        return self.beside(self.newest)


class Partitions(Stores):
    """One object for each distinct part, and for each distinct store."""

    def entity(self, first: int, versions: tuple[Version, ...]) -> Partition:
        found = self._entities.get((first, versions))
        if found is None:
            found = self._entities[first, versions] = Partition(first, versions)
        assert isinstance(found, Partition)  # noqa: S101
        return found

    def empty(self, entities: int) -> Store:
        """Nothing is stored, nothing published."""
        return self.store((self.entity(0, (EMPTY,)),) * entities, ())

    def with_partition(self, store: Store, partition: Partition, committed: Any) -> Store:
        """The store with another partition, in which this is committed."""
        return self.changed(store, entities=(partition,), committed=committed)


def etag_at(position: int, tick: int | None) -> str:
    """The ETag of a companion that was written at a position; it tells the tick, where a clock moves."""
    return str(position) if tick is None else f"{position}@{tick}"


def written_at(etag: str) -> tuple[int, int]:
    """Position and tick that the ETag of a companion tells, where a clock moves."""
    position, _, tick = etag.partition("@")
    return int(position), int(tick)


def _shown(companion: Companion) -> str:
    match companion:
        case ColocatedRecord():
            return f"{companion.message}{', which owes' if companion.owed is not None else ''}"
        case StreamEntry():
            return f"{companion.message} as version {companion.version}"
        case NumberedMessage():
            return f"{companion.message} as number {companion.order.number}{', held' if companion.held is not None else ''}"


def _beside(version: Version) -> Beside:
    assert isinstance(version, PartitionVersion)  # noqa: S101
    return version.beside


def partition_of(store: Store) -> Partition:
    """The partition."""
    partition = store.entities[0]
    assert isinstance(partition, Partition)  # noqa: S101
    return partition


def taken_apart(document: Json | None) -> EntityView:
    """A document taken apart, as the library does it."""
    return read_entity(ENTITY, document)
