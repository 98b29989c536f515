"""Listings from the store in memory, in its present state: a best effort may also be a good effort."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timezone
from typing import Any

from exactlyonce.errors import ConfigurationError
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER, read_entity
from exactlyonce.records.library import BOOKS, Search, read_book
from exactlyonce.stores.memory.store import MemoryStore, Partition, Version
from exactlyonce.stores.port import (
    Condition,
    ListedBook,
    ListedMessage,
    entity_named,
    listed_message,
    oldest_first,
    text_of,
)
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json

_KEPT = ("kind", "message", "tx", "version", "at", "source", "owing_since")


class MemoryListing:
    """The listings; each is a single page."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
        yield tuple(book for book in self._books() if book.written >= since and not book.book.ended)

    async def owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[tuple[EntityRef, str], ...]]:
        yield tuple(
            (entity, entry["tx"])
            for entity, _, document in self._documents(type)
            for entry in _ledger(document, type).get("outbox", ())
            if any(search.asks_for(entry["tx"]) for search in searches)
        )

    async def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        yield tuple(
            entity
            for entity, _, document in self._documents(type)
            if any(kept["due"] < text_of(now) for kept in _ledger(document, type).get("kept", ()))
        )

    async def companions(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        owing = (
            (entity, document.get("owing_since"))
            for entity, version, document in self._documents(type)
            if version.companion
        )
        yield oldest_first(
            [(entity, since) for entity, since in owing if since is not None and since < text_of(before)]
        )

    def first_owing(self) -> str | None:
        """Earliest time with work for a sweep: a book is to be searched, a kept message is due, or a companion owes."""
        times = [
            text_of(datetime.fromtimestamp(at, timezone.utc))
            for book in self._books()
            if (at := book.written if book.book.stuck else book.book.searched_at(book.written)) is not None
        ]
        for type in {str(place[0]) for place in self._store.entities}:
            for _, version, document in self._documents(type):
                kept = () if version.companion else _ledger(document, type).get("kept", ())
                since = document.get("owing_since") if version.companion else None
                times += [*(item["due"] for item in kept), *(() if since is None else (since,))]
        return min(times, default=None)

    def _books(self) -> Iterator[ListedBook]:
        for version in _newest(self._store.library.get(BOOKS, Partition())):
            if version.document is not None:
                book = read_book(version.document.value)
                yield ListedBook(book, version.etag, book.written or version.timestamp)

    async def holding(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        entities = []
        for entity, version, document in self._documents(type):
            left_alone = version.timestamp < int(before.timestamp())
            receptions = () if version.companion else _ledger(document, type).get("receptions", ())
            if any(
                left_alone or (reception["gap_since"] or "~") < text_of(before)
                for reception in receptions
                if reception["held"]
            ):
                entities.append((entity, ""))
        yield oldest_first(entities)

    async def bodies(
        self, type: str, condition: Condition, partition: tuple[PartitionValue, ...] | None
    ) -> AsyncIterator[tuple[tuple[EntityRef, Json], ...]]:
        if condition.text:
            raise ConfigurationError(
                "A store in memory knows no SQL: query without a condition, and filter what comes."
            )
        bodies = []
        for entity, version, document in self._documents(type):
            if (
                version.companion
                or version.document is None
                or document.get(LEDGER, {}).get("type", "") not in ("", type)
            ):
                continue
            body = read_entity(entity, version.document).body
            if body is not None and partition in (None, entity.partition):
                bodies.append((entity, body))
        yield tuple(bodies)

    async def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        documents = (version.document for partition in self._store.library.values() for version in _newest(partition))
        bodies = (document.value for document in documents if document is not None)
        yield tuple(listed_message(body) for body in bodies if body["kind"] == "parked")

    async def belongings(self, entity: EntityRef) -> tuple[dict[str, Any], ...]:
        apart = (
            (item, item.document.value)
            for item in _newest(self._store.library.get(entity.key, Partition()))
            if item.document
        )
        companions = (
            (item, content) for ref, item, content in self._documents(entity.type) if item.companion and ref == entity
        )
        return tuple(
            {"id": item.id, "_ts": item.timestamp, **{name: content[name] for name in _KEPT if name in content}}
            for item, content in (*apart, *((item, {"kind": content[KIND], **content}) for item, content in companions))
        )

    def _documents(self, type: str) -> Iterator[tuple[EntityRef, Version, dict[str, Any]]]:
        """All documents of entities of a type and their companions, each with its entity."""
        for place, partition in self._store.entities.items():
            values: Any = place[1:]
            for version in _newest(partition) if place[0] == type else ():
                document = {} if version.document is None else version.document.value
                own = entity_named(document["entity"]) if version.companion else EntityRef(type, values, version.id)
                if own.type == type:
                    yield own, version, document


def _ledger(document: dict[str, Any], type: str) -> dict[str, Any]:
    """The ledger of an entity of this type; empty if there is none."""
    ledger: dict[str, Any] = document.get(LEDGER, {})
    return ledger if ledger.get("type") in ("", type) else {}


def _newest(partition: Partition) -> tuple[Version, ...]:
    return tuple(partition.view(len(partition.log)).values())
