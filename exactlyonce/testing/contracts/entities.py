"""The contract of a store for entity documents; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    MEGABYTE,
    PLAIN,
    UNIQUE,
    a_page,
    entity_document,
    find,
    load,
    owned_entity,
    plain_entity,
    save,
    unique,
    write,
)
from exactlyonce.values.identity import EntityRef, PartitionValue

ALL_TIMES: Final = tuple(range(10_000, 100_000, 10_000))
"""Of the first nine pages of `a_page`."""


class EntityContract:
    """Loading and saving entities, and keeping them apart."""

    async def test_an_entity_nobody_saved_is_absent(self, store: AsyncStore) -> None:
        reply = await store.perform(LoadEntity(plain_entity()))
        assert isinstance(reply, Loaded)
        assert (reply.document, reply.etag, reply.timestamp) == (None, None, 0)

    async def test_a_created_entity_is_loaded_as_it_was_saved(self, store: AsyncStore) -> None:
        entity = plain_entity()
        saved = await save(store, entity, total=1)
        loaded = await load(store, entity, saved.token)
        assert loaded.document == entity_document(entity, total=1)
        assert loaded.etag == saved.etag
        assert loaded.timestamp > 0

    async def test_creating_an_existing_entity_is_a_conflict_and_changes_nothing(self, store: AsyncStore) -> None:
        entity = plain_entity()
        await save(store, entity, total=1)
        reply = await store.perform(SaveEntity(entity, entity_document(entity, total=2), None))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document == entity_document(entity, total=1)

    async def test_a_save_with_the_current_etag_replaces(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await save(store, entity, total=1)
        second = await save(store, entity, first.etag, total=2)
        assert second.etag != first.etag
        assert (await load(store, entity, second.token)).document == entity_document(entity, total=2)

    async def test_saving_the_same_document_again_changes_the_etag(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await save(store, entity, total=1)
        assert (await save(store, entity, first.etag, total=1)).etag != first.etag

    async def test_a_save_with_an_old_etag_is_a_conflict_whose_token_shows_the_winner(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await save(store, entity, total=1)
        await save(store, entity, first.etag, total=2)
        reply = await store.perform(SaveEntity(entity, entity_document(entity, total=3), first.etag))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document == entity_document(entity, total=2)

    async def test_replacing_an_entity_that_is_not_there_is_a_conflict_and_creates_nothing(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        etag = (await save(store, plain_entity(), total=1)).etag
        reply = await store.perform(SaveEntity(entity, entity_document(entity, total=2), etag))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document is None

    @pytest.mark.parametrize("together", [False, True])
    async def test_a_save_that_takes_a_unique_key_of_another_entity_is_refused_and_changes_nothing(
        self, store: AsyncStore, *, together: bool
    ) -> None:
        owner = unique()
        first, second = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        await save(store, first, email="a@x", name={"first": "Ann", "last": "Ash"})
        for taken in ({"email": "a@x"}, {"email": "b@x", "name": {"last": "Ash", "first": "Ann"}}):
            with pytest.raises(UniqueKeyTaken, match=second.id):
                await _saving(store, second, None, together=together, **taken)
        saved = await save(store, second, email="b@x")
        with pytest.raises(UniqueKeyTaken, match=second.id):
            await _saving(store, second, saved.etag, together=together, email="a@x")
        loaded = await load(store, second, saved.token)
        assert (loaded.document, loaded.etag) == (entity_document(second, email="b@x"), saved.etag)

    @pytest.mark.parametrize("together", [False, True])
    async def test_saving_twice_or_too_late_is_a_conflict_and_not_about_the_unique_keys_it_shares_with_itself(
        self, store: AsyncStore, *, together: bool
    ) -> None:
        owner = unique()
        entity, other = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        saved = await save(store, entity, email="a@x")
        assert isinstance(await _saving(store, entity, None, together=together, email="a@x"), Conflict)
        again = await _saving(store, entity, saved.etag, together=together, email="a@x")
        assert isinstance(again, Saved)
        await save(store, other, email="b@x", name={"first": "Ann"})
        assert isinstance(await _saving(store, entity, saved.etag, together=together, email="b@x"), Conflict)

    async def test_a_unique_key_is_free_in_another_partition_and_when_nobody_has_it_any_more(
        self, store: AsyncStore
    ) -> None:
        owner = unique()
        one, other = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        saved = await save(store, one, email="a@x")
        await save(store, owned_entity(type=UNIQUE), email="a@x")
        await save(store, one, saved.etag, email="b@x", name={"first": "Ann"})
        await save(store, other, email="a@x")

    async def test_of_entities_without_the_property_of_a_unique_key_a_partition_takes_one(
        self, store: AsyncStore
    ) -> None:
        owner = unique()
        one, other = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        await save(store, one, name={"first": "Ann"})
        with pytest.raises(UniqueKeyTaken, match="null"):
            await _saving(store, other, None, email=None, name={"first": "Bob"})
        await save(store, other, email="", name={"first": "Bob"})

    async def test_of_sixteen_concurrent_saves_one_wins(self, store: AsyncStore) -> None:
        entity = plain_entity()
        etag: str | None = None
        for _ in range(2):  # First of creates, then of replaces.
            saves = (store.perform(SaveEntity(entity, entity_document(entity, total=n), etag)) for n in range(16))
            replies = await asyncio.gather(*saves)
            winners = [(n, reply) for n, reply in enumerate(replies) if isinstance(reply, Saved)]
            assert len(winners) == 1
            assert all(isinstance(reply, Saved | Conflict) for reply in replies)
            winner, saved = winners[0]
            assert (await load(store, entity, saved.token)).document == entity_document(entity, total=winner)
            etag = saved.etag

    async def test_every_kind_of_json_comes_back_as_it_went(self, store: AsyncStore) -> None:
        values: dict[str, Any] = {
            "none": None,
            "booleans": [True, False],
            "numbers": [0, -1, 0.5, -2.25e-3, 9_007_199_254_740_991, 1e21],
            "texts": ["", "ÄÖÜ €", "消息 🎯", '\u0000\u2028"\\/', "_ts"],
            "empty": [{}, [], [[]]],
            "nested": {"_etag": "mine", "$type": "x", "a b": {"": 1}},
        }
        entity = plain_entity()
        saved = await save(store, entity, **values)
        loaded = await load(store, entity, saved.token)
        assert loaded.document is not None
        assert loaded.document.value == entity_document(entity, **values).value

    async def test_properties_keep_their_order(self, store: AsyncStore) -> None:
        entity = plain_entity()
        saved = await save(store, entity, zulu=1, alpha=2, mike=3)
        loaded = await load(store, entity, saved.token)
        assert loaded.document is not None
        assert list(loaded.document.value) == ["id", "zulu", "alpha", "mike"]

    @pytest.mark.parametrize("character", ["x", "ж", "🎯"])
    async def test_a_document_of_1_4_megabytes_can_be_stored(self, store: AsyncStore, character: str) -> None:
        entity = plain_entity()
        text = character * (14 * MEGABYTE // 10 // len(character.encode()))
        saved = await save(store, entity, text=text)
        saved = await save(store, entity, saved.etag, text=text, more=1)
        assert (await load(store, entity, saved.token)).document == entity_document(entity, text=text, more=1)

    async def test_entities_live_under_hierarchical_partition_keys(self, store: AsyncStore) -> None:
        entity = EntityRef(LEVELS, (unique(), "north", 7), "a")
        saved = await save(store, entity, total=1)
        saved = await save(store, entity, saved.etag, total=2)
        assert (await load(store, entity, saved.token)).document == entity_document(entity, total=2)
        token = await write(store, entity)
        assert await find(store, entity, newest=1, token=token) == [1]

    async def test_entities_of_one_id_in_different_partitions_are_different(self, store: AsyncStore) -> None:
        tenant = unique()
        partitions: list[tuple[PartitionValue, ...]] = [
            (tenant, "north", 2),
            (tenant, "north", "2"),
            (tenant, "north", True),
            (tenant, "2", 2),
        ]
        entities = [EntityRef(LEVELS, partition, "a") for partition in partitions]
        tokens = [
            ((await save(store, entity, total=number)).token, await write(store, entity, a_page(entity, number + 1)))
            for number, entity in enumerate(entities)
        ]
        for number, (entity, (saved, written)) in enumerate(zip(entities, tokens, strict=True)):
            assert (await load(store, entity, saved)).document == entity_document(entity, total=number)
            assert await find(store, entity, times=ALL_TIMES, token=written) == [number + 1]

    async def test_pages_of_entities_whose_names_run_together_are_kept_apart(self, store: AsyncStore) -> None:
        fresh = unique()
        entities = [
            EntityRef(PLAIN, (fresh + "/a",), "b"),
            EntityRef(PLAIN, (fresh, "a"), "b"),
            EntityRef(PLAIN, (fresh,), 'a","b'),
            EntityRef(LEVELS, (fresh,), "a"),
            EntityRef(PLAIN, (fresh,), "a"),
        ]
        tokens = [await write(store, entity, a_page(entity, number)) for number, entity in enumerate(entities, start=1)]
        for number, (entity, token) in enumerate(zip(entities, tokens, strict=True), start=1):
            assert await find(store, entity, times=ALL_TIMES, token=token) == [number]


async def _saving(
    store: AsyncStore, entity: EntityRef, etag: str | None, *, together: bool = False, **properties: Any
) -> object:
    """The reply to a save: of the entity alone, or of a batch."""
    document = entity_document(entity, **properties)
    if together:
        return await store.perform(SaveBatch(entity, document, etag))
    return await store.perform(SaveEntity(entity, document, etag))
