"""What reads of companions may show: every view that a replica may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exactlyonce.effects.companions import (
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
)
from exactlyonce.effects.effect import Effect
from exactlyonce.records.companions import ColocatedRecord, Companion, StreamEntry
from verification.specification.stored import Stored

View = Mapping[str, tuple[Companion, str]]


def seen_companions(effect: Effect[Any], stored: Stored) -> Iterator[tuple[str, Any]]:
    """Kind and reply for each view that differs, the newest first."""
    if isinstance(effect, HasCompanions):
        if stored.companions():
            yield "yes", True
        yield "no", False
        return
    token = None if isinstance(effect, FindOwing) else effect.token  # type: ignore[attr-defined]
    views = stored.companion_views(token)
    yield from dict.fromkeys(_shown(effect, view) for view in views)


def _shown(effect: Effect[Any], view: View) -> tuple[str, Any]:
    """What one view shows."""
    match effect:
        case LoadCompanions(_, ids):
            found = tuple(view[id] for id in ids if id in view)
            return "all found" if len(found) == len(ids) else "not all found", FoundCompanions(found)
        case FindEntries(_, ranges):
            versions = {version for first, last in ranges for version in range(first, last + 1)}
            entries = tuple(one for one in _entries(view) if one[0].version in versions)
            return "all entries" if len(entries) == len(versions) else "not all entries", FoundCompanions(entries)
        case FindNumbered(_, channel, (first, last)):
            numbers = tuple(
                entry.version
                for entry, _ in _entries(view)
                for output in entry.outputs
                if (place := output.place) is not None and place.channel == channel and first <= place.number <= last
            )
            return "versions" if numbers else "none", FoundNumbered(numbers)
        case FindOwing():
            owing = tuple((one, etag) for one, etag in view.values() if _owes(one))
            return "records that owe" if owing else "none owes", FoundCompanions(owing)
        case _:
            raise TypeError(effect)


def _entries(view: View) -> list[tuple[StreamEntry, str]]:
    found = [(one, etag) for one, etag in view.values() if isinstance(one, StreamEntry)]
    return sorted(found, key=lambda one: one[0].version)


def _owes(one: Companion) -> bool:
    return isinstance(one, ColocatedRecord | StreamEntry) and one.owed is not None
