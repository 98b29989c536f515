"""The contract of a store for the library's documents; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from typing import Final

import pytest

from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FoundParked,
    FoundStaged,
    LoadStaged,
    Stage,
    Unpark,
    Written,
)
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    AWKWARD,
    MEGABYTE,
    a_parked,
    a_staged,
    entity_document,
    load,
    park,
    parked,
    parked_now,
    plain_entity,
    staged_now,
    unique,
    write,
)

HOUR: Final = 3600


class LibraryContract:
    """Staged documents and parked messages."""

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
        token = await write(store, entity)
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

    async def test_a_message_parked_again_has_the_later_reason_and_another_etag(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await parked(
            store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1", "the first"))
        )
        later = a_parked(entity, "web/m-1", "the second")
        second = await parked(store, entity, "web/m-1", await park(store, entity, later))
        assert second.message == later
        assert second.etag != first.etag

    async def test_a_parked_message_is_taken_away_only_as_it_was_read(self, store: AsyncStore) -> None:
        entity = plain_entity()
        message = a_parked(entity, "web/m-1")
        first = await parked(store, entity, "web/m-1", await park(store, entity, message))
        second = await parked(store, entity, "web/m-1", await park(store, entity, message))
        assert first.etag is not None
        assert second.etag is not None
        await store.perform(Unpark(entity, "web/m-1", first.etag))
        assert (await parked_now(store, entity, "web/m-1")).etag == second.etag
        await store.perform(Unpark(entity, "web/m-1", second.etag))
        assert (await parked_now(store, entity, "web/m-1")).message is None

    async def test_taking_away_a_parked_message_that_is_gone_does_nothing(self, store: AsyncStore) -> None:
        entity = plain_entity()
        found = await parked(store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1")))
        assert found.etag is not None
        for sent in ("web/m-1", "web/m-2", None):
            await store.perform(Unpark(entity, "web/m-1", found.etag, sent, HOUR))
            assert (await parked_now(store, entity, "web/m-1")).message is None

    async def test_a_message_that_was_taken_away_can_be_parked_again(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await parked(store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1")))
        assert first.etag is not None
        await store.perform(Unpark(entity, "web/m-1", first.etag))
        again = await parked(store, entity, "web/m-1", await park(store, entity, a_parked(entity, "web/m-1")))
        assert again.message == a_parked(entity, "web/m-1")
        await store.perform(Unpark(entity, "web/m-1", first.etag))
        assert (await parked_now(store, entity, "web/m-1")).etag == again.etag
