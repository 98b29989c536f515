"""The history of a memory store, from every version of its documents, the overwritten ones included."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from exactlyonce.records.books import BOOKS, Book, number_of, read_book
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import OUTBOX, Ledger, read_entity
from exactlyonce.records.marks import Mark, split
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition, Version
from exactlyonce.testing.guarantee import Commit, CommitRecord, Position
from exactlyonce.values.identity import EntityRef, message_hash


class StoreHistory:
    """The commits that a store's documents record.

    Args:
        store: to read.

    Attributes:
        records: stream entries and records, by key of the entity and transaction.
        commits: from these, from marks and entries of outboxes, and from the documents of numbers. Of marks that one commit
            added, the versions follow their times.
        skipped, late: as in `Facts`.
    """

    def __init__(self, store: MemoryPartitions) -> None:
        self.records: dict[tuple[str, str], CommitRecord] = {}
        self.commits: list[Commit] = []
        self.skipped: set[tuple[str, Position]] = set()
        self.late: set[tuple[str, str]] = set()
        self._owing: dict[str, dict[tuple[str, str], str | None]] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._books = _books(store.library.get(BOOKS, Partition()))
        for (type, *partition), log in store.entities.items():
            for batch in _batches(log):
                self._read_batch(type, tuple(partition), batch)

    @property
    def owing(self) -> frozenset[tuple[str, str]]:
        """Entity and hash of the message of commits that owe outputs by their newest documents, and that no book pays."""
        owing = (one for document in self._owing.values() for one in document.items())
        return frozenset(commit for commit, tx in owing if tx is None or not self._is_paid(tx))

    def _is_paid(self, tx: str) -> bool:
        book, number = number_of(tx)
        return book in self._books and self._books[book].pays(number)

    def _read_batch(self, type: Any, partition: tuple[Any, ...], batch: list[Version]) -> None:
        entries: dict[tuple[str, str], Commit] = {}
        for version in batch:
            place = json.dumps([type, *partition, version.id])
            self._owing[place] = {}
            companion = version.companion
            if version.document is None:
                self._ledgers.pop(place, None)
                continue
            if companion is not None:
                self._read_companion(place, _companion(companion), f"batch {batch[0].etag}", entries)
                continue
            ref = EntityRef(type, partition, version.id)
            ledger = read_entity(ref, version.document).ledger or Ledger()
            self._read_marks(place, ref, ledger)
            for entry in ledger.outbox:
                commit = entries[ref.key, entry.cause] = Commit.of_entry(ref, entry, ledger)
                self.commits.append(commit)
                self._owing[place][ref.key, entry.cause] = entry.tx

    def _read_marks(self, place: str, ref: EntityRef, ledger: Ledger) -> None:
        """Take the marks that a save added to those that stayed: the oldest leave, as many as `left` counts more."""
        before, self._ledgers[place] = self._ledgers.get(place, Ledger()), ledger
        if ledger.protocol != OUTBOX:
            return
        stayed = split(before.marks)[max(ledger.left - before.left, 0) :]
        added = sorted((Counter(split(ledger.marks)) - Counter(stayed)).elements())
        first = ledger.version - len(added) + 1
        self.commits += (Commit.of_mark(ref, Mark.read(mark), version) for version, mark in enumerate(added, first))

    def _read_companion(self, place: str, one: Companion, batch: str, entries: dict[tuple[str, str], Commit]) -> None:
        match one:
            case NumberedMessage(held=None, message=None):
                self.skipped.add((one.entity, (one.channel, one.number)))
            case NumberedMessage(held=None, message=str(message)):
                if (one.entity, (one.channel, one.number)) in self.skipped:
                    self.late.add((one.entity, message))
                    return
                # The entity in the same batch has the transaction, if the message sent anything.
                released = Commit.of(one.entity, one)
                commit = entries.get((one.entity, released.message)) or replace(released, tx=batch)
                self.commits.append(replace(commit, place=released.place))
            case ColocatedRecord() | StreamEntry():
                self.records[one.entity, one.tx] = one
                self.commits.append(Commit.of(one.entity, one))
                if one.owed is not None:
                    self._owing[place][one.entity, message_hash(one.message)] = None


def _books(partition: Partition) -> dict[str, Book]:
    """The newest versions of all books, by their ids."""
    newest = partition.view(len(partition.log)).values()
    books: Iterable[Book] = (read_book(one.document.value) for one in newest if one.document is not None)
    return {book.id: book for book in books}


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
