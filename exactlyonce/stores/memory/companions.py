"""Companions in memory: they lie in their entity's partition, in the same log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.effects.port import Busy, performs
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.companions import KIND, Companion, StreamEntry, companion_document, id_of, read_companion
from exactlyonce.records.outputs import OutputRef
from exactlyonce.stores.memory.partitions import MemoryPartitions, Version, unless_taken
from exactlyonce.stores.refusals import require_one_batch, unique_key_taken
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

MOST_OWING: Final = 100

View = dict[str, Version]
Found = Iterable[tuple[dict[str, Any], str]]
"""Documents, each with its ETag."""


class MemoryCompanions(MemoryPartitions):
    """The requests for companions."""

    @performs(SaveBatch)
    def save_batch(self, effect: SaveBatch) -> Saved | Conflict | Unknown | Busy:
        require_one_batch(effect)
        entity, partition = effect.entity, self._entity(effect.entity)
        created = ((*_stored(entity, one), None) for one in effect.create)
        replaced = ((*_stored(entity, one), etag) for one, etag in effect.replace)
        writes = ((entity.id, effect.document, effect.etag), *created, *replaced)

        def save() -> Saved | Conflict | UniqueKeyTaken:
            current = {id: partition.newest(id) for id, _, _ in writes}
            found = {id: version.etag if version else None for id, version in current.items()}
            # The second of two writes of one document would meet the first.
            if len(found) < len(writes) or any(found[id] != etag for id, _, etag in writes):
                return Conflict(partition.token)
            if self._is_taken(entity, effect.document):
                return unique_key_taken(entity)
            begin = len(partition.log)
            saved, *_ = [self._append(partition, id, document) for id, document, _ in writes]
            partition.within.update(range(begin + 1, len(partition.log)))
            return Saved(saved.etag, partition.token)

        return unless_taken(self._write("save_batch", save))

    @performs(LoadCompanions)
    def load_companions(self, effect: LoadCompanions) -> FoundCompanions | NoAnswer | Busy:
        if not effect.ids:
            return FoundCompanions(())
        ids = dict.fromkeys(effect.ids)
        return self._found(effect.entity, effect.token, lambda view: _documents(view[id] for id in ids if id in view))

    @performs(FindEntries)
    def find_entries(self, effect: FindEntries) -> FoundCompanions | NoAnswer | Busy:
        if not effect.ranges:
            return FoundCompanions(())

        def asked(document: dict[str, Any]) -> bool:
            version = document.get("version")
            wanted = isinstance(version, int) and any(first <= version <= last for first, last in effect.ranges)
            return wanted and document[KIND] == "entry"

        def found(view: View) -> Found:
            entries = (one for one in _companions_of(effect.entity, view) if asked(one[0]))
            return sorted(entries, key=lambda one: one[0]["version"])

        return self._found(effect.entity, effect.token, found)

    @performs(FindNumbered)
    def find_numbered(self, effect: FindNumbered) -> FoundNumbered | NoAnswer | Busy:
        first, last = effect.numbers

        def asked(output: OutputRef) -> bool:
            place = output.place
            return place is not None and place.channel == effect.channel and first <= place.number <= last

        def found(view: View) -> Found:
            return (one for one in _companions_of(effect.entity, view) if one[0][KIND] == "entry")

        reply = self._found(effect.entity, effect.token, found)
        if not isinstance(reply, FoundCompanions):
            return reply
        entries = (entry for entry, _ in reply.companions if isinstance(entry, StreamEntry))
        return FoundNumbered(tuple(sorted(entry.version for entry in entries if any(map(asked, entry.outputs)))))

    @performs(FindOwing)
    def find_owing(self, effect: FindOwing) -> FoundCompanions | NoAnswer | Busy:
        def owes(document: dict[str, Any]) -> bool:
            return isinstance(document.get("owing_since"), str)

        def found(view: View) -> Found:
            return [one for one in _companions_of(effect.entity, view) if owes(one[0])][:MOST_OWING]

        return self._found(effect.entity, None, found)

    @performs(HasCompanions)
    def has_companions(self, effect: HasCompanions) -> bool | NoAnswer | Busy:
        partition = self._entity(effect.entity)
        return any(True for _ in _companions_of(effect.entity, partition.view(self._replica(partition))))

    @performs(ReplaceCompanions)
    def replace_companions(self, effect: ReplaceCompanions) -> None:
        partition = self._entity(effect.entity)

        def replace() -> None:
            for companion, etag in effect.companions:
                id, document = _stored(effect.entity, companion)
                current = partition.newest(id)
                if current is not None and etag in (None, current.etag):
                    self._append(partition, id, document)

        self._write("replace_companions", replace)

    @performs(DeleteCompanions)
    def delete_companions(self, effect: DeleteCompanions) -> None:
        partition = self._entity(effect.entity)

        def delete() -> None:
            for id, etag in effect.companions:
                self._delete_unchanged(partition, id, etag)

        self._write("delete_companions", delete)

    def _found(self, entity: EntityRef, token: str | None, find: Callable[[View], Found]) -> FoundCompanions | NoAnswer:
        """What a search finds in the view of a replica that has reached the token."""
        partition = self._entity(entity)
        position = self._view(partition, token)
        if position is None:
            return BEHIND
        found = find(partition.view(position))
        return FoundCompanions(tuple((read_companion(entity, document), etag) for document, etag in found))


def _stored(entity: EntityRef, companion: Companion) -> tuple[str, Json]:
    return id_of(entity, companion), Json.of(companion_document(entity, companion))


def _documents(versions: Iterable[Version]) -> Iterator[tuple[dict[str, Any], str]]:
    return ((version.document.value, version.etag) for version in versions if version.document is not None)


def _companions_of(entity: EntityRef, view: View) -> Iterator[tuple[dict[str, Any], str]]:
    """The companions of one entity; several entities may share a partition."""
    found = ((version.companion, version.etag) for version in view.values())
    return ((one, etag) for one, etag in found if one is not None and one.get("entity") == entity.key)
