"""Going back in the versions of an entity.

A stream entry holds what its handler started from: now and then all of it, else the RFC 6902 patch that leads there from what
came out. So an earlier version is reached from the next whole one, or from the newest, by patches: at most as many as whole
ones are apart, however old it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from jsonpatch import JsonPatch, JsonPatchException, make_patch
from jsonpointer import JsonPointerException

from exactlyonce.attempt import Work
from exactlyonce.errors import DamagedDocument, ExactlyOnceError, HandlerFailed
from exactlyonce.records.companions import StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Point:
    """What a handler starts from, or leaves.

    Attributes:
        body: the user's properties; None if absent or deleted.
    """

    body: Json | None

    @property
    def json(self) -> Json:
        """As JSON."""
        return Json.of({"body": None if self.body is None else self.body.value})

    @classmethod
    def of(cls, json: Json) -> Point:
        """Read what `json` wrote. Raises `DamagedDocument`."""
        properties = json.value
        if not isinstance(properties, dict) or properties.keys() != {"body"}:
            raise DamagedDocument("An earlier state has other properties than it should have.")
        body = properties["body"]
        if not isinstance(body, dict | None):
            raise DamagedDocument("An earlier state is none.")
        return cls(None if body is None else Json.of(body))


def way_back(before: Point, after: Point, *, whole: bool) -> tuple[Json, bool]:
    """What an entry is to hold of what its handler started from, and whether that is all of it.

    Args:
        before: what the handler started from.
        after: what it left.
        whole: whether it has to be all of it. It is so as well where the patch would be no shorter, or would not lead back to
            the letter: a patch does not keep the order of properties.
    """
    start = before.json
    if not whole:
        patch = make_patch(after.json.value, start.value)
        way = Json.of(patch.patch)
        if way.size < start.size and Json.of(patch.apply(after.json.value)) == start:
            return way, False
    return start, True


def versions_for(version: int, ledger: Ledger) -> tuple[int, int]:
    """First and last version of the entries that lead to what the handler of a version started from."""
    every = ledger.snapshot_every or 1
    if ledger.event_sourced:
        return (version - 1) // every * every + 1, version
    return version, min(-(-version // every) * every, ledger.version)


def part_from(version: int, ledger: Ledger) -> tuple[int, int]:
    """First and last version of the entries that lead to a version and all after it, as far as before the next whole state."""
    every = ledger.snapshot_every or 1
    first, _ = versions_for(version, ledger)
    return first, min(-(-version // every) * every, ledger.version)


def is_whole(version: int, before: Point, ledger: Ledger) -> bool:
    """Whether the entry of a version has to hold all of what its handler started from."""
    every = ledger.snapshot_every or 1
    if ledger.event_sourced:
        return (version - 1) % every == 0 or before.body is None
    return version % every == 0


def leads_back(version: int, found: tuple[StreamEntry, ...], ledger: Ledger) -> bool:
    """Whether all entries are found that lead to what the handler of a version started from."""
    first, last = versions_for(version, ledger)
    return {*range(first, last + 1)} <= {entry.version for entry in found}


def point_before(work: Work, version: int, found: tuple[StreamEntry, ...], ledger: Ledger, now: Point) -> Point:
    """What the handler of a version started from.

    Args:
        work: the entity, and how events change it.
        version: that the handler produced.
        found: entries, in the order of their versions; those that `versions_for` names are needed.
        ledger: of the entity as it was loaded.
        now: the entity as it was loaded.

    Raises:
        DamagedDocument: an entry is missing, or does not lead on.
        HandlerFailed: an event cannot be applied.
    """
    entity = work.entity
    first, last = versions_for(version, ledger)
    entries = tuple(entry for entry in found if first <= entry.version <= last)
    if tuple(entry.version for entry in entries) != tuple(range(first, last + 1)):
        raise DamagedDocument(
            f"The stream of entity {entity} has not every version from {first} to {last}, so version {version} cannot be "
            "handled again. Nothing was changed. Restore the entries from a backup. If clean-up has taken them, the message is "
            "older than the retention, and may be dropped."
        )
    if ledger.event_sourced:
        return _stepped_forward(work, entries)
    point = now
    if last < ledger.version and not entries[-1].whole:
        raise _damaged(entity, last, "should hold a whole state, and does not")
    for entry in reversed(entries):
        point = _stepped_back(entity, entry, point)
    return point


def _stepped_forward(work: Work, entries: tuple[StreamEntry, ...]) -> Point:
    """What the handler of the last of these entries started from, by the events since the last whole state."""
    entity, last = work.entity, entries[-1]
    start = next((index for index in reversed(range(len(entries))) if entries[index].whole), None)
    if start is None or entries[start].before is None:
        raise _damaged(entity, entries[start or 0].version, "should hold a whole state, and does not")
    point = _whole(entity, entries[start])
    for entry in entries[start:-1]:
        if entry.events is None or work.evolve is None:
            raise _damaged(entity, entry.version, "has no events")
        try:
            point = Point(work.evolve(point.body, entry.events))
        except ExactlyOnceError as error:
            raise HandlerFailed(
                f"Message {last.message} on entity {entity} cannot be handled again on version {last.version - 1}, since the "
                f"events of version {entry.version} cannot be applied: {error} Nothing was sent."
            ) from error if error.__cause__ is None else error.__cause__
    return point


def _whole(entity: EntityRef, entry: StreamEntry) -> Point:
    try:
        return Point.of(entry.before or Json("null"))
    except DamagedDocument:
        raise _damaged(entity, entry.version, "holds a whole state that cannot be read") from None


def _stepped_back(entity: EntityRef, entry: StreamEntry, after: Point) -> Point:
    try:
        if entry.before is None:
            raise _damaged(entity, entry.version, "holds no way back")
        if entry.whole:
            return Point.of(entry.before)
        return Point.of(Json.of(JsonPatch(entry.before.value).apply(after.json.value)))
    except (JsonPatchException, JsonPointerException, TypeError, DamagedDocument) as error:
        raise _damaged(entity, entry.version, f"cannot be gone back over ({type(error).__name__})") from None


def _damaged(entity: EntityRef, version: int, what: str) -> DamagedDocument:
    return DamagedDocument(
        f"Version {version} in the stream of entity {entity} {what}. Nothing was changed. Restore the entry from a backup."
    )
