"""Listings from the store in memory, as it is now: a best effort may also be a good one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

from exactlyonce.errors import ConfigurationError
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER, read_entity
from exactlyonce.stores.listing import Condition, ListedMessage, entity_named, listed_message, oldest_first, text_of
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition, Version
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, PartitionValue

_KEPT = ("kind", "message", "tx", "version", "at", "source", "owing_since")


class MemoryListing:
    """The listings; each is one page.

    Args:
        store: whose documents they are of.
    """

    def __init__(self, store: MemoryPartitions) -> None:
        self._store = store

    async def owing(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        found = []
        for entity, version, document in self._documents(type):
            owing = document if version.companion else _ledger(document, type)
            since = owing.get("owing_since")
            if isinstance(since, str) and since < text_of(before):
                found.append((entity, since))
        yield oldest_first(found)

    def first_owing(self) -> str | None:
        """Since when, of all entities, the first has owed outputs, or will: when its first kept message is due."""
        documents = (one for type in {str(place[0]) for place in self._store.entities} for one in self._documents(type))
        since = (
            (one if version.companion else one.get(LEDGER, {})).get("owing_since") for _, version, one in documents
        )
        return min(filter(None, since), default=None)

    async def holding(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        found = []
        for entity, version, document in self._documents(type):
            left_alone = version.timestamp < int(before.timestamp())
            receptions = () if version.companion else _ledger(document, type).get("receptions", ())
            if any(left_alone or (one["gap_since"] or "~") < text_of(before) for one in receptions if one["held"]):
                found.append((entity, ""))
        yield oldest_first(found)

    async def bodies(
        self, type: str, condition: Condition, partition: tuple[PartitionValue, ...] | None
    ) -> AsyncIterator[tuple[tuple[EntityRef, Json], ...]]:
        if condition.text:
            raise ConfigurationError(
                "A store in memory knows no SQL: query without a condition, and filter what comes."
            )
        found = []
        for entity, version, document in self._documents(type):
            if (
                version.companion
                or version.document is None
                or document.get(LEDGER, {}).get("type", "") not in ("", type)
            ):
                continue
            body = read_entity(entity, version.document).body
            if body is not None and partition in (None, entity.partition):
                found.append((entity, body))
        yield tuple(found)

    async def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        documents = (version.document for partition in self._store.library.values() for version in _newest(partition))
        found = (document.value for document in documents if document is not None)
        yield tuple(listed_message(one) for one in found if one["kind"] == "parked")

    async def belongings(self, entity: EntityRef) -> tuple[dict[str, Any], ...]:
        apart = (
            (one, one.document.value)
            for one in _newest(self._store.library.get(entity.key, Partition()))
            if one.document
        )
        companions = (
            (one, found) for ref, one, found in self._documents(entity.type) if one.companion and ref == entity
        )
        return tuple(
            {"id": one.id, "_ts": one.timestamp, **{name: found[name] for name in _KEPT if name in found}}
            for one, found in (*apart, *((one, {"kind": found[KIND], **found}) for one, found in companions))
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
    """The ledger of an entity of this type; nothing if there is none."""
    ledger: dict[str, Any] = document.get(LEDGER, {})
    return ledger if ledger.get("type") in ("", type) else {}


def _newest(partition: Partition) -> tuple[Version, ...]:
    return tuple(partition.view(len(partition.log)).values())
