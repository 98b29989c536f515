"""The listings of the store in memory do what every listing has to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce.effects.effect import Awaited
from exactlyonce.effects.library import WriteBook
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import Kept
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncListing, AsyncStore
from exactlyonce.testing.contracts.listing import ListingContract, a_book_id, a_ledger, put
from exactlyonce.testing.contracts.samples import a_colocated, owned_entity, plain_entity, together

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class TestMemoryListing(ListingContract):
    @pytest.fixture
    def store(self) -> AsyncStore:
        self._memory = MemoryStore(lambda: NOW)
        return Awaited(self._memory)

    @pytest.fixture
    def listing(self, store: AsyncStore) -> AsyncListing:
        return MemoryListing(self._memory)

    async def test_it_tells_when_there_is_something_to_sweep(self, store: AsyncStore) -> None:
        def first() -> str | None:
            return MemoryListing(self._memory).first_owing()

        assert first() is None
        entity = owned_entity()
        record = replace(a_colocated(entity, "web/m-1", owes=True), owing_since=NOW + 3 * HOUR)
        await together(store, entity, record, total=1)
        assert first() == "2026-11-21T03:00:00Z"
        await put(store, plain_entity(), a_ledger(kept=(Kept("k-1", NOW + 2 * HOUR, "tx-1"),)))
        assert first() == "2026-11-21T02:00:00Z"
        book = Book(a_book_id(), 3, (2,))
        await store.perform(WriteBook(book, 60))
        assert first() == "2026-11-21T00:11:00Z"
        await store.perform(WriteBook(replace(book, stuck=(2,)), 60))
        assert first() == "2026-11-21T00:00:00Z"
        await store.perform(WriteBook(replace(book, ended=True), 60))
        assert first() == "2026-11-21T02:00:00Z"
