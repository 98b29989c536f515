"""The history of a memory store, from every version of its documents, the overwritten ones included."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from exactlyonce.records.books import BOOKS, Book, number_of, read_book
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import OUTBOX, Ledger, read_entity
from exactlyonce.records.marks import Mark, split
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition, Version
from exactlyonce.testing.guarantee import Commit, CommitRecord, Position
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, message_hash


class _Told(NamedTuple):
    """What a write of a document tells.

    Attributes:
        document: that was written; None if it was deleted.
        commits: of the write; in what a document owes, commits of earlier writes are repeated.
        ledger: of an entity.
        record: stream entry or record.
        skipped: number that a read model gave up.
        late: message that came for such a number.
        owing: by entity and hash of the message, the transactions that the document owes the outputs of; None in companions.
    """

    document: Json | None
    commits: tuple[Commit, ...] = ()
    ledger: Ledger = Ledger()
    record: CommitRecord | None = None
    skipped: tuple[str, Position] | None = None
    late: tuple[str, str] | None = None
    owing: Mapping[tuple[str, str], str | None] = MappingProxyType({})


class StoreHistory:
    """The commits that a store's documents record.

    Where a document was put back to what it was, the writes in between tell nothing of its history any more.

    Args:
        store: to read.
        put_back: ETags of writes that put documents back, as a restore does.

    Attributes:
        fallen: entity and version to which a ledger went back, though nobody had put its document back.
        undone: the commits of writes that were taken back.
    """

    def __init__(self, store: MemoryPartitions, put_back: Container[str] = ()) -> None:
        self.fallen: set[tuple[str, int]] = set()
        self.undone: list[Commit] = []
        self._put_back = put_back
        self._told: dict[str, list[_Told]] = {}
        self._books = _books(store.library.get(BOOKS, Partition()))
        for (type, *partition), log in store.entities.items():
            for batch in _batches(log):
                self._read_batch(type, tuple(partition), batch)

    @property
    def commits(self) -> list[Commit]:
        """From records, marks and entries of outboxes, and from the documents of numbers. Of marks that one commit added, the
        versions follow their times."""
        return [commit for one in self._all for commit in one.commits]

    @property
    def records(self) -> dict[tuple[str, str], CommitRecord]:
        """Stream entries and records, by key of the entity and transaction."""
        records = (one.record for one in self._all)
        return {(one.entity, one.tx): one for one in records if one is not None}

    @property
    def skipped(self) -> set[tuple[str, Position]]:
        """As in `Facts`."""
        return {one.skipped for one in self._all if one.skipped is not None}

    @property
    def late(self) -> set[tuple[str, str]]:
        """As in `Facts`."""
        return {one.late for one in self._all if one.late is not None}

    @property
    def owing(self) -> frozenset[tuple[str, str]]:
        """Entity and hash of the message of commits that owe outputs by their newest documents, and that no book pays."""
        owing = (one for told in self._told.values() if told for one in told[-1].owing.items())
        return frozenset(commit for commit, tx in owing if tx is None or not self._is_paid(tx))

    @property
    def _all(self) -> Iterator[_Told]:
        return chain.from_iterable(self._told.values())

    def _is_paid(self, tx: str) -> bool:
        book, number = number_of(tx)
        return book in self._books and self._books[book].pays(number)

    def _read_batch(self, type: Any, partition: tuple[Any, ...], batch: list[Version]) -> None:
        entries: dict[tuple[str, str], Commit] = {}
        for version in batch:
            told = self._told.setdefault(json.dumps([type, *partition, version.id]), [])
            ref = EntityRef(type, partition, version.id)
            if version.etag in self._put_back:
                self._take_back(told, version.document)
            elif version.companion is not None:
                told.append(_of_companion(version, told, f"batch {batch[0].etag}", entries))
            else:
                told.append(self._of_entity(ref, version.document, told[-1].ledger if told else Ledger(), entries))

    def _take_back(self, told: list[_Told], document: Json | None) -> None:
        """Forget what was written since a document was what it is again."""
        while told and told[-1].document != document:
            self.undone += told.pop().commits

    def _of_entity(
        self, ref: EntityRef, document: Json | None, before: Ledger, entries: dict[tuple[str, str], Commit]
    ) -> _Told:
        ledger = read_entity(ref, document).ledger or Ledger()
        if ledger.version < before.version:
            self.fallen.add((ref.key, ledger.version))
        owed = tuple(Commit.of_entry(ref, one, ledger) for one in ledger.outbox)
        entries.update({(one.entity, one.message): one for one in owed})
        owing = {(one.entity, one.message): one.tx for one in owed}
        return _Told(document, (*_marked(ref, before, ledger), *owed), ledger, owing=owing)


def _marked(ref: EntityRef, before: Ledger, ledger: Ledger) -> Iterator[Commit]:
    """The commits of the marks that a save added to those that stayed: the oldest leave, as many as `left` counts more."""
    if ledger.protocol != OUTBOX:
        return
    stayed = split(before.marks)[max(ledger.left - before.left, 0) :]
    added = sorted((Counter(split(ledger.marks)) - Counter(stayed)).elements())
    for version, mark in enumerate(added, ledger.version - len(added) + 1):
        yield Commit.of_mark(ref, Mark.read(mark), version)


def _of_companion(version: Version, before: list[_Told], batch: str, entries: dict[tuple[str, str], Commit]) -> _Told:
    one = _companion(version.companion or {})
    match one:
        case NumberedMessage(held=None, message=None):
            return _Told(version.document, skipped=(one.entity, (one.channel, one.number)))
        case NumberedMessage(held=None, message=str(message)):
            if any(told.skipped is not None for told in before):
                return _Told(version.document, late=(one.entity, message))
            # The entity in the same batch has the transaction, if the message sent anything.
            released = Commit.of(one.entity, one)
            commit = entries.get((one.entity, released.message)) or replace(released, tx=batch)
            return _Told(version.document, (replace(commit, place=released.place),))
        case ColocatedRecord() | StreamEntry():
            owing = {} if one.owed is None else {(one.entity, message_hash(one.message)): None}
            return _Told(version.document, (Commit.of(one.entity, one),), record=one, owing=owing)
    return _Told(version.document)


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
