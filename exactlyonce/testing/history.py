"""The history of a memory store, from every version of its documents, the overwritten ones included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import read_entity
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition, Version
from exactlyonce.testing.guarantee import Commit, CommitRecord, Position
from exactlyonce.values.identity import EntityRef


class StoreHistory:
    """The commits that a store's documents record.

    Args:
        store: to read.

    Attributes:
        records: ledger and stream entries and records, by key of the entity and transaction.
        commits: from these, and from the documents of numbers.
        owing: entity and message of commits that owe outputs, by their newest documents.
        skipped, late: as in `Facts`.
    """

    def __init__(self, store: MemoryPartitions) -> None:
        self.records: dict[tuple[str, str], CommitRecord] = {}
        self.commits: list[Commit] = []
        self.skipped: set[tuple[str, Position]] = set()
        self.late: set[tuple[str, str]] = set()
        self._owing: dict[str, set[tuple[str, str]]] = {}
        for (type, *partition), log in store.entities.items():
            for batch in _batches(log):
                self._read_batch(type, tuple(partition), batch)

    @property
    def owing(self) -> frozenset[tuple[str, str]]:
        return frozenset(one for owing in self._owing.values() for one in owing)

    def _read_batch(self, type: Any, partition: tuple[Any, ...], batch: list[Version]) -> None:
        entries: dict[tuple[str, str], Any] = {}
        for version in batch:
            place = json.dumps([type, *partition, version.id])
            self._owing[place] = set()
            companion = version.companion
            if version.document is None:
                continue
            if companion is not None:
                self._read_companion(place, _companion(companion), f"batch {batch[0].etag}", entries)
                continue
            ref = EntityRef(type, partition, version.id)
            _ = read_entity(ref, version.document).ledger

    def _read_companion(self, place: str, one: Companion, batch: str, entries: dict[tuple[str, str], Any]) -> None:
        match one:
            case NumberedMessage(held=None, message=None):
                self.skipped.add((one.entity, (one.channel, one.number)))
            case NumberedMessage(held=None, message=str(message)):
                if (one.entity, (one.channel, one.number)) in self.skipped:
                    self.late.add((one.entity, message))
                    return
                # The entity in the same batch has the transaction, if the message sent anything.
                entry = entries.get((one.entity, message))
                released = Commit.of(one.entity, one)
                commit = Commit.of(one.entity, entry) if entry else replace(released, tx=batch)
                self.commits.append(replace(commit, place=released.place))
            case ColocatedRecord() | StreamEntry():
                self._take(one.entity, one)
                if one.owed is not None:
                    self._owing[place].add((one.entity, one.message))

    def _take(self, key: str, record: CommitRecord) -> None:
        self.records[key, record.tx] = record
        self.commits.append(Commit.of(key, record))


def _batches(partition: Partition) -> Iterator[list[Version]]:
    """The writes of a partition, grouped by batch."""
    batch: list[Version] = []
    for position, version in enumerate(partition.log):
        if position not in partition.within and batch:
            yield batch
            batch = []
        batch.append(version)
    if batch:
        yield batch


def _companion(document: dict[str, Any]) -> Companion:
    type, *partition, id = json.loads(document["entity"])
    return read_companion(EntityRef(type, tuple(partition), id), document)
