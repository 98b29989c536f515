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
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final
from uuid import uuid4

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
from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef, PartitionValue
from exactlyonce.records import Output, OutputRef, ProcessedRecord, StagedOutputs
from exactlyonce.session_tokens import at_or_after
from exactlyonce.stores.port import AsyncStore

PLAIN: Final = "contract-plain"
LEVELS: Final = "contract-levels"
ENTITY_TYPES: Final[Mapping[str, tuple[str, ...]]] = {PLAIN: ("/id",), LEVELS: ("/tenant", "/place/region", "/number")}
"""The entity types of the suite, each with the partition key paths of its container."""

MEGABYTE: Final = 1_000_000
_AT: Final = datetime(2026, 11, 21, 10, 0, 2, 250_000, tzinfo=timezone.utc)
_AWKWARD: Final = (
    "web/m-42",
    "web/m%2F42",
    "web/%",
    "web/ÄÖÜ €",
    "web/消息 🎯",
    "web/a\\b?c#d",
    "web/trailing space ",
    "web/" + "x" * 1000,
    "UPPER",
    "upper",
    "web/'quoted\" \n line",
)


class StoreContract:
    """Inherit from it and give it a fixture `store`."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """The store to test; it holds the containers of `ENTITY_TYPES`."""
        raise NotImplementedError("Override the fixture `store`.")

    async def test_an_entity_nobody_saved_is_absent(self, store: AsyncStore) -> None:
        reply = await store.load_entity(LoadEntity(_plain()))
        assert isinstance(reply, Loaded)
        assert (reply.document, reply.etag, reply.timestamp) == (None, None, 0)

    async def test_a_created_entity_is_loaded_as_it_was_saved(self, store: AsyncStore) -> None:
        entity = _plain()
        saved = await _save(store, entity, total=1)
        loaded = await _load(store, entity, saved.token)
        assert loaded.document == _document(entity, total=1)
        assert loaded.etag == saved.etag
        assert loaded.timestamp > 0

    async def test_creating_an_existing_entity_is_a_conflict_and_changes_nothing(self, store: AsyncStore) -> None:
        entity = _plain()
        await _save(store, entity, total=1)
        reply = await store.save_entity(SaveEntity(entity, _document(entity, total=2), None))
        assert isinstance(reply, Conflict)
        assert (await _load(store, entity, reply.token)).document == _document(entity, total=1)

    async def test_a_save_with_the_current_etag_replaces(self, store: AsyncStore) -> None:
        entity = _plain()
        first = await _save(store, entity, total=1)
        second = await _save(store, entity, first.etag, total=2)
        assert second.etag != first.etag
        assert (await _load(store, entity, second.token)).document == _document(entity, total=2)

    async def test_saving_the_same_document_again_changes_the_etag(self, store: AsyncStore) -> None:
        entity = _plain()
        first = await _save(store, entity, total=1)
        assert (await _save(store, entity, first.etag, total=1)).etag != first.etag

    async def test_a_save_with_an_old_etag_is_a_conflict_whose_token_shows_the_winner(self, store: AsyncStore) -> None:
        entity = _plain()
        first = await _save(store, entity, total=1)
        await _save(store, entity, first.etag, total=2)
        reply = await store.save_entity(SaveEntity(entity, _document(entity, total=3), first.etag))
        assert isinstance(reply, Conflict)
        assert (await _load(store, entity, reply.token)).document == _document(entity, total=2)

    async def test_replacing_an_entity_that_is_not_there_is_a_conflict_and_creates_nothing(
        self, store: AsyncStore
    ) -> None:
        entity = _plain()
        etag = (await _save(store, _plain(), total=1)).etag
        reply = await store.save_entity(SaveEntity(entity, _document(entity, total=2), etag))
        assert isinstance(reply, Conflict)
        assert (await _load(store, entity, reply.token)).document is None

    async def test_of_sixteen_concurrent_saves_one_wins(self, store: AsyncStore) -> None:
        entity = _plain()
        etag: str | None = None
        for _ in range(2):  # First of creates, then of replaces.
            saves = (store.save_entity(SaveEntity(entity, _document(entity, total=n), etag)) for n in range(16))
            replies = await asyncio.gather(*saves)
            winners = [(n, reply) for n, reply in enumerate(replies) if isinstance(reply, Saved)]
            assert len(winners) == 1
            assert all(isinstance(reply, Saved | Conflict) for reply in replies)
            winner, saved = winners[0]
            assert (await _load(store, entity, saved.token)).document == _document(entity, total=winner)
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
        entity = _plain()
        saved = await _save(store, entity, **values)
        loaded = await _load(store, entity, saved.token)
        assert loaded.document is not None
        assert loaded.document.value == _document(entity, **values).value

    async def test_properties_keep_their_order(self, store: AsyncStore) -> None:
        entity = _plain()
        saved = await _save(store, entity, zulu=1, alpha=2, mike=3)
        loaded = await _load(store, entity, saved.token)
        assert loaded.document is not None
        assert list(loaded.document.value) == ["id", "zulu", "alpha", "mike"]

    @pytest.mark.parametrize("character", ["x", "ж", "🎯"])
    async def test_a_document_of_1_4_megabytes_can_be_stored(self, store: AsyncStore, character: str) -> None:
        entity = _plain()
        text = character * (14 * MEGABYTE // 10 // len(character.encode()))
        saved = await _save(store, entity, text=text)
        saved = await _save(store, entity, saved.etag, text=text, more=1)
        assert (await _load(store, entity, saved.token)).document == _document(entity, text=text, more=1)

    async def test_entities_live_under_hierarchical_partition_keys(self, store: AsyncStore) -> None:
        entity = EntityRef(LEVELS, (_fresh(), "north", 7), "a")
        saved = await _save(store, entity, total=1)
        await _save(store, entity, saved.etag, total=2)
        loaded = await _load(store, entity, None)
        assert loaded.document == _document(entity, total=2)
        await _write(store, entity, "web/m-1")
        assert await _find(store, entity, "web/m-1", "web/m-2") == {"web/m-1"}

    async def test_entities_of_one_id_in_different_partitions_are_different(self, store: AsyncStore) -> None:
        tenant = _fresh()
        partitions: list[tuple[PartitionValue, ...]] = [
            (tenant, "north", 2),
            (tenant, "north", "2"),
            (tenant, "north", True),
            (tenant, "2", 2),
        ]
        entities = [EntityRef(LEVELS, partition, "a") for partition in partitions]
        for number, entity in enumerate(entities):
            await _save(store, entity, total=number)
            await _write(store, entity, f"web/{number}")
        for number, entity in enumerate(entities):
            assert (await _load(store, entity, None)).document == _document(entity, total=number)
            assert await _find(store, entity, "web/0", "web/1", "web/2", "web/3") == {f"web/{number}"}

    async def test_records_of_entities_whose_names_run_together_are_kept_apart(self, store: AsyncStore) -> None:
        fresh = _fresh()
        entities = [
            EntityRef(PLAIN, (fresh + "/a",), "b"),
            EntityRef(PLAIN, (fresh, "a"), "b"),
            EntityRef(PLAIN, (fresh,), 'a","b'),
            EntityRef(LEVELS, (fresh,), "a"),
            EntityRef(PLAIN, (fresh,), "a"),
        ]
        for number, entity in enumerate(entities):
            await _write(store, entity, f"web/{number}")
        messages = tuple(f"web/{number}" for number in range(len(entities)))
        for number, entity in enumerate(entities):
            assert await _find(store, entity, *messages) == {f"web/{number}"}

    async def test_no_record_is_found_where_none_was_written(self, store: AsyncStore) -> None:
        entity = _plain()
        assert await _find(store, entity, "web/m-1") == set()
        assert await _find(store, entity, "web/m-1", "web/m-2") == set()

    @pytest.mark.parametrize("message", _AWKWARD)
    async def test_a_record_is_found_by_its_message_alone(self, store: AsyncStore, message: str) -> None:
        entity = _plain()
        token = await _write(store, entity, message)
        assert await _find(store, entity, message, token=token) == {message}
        assert await _find(store, entity, message + "-", token=token) == set()

    async def test_of_several_messages_those_with_records_are_found(self, store: AsyncStore) -> None:
        entity = _plain()
        token = await _write(store, entity, *_AWKWARD)
        missing = tuple(message + "-" for message in _AWKWARD)
        assert await _find(store, entity, *_AWKWARD, *missing, token=token) == set(_AWKWARD)

    async def test_a_view_with_a_token_is_at_that_token(self, store: AsyncStore) -> None:
        entity = _plain()
        token = await _write(store, entity, "web/m-1")
        for messages in [("web/m-1",), ("web/m-2",), ("web/m-1", "web/m-2")]:
            reply = await store.find_processed(FindProcessed(entity, messages, token))
            assert isinstance(reply, Found)
            assert at_or_after(reply.token, token)

    async def test_a_record_may_be_written_twice(self, store: AsyncStore) -> None:
        entity = _plain()
        await _write(store, entity, "web/m-1", "web/m-2")
        await _write(store, entity, "web/m-1")
        token = await _write(store, entity, "web/m-2", "web/m-3")
        assert await _find(store, entity, "web/m-1", "web/m-2", "web/m-3", token=token) == {
            "web/m-1",
            "web/m-2",
            "web/m-3",
        }

    async def test_more_records_than_a_batch_holds_are_written_and_the_token_covers_them_all(
        self, store: AsyncStore
    ) -> None:
        entity = _plain()
        messages = tuple(f"web/m-{number}" for number in range(250))
        token = await _write(store, entity, *messages)
        for some in (messages[:100], messages[100:200], messages[200:]):
            assert await _find(store, entity, *some, token=token) == set(some)

    async def test_records_larger_than_a_batch_together_are_written(self, store: AsyncStore) -> None:
        entity = _plain()
        outputs = tuple(OutputRef(f"{number:036}", "receipts") for number in range(10_000))
        records = tuple(replace(_record(entity, f"web/{number}"), outputs=outputs) for number in range(5))
        written = await store.write_processed(WriteProcessed(entity, records))
        assert isinstance(written, Written)
        messages = tuple(record.message for record in records)
        assert await _find(store, entity, *messages, token=written.token) == set(messages)

    async def test_whether_an_entity_has_records_can_be_asked(self, store: AsyncStore) -> None:
        entity = _plain()
        assert await store.has_records(HasRecords(entity)) is False
        await store.stage(Stage(entity, (_staged(entity, _fresh()),)))
        assert await store.has_records(HasRecords(entity)) is False
        await _write(store, entity, "web/m-1")
        assert await store.has_records(HasRecords(entity)) is True

    async def test_staged_outputs_are_loaded_as_they_were_staged(self, store: AsyncStore) -> None:
        entity = _plain()
        first, second, third = (_staged(entity, _fresh()) for _ in range(3))
        written = await store.stage(Stage(entity, (first, second)))
        assert isinstance(written, Written)
        reply = await store.stage(Stage(entity, (third,)))
        assert isinstance(reply, Written)
        for documents in [(first,), (third, first), (first, second, third)]:
            transactions = tuple(document.tx for document in documents)
            loaded = await store.load_staged(LoadStaged(entity, transactions, reply.token))
            assert loaded == FoundStaged(documents)

    async def test_staging_a_transaction_again_is_a_conflict_whose_token_shows_it(self, store: AsyncStore) -> None:
        entity = _plain()
        documents = tuple(_staged(entity, _fresh()) for _ in range(2))
        for some in (documents[:1], documents):
            await store.stage(Stage(entity, some))
            reply = await store.stage(Stage(entity, some))
            assert isinstance(reply, Conflict)
            loaded = await store.load_staged(LoadStaged(entity, (documents[0].tx,), reply.token))
            assert loaded == FoundStaged(documents[:1])

    async def test_staged_outputs_that_are_gone_are_left_out(self, store: AsyncStore) -> None:
        entity = _plain()
        documents = tuple(_staged(entity, _fresh()) for _ in range(3))
        await store.stage(Stage(entity, documents))
        await store.delete_staged(DeleteStaged(entity, (documents[1].tx,)))
        transactions = tuple(document.tx for document in documents)
        loaded = await store.load_staged(LoadStaged(entity, transactions, None))
        assert loaded == FoundStaged((documents[0], documents[2]))
        assert await store.load_staged(LoadStaged(entity, (documents[1].tx,), None)) == FoundStaged(())

    async def test_deleting_staged_outputs_ignores_those_that_are_missing(self, store: AsyncStore) -> None:
        entity = _plain()
        documents = tuple(_staged(entity, _fresh()) for _ in range(3))
        transactions = tuple(document.tx for document in documents)
        await store.stage(Stage(entity, documents))
        await store.delete_staged(DeleteStaged(entity, (_fresh(),)))
        await store.delete_staged(DeleteStaged(entity, (transactions[0], _fresh(), transactions[1])))
        assert await store.load_staged(LoadStaged(entity, transactions, None)) == FoundStaged(documents[2:])
        await store.delete_staged(DeleteStaged(entity, transactions[1:]))
        assert await store.load_staged(LoadStaged(entity, transactions, None)) == FoundStaged(())

    async def test_staged_outputs_larger_than_a_batch_together_are_staged(self, store: AsyncStore) -> None:
        entity = _plain()
        documents = tuple(_staged(entity, _fresh(), size=MEGABYTE) for _ in range(3))
        written = await store.stage(Stage(entity, documents))
        assert isinstance(written, Written)
        transactions = tuple(document.tx for document in documents)
        loaded = await store.load_staged(LoadStaged(entity, transactions, written.token))
        assert loaded == FoundStaged(documents)


def _fresh() -> str:
    return uuid4().hex


def _plain() -> EntityRef:
    id = _fresh()
    return EntityRef(PLAIN, (id,), id)


def _document(entity: EntityRef, **properties: Any) -> Json:
    """A document with the id and the partition key where the container wants them."""
    document: dict[str, Any] = {"id": entity.id}
    for path, value in zip(ENTITY_TYPES[entity.type], entity.partition, strict=True):
        _put(document, path.split("/")[1:], value)
    return Json.of({**document, **properties})


def _put(document: dict[str, Any], names: list[str], value: PartitionValue) -> None:
    for name in names[:-1]:
        document = document.setdefault(name, {})
    document[names[-1]] = value


async def _save(store: AsyncStore, entity: EntityRef, etag: str | None = None, /, **properties: Any) -> Saved:
    reply = await store.save_entity(SaveEntity(entity, _document(entity, **properties), etag))
    assert isinstance(reply, Saved)
    return reply


async def _load(store: AsyncStore, entity: EntityRef, token: str | None) -> Loaded:
    reply = await store.load_entity(LoadEntity(entity, token))
    assert isinstance(reply, Loaded)
    return reply


async def _write(store: AsyncStore, entity: EntityRef, *messages: str) -> str:
    records = tuple(_record(entity, message) for message in messages)
    reply = await store.write_processed(WriteProcessed(entity, records))
    assert isinstance(reply, Written)
    return reply.token


async def _find(store: AsyncStore, entity: EntityRef, *messages: str, token: str | None = None) -> set[str]:
    reply = await store.find_processed(FindProcessed(entity, messages, token))
    assert isinstance(reply, Found)
    return set(reply.messages)


def _record(entity: EntityRef, message: str) -> ProcessedRecord:
    return ProcessedRecord(entity.key, message, _fresh(), 1, _AT, (OutputRef("o-1", "receipts"),), "digest")


def _staged(entity: EntityRef, tx: str, *, size: int = 10) -> StagedOutputs:
    envelope = Json.of({"id": "o-1", "data": {"padding": "x" * size, "text": "ÄÖÜ 🎯", "none": None}})
    return StagedOutputs(entity.key, "web/m-1", tx, _AT, (Output("o-1", "receipts", envelope, 1.5),))
