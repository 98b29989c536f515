"""What a view of an entity has of the companions that are looked for."""

from __future__ import annotations

from collections.abc import Callable

from exactlyonce.effects.companions import FoundCompanions
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from verification.world.store import Entity

Look = Callable[[Entity, int], FoundCompanions]
"""Finds companions of an entity, in its view at a position."""


def by_id(ids: tuple[str, ...]) -> Look:
    """Those with these ids."""

    def find(entity: Entity, position: int) -> FoundCompanions:
        view = entity.companions(position)
        return FoundCompanions(tuple(view[id] for id in dict.fromkeys(ids) if id in view))

    return find


def entries(ranges: tuple[tuple[int, int], ...]) -> Look:
    """Entries of these versions."""

    def find(entity: Entity, position: int) -> FoundCompanions:
        found = {
            item.version: (item, etag)
            for item, etag in entity.companions(position).values()
            if isinstance(item, StreamEntry) and any(first <= item.version <= last for first, last in ranges)
        }
        return FoundCompanions(tuple(entry for _, entry in sorted(found.items())))

    return find


def owing(entity: Entity, position: int) -> FoundCompanions:
    """Records that owe outputs."""
    records = entity.companions(position).values()
    return FoundCompanions(
        tuple(
            (item, etag)
            for item, etag in records
            if isinstance(item, ColocatedRecord | StreamEntry) and item.owing_since
        )
    )


def in_words(companion: ColocatedRecord | StreamEntry | NumberedMessage) -> str:
    """A companion, for stories."""
    owes = isinstance(companion, ColocatedRecord) and companion.owed is not None
    held = isinstance(companion, NumberedMessage) and companion.held is not None
    return f"{companion.message}{', which owes' if owes else ', held' if held else ''}"
