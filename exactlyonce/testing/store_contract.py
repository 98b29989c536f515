"""What every store has to do, as a suite to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[AsyncStore]:
            ...  # with containers for ENTITY_TYPES

Needs pytest and pytest-asyncio in its automatic mode. Every test uses entities of its own, so that a store may keep what
earlier runs have left.
"""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.effects import (
    Conflict,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundStaged,
    HasRecords,
    Loaded,
    LoadEntity,
    LoadStaged,
    Saved,
    SaveEntity,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.identity import EntityRef, PartitionValue
from exactlyonce.records import OutputRef
from exactlyonce.session_tokens import at_or_after
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contract_samples import (
    AWKWARD,
    ENTITY_TYPES,
    LEVELS,
    MEGABYTE,
    PLAIN,
    a_record,
    a_staged,
    entity_document,
    find,
    load,
    plain_entity,
    save,
    staged_now,
    unique,
    write,
)

__all__ = ["ENTITY_TYPES", "StoreContract"]


class StoreContract:
    """Inherit from it and give it a fixture `store`."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """The store to test; it holds the containers of `ENTITY_TYPES`."""
        raise NotImplementedError("Override the fixture `store`.")

    async def test_an_entity_nobody_saved_is_absent(self, store: AsyncStore) -> None:
        reply = await store.load_entity(LoadEntity(plain_entity()))
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
        reply = await store.save_entity(SaveEntity(entity, entity_document(entity, total=2), None))
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
        reply = await store.save_entity(SaveEntity(entity, entity_document(entity, total=3), first.etag))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document == entity_document(entity, total=2)

    async def test_replacing_an_entity_that_is_not_there_is_a_conflict_and_creates_nothing(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        etag = (await save(store, plain_entity(), total=1)).etag
        reply = await store.save_entity(SaveEntity(entity, entity_document(entity, total=2), etag))
        assert isinstance(reply, Conflict)
        assert (await load(store, entity, reply.token)).document is None

    async def test_of_sixteen_concurrent_saves_one_wins(self, store: AsyncStore) -> None:
        entity = plain_entity()
        etag: str | None = None
        for _ in range(2):  # First of creates, then of replaces.
            saves = (store.save_entity(SaveEntity(entity, entity_document(entity, total=n), etag)) for n in range(16))
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
        token = await write(store, entity, "web/m-1")
        assert await find(store, entity, "web/m-1", "web/m-2", token=token) == {"web/m-1"}

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
            ((await save(store, entity, total=number)).token, await write(store, entity, f"web/{number}"))
            for number, entity in enumerate(entities)
        ]
        for number, (entity, (saved, written)) in enumerate(zip(entities, tokens, strict=True)):
            assert (await load(store, entity, saved)).document == entity_document(entity, total=number)
            assert await find(store, entity, "web/0", "web/1", "web/2", "web/3", token=written) == {f"web/{number}"}

    async def test_records_of_entities_whose_names_run_together_are_kept_apart(self, store: AsyncStore) -> None:
        fresh = unique()
        entities = [
            EntityRef(PLAIN, (fresh + "/a",), "b"),
            EntityRef(PLAIN, (fresh, "a"), "b"),
            EntityRef(PLAIN, (fresh,), 'a","b'),
            EntityRef(LEVELS, (fresh,), "a"),
            EntityRef(PLAIN, (fresh,), "a"),
        ]
        tokens = [await write(store, entity, f"web/{number}") for number, entity in enumerate(entities)]
        messages = tuple(f"web/{number}" for number in range(len(entities)))
        for number, (entity, token) in enumerate(zip(entities, tokens, strict=True)):
            assert await find(store, entity, *messages, token=token) == {f"web/{number}"}

    async def test_no_record_is_found_where_none_was_written(self, store: AsyncStore) -> None:
        entity = plain_entity()
        assert await find(store, entity, "web/m-1") == set()
        assert await find(store, entity, "web/m-1", "web/m-2") == set()

    @pytest.mark.parametrize("message", AWKWARD)
    async def test_a_record_is_found_by_its_message_alone(self, store: AsyncStore, message: str) -> None:
        entity = plain_entity()
        token = await write(store, entity, message)
        assert await find(store, entity, message, token=token) == {message}
        assert await find(store, entity, message + "-", token=token) == set()

    async def test_of_several_messages_those_with_records_are_found(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await write(store, entity, *AWKWARD)
        missing = tuple(message + "-" for message in AWKWARD)
        assert await find(store, entity, *AWKWARD, *missing, token=token) == set(AWKWARD)

    async def test_a_view_with_a_token_is_at_that_token(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await write(store, entity, "web/m-1")
        for messages in [("web/m-1",), ("web/m-2",), ("web/m-1", "web/m-2")]:
            reply = await store.find_processed(FindProcessed(entity, messages, token))
            assert isinstance(reply, Found)
            assert at_or_after(reply.token, token)

    async def test_a_record_may_be_written_twice(self, store: AsyncStore) -> None:
        entity = plain_entity()
        await write(store, entity, "web/m-1", "web/m-2")
        await write(store, entity, "web/m-1")
        token = await write(store, entity, "web/m-2", "web/m-3")
        assert await find(store, entity, "web/m-1", "web/m-2", "web/m-3", token=token) == {
            "web/m-1",
            "web/m-2",
            "web/m-3",
        }

    async def test_more_records_than_a_batch_holds_are_written_and_the_token_covers_them_all(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        messages = tuple(f"web/m-{number}" for number in range(250))
        token = await write(store, entity, *messages)
        for some in (messages[:100], messages[100:200], messages[200:]):
            assert await find(store, entity, *some, token=token) == set(some)

    async def test_records_larger_than_a_batch_together_are_written(self, store: AsyncStore) -> None:
        entity = plain_entity()
        outputs = tuple(OutputRef(f"{number:036}", "receipts") for number in range(10_000))
        records = tuple(replace(a_record(entity, f"web/{number}"), outputs=outputs) for number in range(5))
        written = await store.write_processed(WriteProcessed(entity, records))
        assert isinstance(written, Written)
        messages = tuple(record.message for record in records)
        assert await find(store, entity, *messages, token=written.token) == set(messages)

    async def test_whether_an_entity_has_records_can_be_asked(self, store: AsyncStore) -> None:
        entity = plain_entity()
        assert await store.has_records(HasRecords(entity)) is False
        await store.stage(Stage(entity, (a_staged(entity),)))
        assert await store.has_records(HasRecords(entity)) is False
        await write(store, entity, "web/m-1")
        assert await store.has_records(HasRecords(entity)) is True

    async def test_staged_outputs_are_loaded_as_they_were_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first, second, third = (a_staged(entity) for _ in range(3))
        written = await store.stage(Stage(entity, (first, second)))
        assert isinstance(written, Written)
        reply = await store.stage(Stage(entity, (third,)))
        assert isinstance(reply, Written)
        for documents in [(first,), (third, first), (first, second, third)]:
            transactions = tuple(document.tx for document in documents)
            loaded = await store.load_staged(LoadStaged(entity, transactions, reply.token))
            assert loaded == FoundStaged(documents)

    async def test_staging_a_transaction_again_is_a_conflict_whose_token_shows_it(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(2))
        for some in (documents[:1], documents):
            await store.stage(Stage(entity, some))
            reply = await store.stage(Stage(entity, some))
            assert isinstance(reply, Conflict)
            loaded = await store.load_staged(LoadStaged(entity, (documents[0].tx,), reply.token))
            assert loaded == FoundStaged(documents[:1])

    async def test_staged_outputs_that_are_gone_are_left_out(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(3))
        await store.stage(Stage(entity, documents))
        await store.delete_staged(DeleteStaged(entity, (documents[1].tx,)))
        transactions = tuple(document.tx for document in documents)
        assert await staged_now(store, entity, *transactions) == (documents[0], documents[2])
        assert await staged_now(store, entity, documents[1].tx) == ()

    async def test_deleting_staged_outputs_ignores_those_that_are_missing(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(3))
        transactions = tuple(document.tx for document in documents)
        await store.stage(Stage(entity, documents))
        await store.delete_staged(DeleteStaged(entity, (unique(),)))
        await store.delete_staged(DeleteStaged(entity, (transactions[0], unique(), transactions[1])))
        assert await staged_now(store, entity, *transactions) == documents[2:]
        await store.delete_staged(DeleteStaged(entity, transactions[1:]))
        assert await staged_now(store, entity, *transactions) == ()

    async def test_staged_outputs_larger_than_a_batch_together_are_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity, size=MEGABYTE) for _ in range(3))
        written = await store.stage(Stage(entity, documents))
        assert isinstance(written, Written)
        transactions = tuple(document.tx for document in documents)
        loaded = await store.load_staged(LoadStaged(entity, transactions, written.token))
        assert loaded == FoundStaged(documents)
