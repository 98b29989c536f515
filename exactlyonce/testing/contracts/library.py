"""The contract of a store for the library's documents; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundRecords,
    FoundStaged,
    HasRecords,
    LoadProcessed,
    LoadStaged,
    Stage,
    WriteRecords,
    Written,
)
from exactlyonce.records.outputs import OutputRef
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    AWKWARD,
    MEGABYTE,
    a_parked,
    a_record,
    a_staged,
    entity_document,
    find,
    load,
    park,
    parked,
    parked_now,
    plain_entity,
    staged_now,
    unique,
    write,
)
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after

HOUR: Final = 3600


class LibraryContract:
    """Processed records, staged outputs and parked messages."""

    async def etag_of_record(self, store: AsyncStore, entity: EntityRef, message: str) -> str:
        """The ETag of a processed record, as clean-up reads it; the port has no request for it."""
        raise NotImplementedError("Override the method `etag_of_record`.")

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

    async def test_records_are_read_as_they_were_written_and_missing_ones_left_out(self, store: AsyncStore) -> None:
        entity = plain_entity()
        records = tuple(a_record(entity, message) for message in AWKWARD)
        written = await store.perform(WriteRecords(entity, records))
        assert isinstance(written, Written)
        for some in (records[:1], records, records[::-1]):
            messages = tuple(record.message for record in some)
            read = await store.perform(LoadProcessed(entity, (*messages, "web/other"), written.token))
            assert read == FoundRecords(some)
        assert await store.perform(LoadProcessed(entity, ("web/other",), written.token)) == FoundRecords(())

    async def test_a_view_with_a_token_is_at_that_token(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await write(store, entity, "web/m-1")
        for messages in [("web/m-1",), ("web/m-2",), ("web/m-1", "web/m-2")]:
            reply = await store.perform(FindProcessed(entity, messages, token))
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
        written = await store.perform(WriteRecords(entity, records))
        assert isinstance(written, Written)
        messages = tuple(record.message for record in records)
        assert await find(store, entity, *messages, token=written.token) == set(messages)

    async def test_whether_an_entity_has_records_can_be_asked(self, store: AsyncStore) -> None:
        entity = plain_entity()
        assert await store.perform(HasRecords(entity)) is False
        await store.perform(Stage(entity, (a_staged(entity),)))
        assert await store.perform(HasRecords(entity)) is False
        await write(store, entity, "web/m-1")
        assert await store.perform(HasRecords(entity)) is True

    async def test_records_are_deleted_as_they_were_read(self, store: AsyncStore) -> None:
        entity = plain_entity()
        messages = AWKWARD[:3]
        await write(store, entity, *messages)
        read = [(message, await self.etag_of_record(store, entity, message)) for message in messages]
        await store.perform(DeleteProcessed(entity, tuple(read[:1])))
        token = await write(store, entity, "web/later")
        assert await find(store, entity, *messages, token=token) == {*messages[1:]}
        await store.perform(DeleteProcessed(entity, tuple(read[1:])))
        token = await write(store, entity, "web/later")
        assert await find(store, entity, *messages, token=token) == set()

    async def test_a_record_that_was_written_anew_is_not_deleted_and_hinders_no_other(self, store: AsyncStore) -> None:
        entity = plain_entity()
        messages = ("web/m-1", "web/m-2", "web/m-3")
        await write(store, entity, *messages)
        read = [(message, await self.etag_of_record(store, entity, message)) for message in messages]
        await write(store, entity, "web/m-2")
        await store.perform(DeleteProcessed(entity, (read[1],)))
        await store.perform(DeleteProcessed(entity, (*read, ("web/m-4", read[0][1]))))
        token = await write(store, entity, "web/later")
        assert await find(store, entity, *messages, token=token) == {"web/m-2"}

    async def test_a_deleted_record_can_be_written_again(self, store: AsyncStore) -> None:
        entity = plain_entity()
        await write(store, entity, "web/m-1")
        etag = await self.etag_of_record(store, entity, "web/m-1")
        await store.perform(DeleteProcessed(entity, (("web/m-1", etag),)))
        token = await write(store, entity, "web/m-1")
        await store.perform(DeleteProcessed(entity, (("web/m-1", etag),)))
        assert await find(store, entity, "web/m-1", token=token) == {"web/m-1"}

    async def test_staging_one_transaction_twice_in_a_request_is_a_conflict(self, store: AsyncStore) -> None:
        entity = plain_entity()
        document = a_staged(entity)
        assert isinstance(await store.perform(Stage(entity, (document, document))), Conflict)
        assert await staged_now(store, entity, document.tx) == ()

    async def test_staged_outputs_are_loaded_as_they_were_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first, second, third = (a_staged(entity) for _ in range(3))
        written = await store.perform(Stage(entity, (first, second)))
        assert isinstance(written, Written)
        reply = await store.perform(Stage(entity, (third,)))
        assert isinstance(reply, Written)
        for documents in [(first,), (third, first), (first, second, third)]:
            transactions = tuple(document.tx for document in documents)
            loaded = await store.perform(LoadStaged(entity, transactions, reply.token))
            assert loaded == FoundStaged(documents)

    async def test_staging_a_transaction_again_is_a_conflict_whose_token_shows_it(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(2))
        for some in (documents[:1], documents):
            await store.perform(Stage(entity, some))
            reply = await store.perform(Stage(entity, some))
            assert isinstance(reply, Conflict)
            loaded = await store.perform(LoadStaged(entity, (documents[0].tx,), reply.token))
            assert loaded == FoundStaged(documents[:1])

    async def test_staged_outputs_that_are_gone_are_left_out(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(3))
        await store.perform(Stage(entity, documents))
        await store.perform(DeleteStaged(entity, (documents[1].tx,)))
        transactions = tuple(document.tx for document in documents)
        assert await staged_now(store, entity, *transactions) == (documents[0], documents[2])
        assert await staged_now(store, entity, documents[1].tx) == ()

    async def test_deleting_staged_outputs_ignores_those_that_are_missing(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(3))
        transactions = tuple(document.tx for document in documents)
        await store.perform(Stage(entity, documents))
        await store.perform(DeleteStaged(entity, (unique(),)))
        await store.perform(DeleteStaged(entity, (transactions[0], unique(), transactions[1])))
        assert await staged_now(store, entity, *transactions) == documents[2:]
        await store.perform(DeleteStaged(entity, transactions[1:]))
        assert await staged_now(store, entity, *transactions) == ()

    async def test_staged_outputs_larger_than_a_batch_together_are_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity, size=MEGABYTE) for _ in range(3))
        written = await store.perform(Stage(entity, documents))
        assert isinstance(written, Written)
        transactions = tuple(document.tx for document in documents)
        loaded = await store.perform(LoadStaged(entity, transactions, written.token))
        assert loaded == FoundStaged(documents)

    async def test_a_message_that_nobody_parked_is_not_found(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await write(store, entity, "web/m-1")
        assert await parked(store, entity, "web/m-1", token) == FoundParked(None, None, None)

    @pytest.mark.parametrize("message", AWKWARD)
    async def test_a_parked_message_is_loaded_as_it_was_parked(self, store: AsyncStore, message: str) -> None:
        entity = plain_entity()
        given = a_parked(entity, message)
        found = await parked(store, entity, message, await park(store, entity, given))
        assert found.message == given
        assert found.etag is not None
        assert found.now is not None
        saved = await store.perform(SaveEntity(entity, entity_document(entity), None))
        assert isinstance(saved, Saved)
        assert abs(found.now.timestamp() - (await load(store, entity, saved.token)).timestamp) < HOUR
        assert (await parked(store, entity, message + "-", None)).message is None

    async def test_a_parked_message_is_no_record(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await park(store, entity, a_parked(entity, "web/m-1"))
        assert await find(store, entity, "web/m-1", token=token) == set()
        assert await store.perform(HasRecords(entity)) is False

    async def test_a_message_parked_again_has_the_later_reason_and_another_etag(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await parked(
            store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1", "the first"))
        )
        later = a_parked(entity, "web/m-1", "the second")
        second = await parked(store, entity, "web/m-1", await park(store, entity, later))
        assert second.message == later
        assert second.etag != first.etag

    async def test_a_parked_message_is_deleted_only_as_it_was_read(self, store: AsyncStore) -> None:
        entity = plain_entity()
        message = a_parked(entity, "web/m-1")
        first = await parked(store, entity, "web/m-1", await park(store, entity, message))
        second = await parked(store, entity, "web/m-1", await park(store, entity, message))
        assert first.etag is not None
        assert second.etag is not None
        await store.perform(DeleteParked(entity, "web/m-1", first.etag))
        assert (await parked_now(store, entity, "web/m-1")).etag == second.etag
        await store.perform(DeleteParked(entity, "web/m-1", second.etag))
        assert (await parked_now(store, entity, "web/m-1")).message is None

    async def test_deleting_a_parked_message_that_is_gone_does_nothing(self, store: AsyncStore) -> None:
        entity = plain_entity()
        found = await parked(store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1")))
        assert found.etag is not None
        for _ in range(2):
            await store.perform(DeleteParked(entity, "web/m-1", found.etag))
        assert (await parked_now(store, entity, "web/m-1")).message is None
