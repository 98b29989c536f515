"""What every store has to do with the library's documents; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce.effects import (
    Conflict,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundStaged,
    HasRecords,
    LoadStaged,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.records import OutputRef
from exactlyonce.session_tokens import at_or_after
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contract_samples import (
    AWKWARD,
    MEGABYTE,
    a_record,
    a_staged,
    find,
    plain_entity,
    staged_now,
    unique,
    write,
)


class LibraryContract:
    """Processed records and staged outputs."""

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
