"""The contract of a store, as a suite to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[AsyncStore]:
            ...  # with containers for ENTITY_TYPES, whose unique keys are UNIQUE_KEYS

        async def etag_of_book(self, store: AsyncStore, book: str) -> str:
            ...  # read past the store

        async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
            ...  # read past the store

Needs pytest and pytest-asyncio in its automatic mode. Every test uses entities of its own, so the store may keep entities of
earlier runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.records.companions import Companion, StreamEntry, entry_id, id_of
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.companions import CompanionContract, StreamContract
from exactlyonce.testing.contracts.library import LibraryContract, PagesContract, RequestsContract
from exactlyonce.testing.contracts.samples import (
    AWKWARD,
    ENTITY_TYPES,
    LEVELS,
    MEGABYTE,
    OWNED,
    PLAIN,
    UNIQUE,
    UNIQUE_KEYS,
    a_colocated,
    a_numbered,
    a_page,
    an_entry,
    companions_now,
    companions_of,
    entity_document,
    find,
    load,
    owned_entity,
    plain_entity,
    reply_to,
    save,
    together,
    unique,
    write,
)
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json

# Entity documents.


# ruff: noqa: S101  # A suite asserts.


ALL_TIMES: Final = tuple(range(10_000, 100_000, 10_000))
"""The times of the first nine pages of `a_page`."""


class EntityContract:
    """Entities are loaded and saved, and kept apart."""

    async def test_an_entity_nobody_saved_is_absent(self, store: AsyncStore) -> None:
        reply = await reply_to(store, LoadEntity(plain_entity()), Loaded)
        assert (reply.document, reply.etag, reply.timestamp) == (None, None, 0)

    async def test_a_created_entity_is_loaded_as_it_was_saved(self, store: AsyncStore) -> None:
        entity = plain_entity()
        saved = await save(store, entity, total=1)
        loaded = await load(store, entity, saved.token)
        assert loaded.document == entity_document(entity, total=1)
        assert loaded.etag == saved.etag
        assert loaded.timestamp > 0

    async def test_a_save_with_the_current_etag_replaces_and_changes_the_etag(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await save(store, entity, total=1)
        second = await save(store, entity, first.etag, total=2)
        assert (await load(store, entity, second.token)).document == entity_document(entity, total=2)
        third = await save(store, entity, second.etag, total=2)
        assert second.etag not in (first.etag, third.etag)

    async def test_a_save_on_a_condition_that_does_not_hold_is_a_conflict_whose_token_shows_the_winner(
        self, store: AsyncStore
    ) -> None:
        entity, absent = plain_entity(), plain_entity()
        first = await save(store, entity, total=1)
        await save(store, entity, first.etag, total=2)
        winner = entity_document(entity, total=2)
        for ref, etag, document in ((entity, None, winner), (entity, first.etag, winner), (absent, first.etag, None)):
            reply = await reply_to(store, SaveEntity(ref, entity_document(ref, total=3), etag), Conflict)
            assert (await load(store, ref, reply.token)).document == document

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
        first, other = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        saved = await save(store, first, email="a@x")
        await save(store, owned_entity(type=UNIQUE), email="a@x")
        await save(store, first, saved.etag, email="b@x", name={"first": "Ann"})
        await save(store, other, email="a@x")

    async def test_of_entities_without_the_property_of_a_unique_key_a_partition_takes_one(
        self, store: AsyncStore
    ) -> None:
        owner = unique()
        first, other = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
        await save(store, first, name={"first": "Ann"})
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
    """The reply to a save of the entity alone, or in a batch."""
    document = entity_document(entity, **properties)
    if together:
        return await store.perform(SaveBatch(entity, document, etag))
    return await store.perform(SaveEntity(entity, document, etag))


# Transactional batches of an entity and its companions.


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
        """A save with a new companion, and other writes."""
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
    """Make the earlier writes of a case."""
    entity = owned_entity()
    unchanged_entry, other = an_entry(entity, 1, "web/1"), an_entry(entity, 2, "web/2")
    old = await together(store, entity, unchanged_entry, other, total=1)
    unchanged, changed = await companions_of(
        store, entity, entry_id(entity, "web/1"), entry_id(entity, "web/2"), token=old.token
    )
    later = replace(other, digest="another")
    change = SaveBatch(entity, entity_document(entity, total=2), old.etag, replace=((later, changed[1]),))
    new = await reply_to(store, change, Saved)
    return Scene(entity, old, new, (unchanged_entry, unchanged[1]), (other, changed[1]))


class BatchContract:
    """A batch is written as a whole, or not at all."""

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_a_view_at_the_token_of_a_save_shows_the_entity_and_its_companions(
        self, store: AsyncStore, type: str
    ) -> None:
        entity = owned_entity(type=type)
        companions = (a_colocated(entity, "web/1", owes=True), an_entry(entity, 1), a_numbered(entity))
        saved = await together(store, entity, *companions, total=1)
        loaded = await load(store, entity, saved.token)
        assert (loaded.document, loaded.etag) == (entity_document(entity, total=1), saved.etag)
        loaded_companions = await companions_of(
            store, entity, *(id_of(entity, item) for item in companions), token=saved.token
        )
        assert tuple(companion for companion, _ in loaded_companions) == companions
        assert len({saved.etag, *(etag for _, etag in loaded_companions)}) == 1 + len(loaded_companions)

    @pytest.mark.parametrize("message", AWKWARD)
    async def test_a_companion_is_found_by_its_message_alone(self, store: AsyncStore, message: str) -> None:
        entity = owned_entity()
        entry = an_entry(entity, 1, message)
        saved = await together(store, entity, entry)
        ((companion, _),) = await companions_of(store, entity, entry_id(entity, message), token=saved.token)
        assert companion == entry
        assert await companions_of(store, entity, entry_id(entity, message + "-"), token=saved.token) == ()

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_a_companion_can_be_written_over_as_it_was_read_together_with_the_entity(
        self, store: AsyncStore, type: str
    ) -> None:
        entity = owned_entity(type=type)
        first = await together(store, entity, a_colocated(entity, "web/1", owes=True), total=1)
        ((record, etag),) = await companions_of(
            store, entity, id_of(entity, a_colocated(entity, "web/1")), token=first.token
        )
        settled, entry = a_colocated(entity, "web/1"), an_entry(entity, 2)
        effect = SaveBatch(entity, entity_document(entity, total=2), first.etag, (entry,), replace=((settled, etag),))
        second = await reply_to(store, effect, Saved)
        assert (await load(store, entity, second.token)).document == entity_document(entity, total=2)
        companions = await companions_of(store, entity, id_of(entity, record), id_of(entity, entry), token=second.token)
        assert [companion for companion, _ in companions] == [settled, entry]
        assert etag not in [now for _, now in companions]

    @pytest.mark.parametrize("way", WAYS_TO_FAIL)
    async def test_if_one_condition_fails_it_is_a_conflict_and_nothing_is_written(
        self, store: AsyncStore, way: str
    ) -> None:
        scene = await a_scene(store)
        entity = scene.entity
        reply = await reply_to(store, WAYS_TO_FAIL[way](scene), Conflict)
        loaded = await load(store, entity, reply.token)
        assert (loaded.document, loaded.etag) == (entity_document(entity, total=2), scene.new.etag)
        ids = (entry_id(entity, f"web/{number}") for number in (1, 2, 8, 9))
        companions = await companions_of(store, entity, *ids, token=reply.token)
        assert [item.digest for item, _ in companions if isinstance(item, StreamEntry)] == ["digest", "another"]
        assert companions[0] == scene.unchanged

    async def test_an_absent_entity_to_replace_is_a_conflict_and_nothing_is_written(self, store: AsyncStore) -> None:
        entity = owned_entity()
        entry = an_entry(entity, 1)
        etag = (await save(store, owned_entity())).etag
        reply = await reply_to(store, SaveBatch(entity, entity_document(entity), etag, (entry,)), Conflict)
        assert (await load(store, entity, reply.token)).document is None
        assert await companions_of(store, entity, id_of(entity, entry), token=reply.token) == ()

    async def test_saves_together_and_saves_alone_follow_each_other(self, store: AsyncStore) -> None:
        entity = owned_entity()
        first = await save(store, entity, total=1)
        second = await together(store, entity, an_entry(entity, 1), etag=first.etag, total=2)
        third = await together(store, entity, etag=second.etag, total=3)
        fourth = await save(store, entity, third.etag, total=4)
        saved = (first, second, third, fourth)
        assert len({item.etag for item in saved}) == len(saved)
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
            companions = await companions_now(store, entity, *(id_of(entity, entry) for entry in entries))
            assert companions == (entries[winner],)
            etag = saved.etag

    @pytest.mark.parametrize("character", ["x", "ж"])
    async def test_almost_two_megabytes_can_be_saved_together(self, store: AsyncStore, character: str) -> None:
        entity = owned_entity()
        text = character * (9 * MEGABYTE // 10 // len(character.encode()))
        entry = an_entry(entity, 1, padding=text)
        saved = await together(store, entity, entry, text=text)
        assert (await load(store, entity, saved.token)).document == entity_document(entity, text=text)
        ((companion, _),) = await companions_of(store, entity, id_of(entity, entry), token=saved.token)
        assert companion == entry

    async def test_a_hundred_documents_are_saved_together_and_more_are_refused(self, store: AsyncStore) -> None:
        entity = owned_entity()
        entries = tuple(an_entry(entity, number) for number in range(100))
        with pytest.raises(ValueError, match="101 documents"):
            await together(store, entity, *entries)
        saved = await together(store, entity, *entries[1:])
        companions = await companions_of(store, entity, *(id_of(entity, entry) for entry in entries), token=saved.token)
        assert tuple(companion for companion, _ in companions) == entries[1:]


__all__ = ["ENTITY_TYPES", "UNIQUE_KEYS", "StoreContract"]


class StoreContract(
    EntityContract,
    LibraryContract,
    PagesContract,
    RequestsContract,
    BatchContract,
    CompanionContract,
    StreamContract,
):
    """Suite for a store: give it a fixture `store`, and methods that read the ETags of books and requests."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """The store to test, with containers for `ENTITY_TYPES` and their `UNIQUE_KEYS`."""
        raise NotImplementedError("Override the fixture `store`.")
