"""The contract of a store's transactional batches of an entity and companions; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.records.companions import Companion, StreamEntry, entry_id, id_of
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    AWKWARD,
    LEVELS,
    MEGABYTE,
    OWNED,
    a_colocated,
    a_numbered,
    an_entry,
    companions_now,
    companions_of,
    entity_document,
    load,
    owned_entity,
    save,
    together,
)
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Scene:
    """An entity with two companions, before and after a change of the second."""

    entity: EntityRef
    old: Saved
    new: Saved
    unchanged: tuple[StreamEntry, str]
    changed: tuple[StreamEntry, str]

    @property
    def document(self) -> Json:
        return entity_document(self.entity, total=9)

    def effect(self, etag: str | None, *create: Companion, replace: tuple[tuple[Companion, str], ...] = ()) -> Any:
        """A save together with a companion that can be created, and other writes."""
        return SaveBatch(self.entity, self.document, etag, (an_entry(self.entity, 9, "web/9"), *create), replace)


Way = Callable[[Scene], Any]
WAYS_TO_FAIL: Final[dict[str, Way]] = {
    "the entity has changed": lambda scene: scene.effect(scene.old.etag),
    "the entity exists": lambda scene: scene.effect(None),
    "a companion exists": lambda scene: scene.effect(scene.new.etag, scene.unchanged[0]),
    "a companion is created twice": lambda scene: scene.effect(
        scene.new.etag, *[an_entry(scene.entity, 8, "web/8")] * 2
    ),
    "a companion to replace has changed": lambda scene: scene.effect(
        scene.new.etag, replace=(scene.unchanged, scene.changed)
    ),
    "a companion to replace is absent": lambda scene: scene.effect(
        scene.new.etag, replace=(scene.unchanged, (an_entry(scene.entity, 8, "web/8"), scene.unchanged[1]))
    ),
    "a companion is replaced twice": lambda scene: scene.effect(scene.new.etag, replace=(scene.unchanged,) * 2),
}


async def a_scene(store: AsyncStore) -> Scene:
    """Make the writes of a case's past."""
    entity = owned_entity()
    one, other = an_entry(entity, 1, "web/1"), an_entry(entity, 2, "web/2")
    old = await together(store, entity, one, other, total=1)
    unchanged, changed = await companions_of(
        store, entity, entry_id(entity, "web/1"), entry_id(entity, "web/2"), token=old.token
    )
    later = replace(other, digest="another")
    new = await store.perform(
        SaveBatch(entity, entity_document(entity, total=2), old.etag, replace=((later, changed[1]),))
    )
    assert isinstance(new, Saved)
    return Scene(entity, old, new, (one, unchanged[1]), (other, changed[1]))


class BatchContract:
    """All of a batch, or nothing."""

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_a_view_at_the_token_of_a_save_shows_the_entity_and_its_companions(
        self, store: AsyncStore, type: str
    ) -> None:
        entity = owned_entity(type=type)
        companions = (a_colocated(entity, "web/1", owes=True), an_entry(entity, 1), a_numbered(entity))
        saved = await together(store, entity, *companions, total=1)
        loaded = await load(store, entity, saved.token)
        assert (loaded.document, loaded.etag) == (entity_document(entity, total=1), saved.etag)
        found = await companions_of(store, entity, *(id_of(entity, one) for one in companions), token=saved.token)
        assert tuple(companion for companion, _ in found) == companions
        assert len({saved.etag, *(etag for _, etag in found)}) == 1 + len(found)

    @pytest.mark.parametrize("message", AWKWARD)
    async def test_a_companion_is_found_by_its_message_alone(self, store: AsyncStore, message: str) -> None:
        entity = owned_entity()
        entry = an_entry(entity, 1, message)
        saved = await together(store, entity, entry)
        ((found, _),) = await companions_of(store, entity, entry_id(entity, message), token=saved.token)
        assert found == entry
        assert await companions_of(store, entity, entry_id(entity, message + "-"), token=saved.token) == ()

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_what_was_read_can_be_written_over_together_with_the_entity(
        self, store: AsyncStore, type: str
    ) -> None:
        entity = owned_entity(type=type)
        first = await together(store, entity, a_colocated(entity, "web/1", owes=True), total=1)
        ((record, etag),) = await companions_of(
            store, entity, id_of(entity, a_colocated(entity, "web/1")), token=first.token
        )
        settled, entry = a_colocated(entity, "web/1"), an_entry(entity, 2)
        effect = SaveBatch(entity, entity_document(entity, total=2), first.etag, (entry,), replace=((settled, etag),))
        second = await store.perform(effect)
        assert isinstance(second, Saved)
        assert (await load(store, entity, second.token)).document == entity_document(entity, total=2)
        found = await companions_of(store, entity, id_of(entity, record), id_of(entity, entry), token=second.token)
        assert [companion for companion, _ in found] == [settled, entry]
        assert etag not in [now for _, now in found]

    @pytest.mark.parametrize("way", WAYS_TO_FAIL)
    async def test_if_one_condition_fails_it_is_a_conflict_and_nothing_is_written(
        self, store: AsyncStore, way: str
    ) -> None:
        scene = await a_scene(store)
        entity = scene.entity
        reply = await store.perform(WAYS_TO_FAIL[way](scene))
        assert isinstance(reply, Conflict)
        loaded = await load(store, entity, reply.token)
        assert (loaded.document, loaded.etag) == (entity_document(entity, total=2), scene.new.etag)
        ids = (entry_id(entity, f"web/{number}") for number in (1, 2, 8, 9))
        found = await companions_of(store, entity, *ids, token=reply.token)
        assert [one.digest for one, _ in found if isinstance(one, StreamEntry)] == ["digest", "another"]
        assert found[0] == scene.unchanged

    async def test_an_absent_entity_to_replace_is_a_conflict_and_nothing_is_written(self, store: AsyncStore) -> None:
        entity = owned_entity()
        entry = an_entry(entity, 1)
        etag = (await save(store, owned_entity())).etag
        reply = await store.perform(SaveBatch(entity, entity_document(entity), etag, (entry,)))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document is None
        assert await companions_of(store, entity, id_of(entity, entry), token=reply.token) == ()

    async def test_saves_together_and_saves_alone_follow_each_other(self, store: AsyncStore) -> None:
        entity = owned_entity()
        first = await save(store, entity, total=1)
        second = await together(store, entity, an_entry(entity, 1), etag=first.etag, total=2)
        third = await together(store, entity, etag=second.etag, total=3)
        fourth = await save(store, entity, third.etag, total=4)
        saved = (first, second, third, fourth)
        assert len({one.etag for one in saved}) == len(saved)
        assert (await load(store, entity, fourth.token)).document == entity_document(entity, total=4)

    async def test_of_sixteen_concurrent_saves_one_wins_with_its_companion(self, store: AsyncStore) -> None:
        entity = owned_entity()
        etag: str | None = None
        for round in range(2):  # First of creates, then of replaces.
            entries = [an_entry(entity, number) for number in range(16)]
            documents = [entity_document(entity, total=number, round=round) for number in range(16)]
            replies = await asyncio.gather(
                *(store.perform(SaveBatch(entity, documents[n], etag, (entries[n],))) for n in range(16))
            )
            assert all(isinstance(reply, Saved | Conflict) for reply in replies)
            ((winner, saved),) = [(n, reply) for n, reply in enumerate(replies) if isinstance(reply, Saved)]
            assert (await load(store, entity, saved.token)).document == documents[winner]
            found = await companions_now(store, entity, *(id_of(entity, entry) for entry in entries))
            assert found == (entries[winner],)
            etag = saved.etag

    @pytest.mark.parametrize("character", ["x", "ж"])
    async def test_almost_two_megabytes_can_be_saved_together(self, store: AsyncStore, character: str) -> None:
        entity = owned_entity()
        text = character * (9 * MEGABYTE // 10 // len(character.encode()))
        entry = an_entry(entity, 1, padding=text)
        saved = await together(store, entity, entry, text=text)
        assert (await load(store, entity, saved.token)).document == entity_document(entity, text=text)
        ((found, _),) = await companions_of(store, entity, id_of(entity, entry), token=saved.token)
        assert found == entry

    async def test_a_hundred_documents_are_saved_together_and_more_are_refused(self, store: AsyncStore) -> None:
        entity = owned_entity()
        entries = tuple(an_entry(entity, number) for number in range(100))
        with pytest.raises(ValueError, match="101 documents"):
            await together(store, entity, *entries)
        saved = await together(store, entity, *entries[1:])
        found = await companions_of(store, entity, *(id_of(entity, entry) for entry in entries), token=saved.token)
        assert tuple(companion for companion, _ in found) == entries[1:]
