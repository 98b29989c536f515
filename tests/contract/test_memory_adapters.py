"""Store, listings, queues and blobs in memory do what every adapter of their ports has to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce.effects.effect import UNKNOWN, Awaited
from exactlyonce.effects.library import WriteBook, WriteOnce
from exactlyonce.records.blobs import Blob
from exactlyonce.records.library import BOOKS, Book
from exactlyonce.records.outbox import Kept
from exactlyonce.stores.blobs.port import AsyncBlobs, AwaitedBlobs, MemoryBlobs
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncListing, AsyncStore
from exactlyonce.testing.contracts.blobs import BlobContract
from exactlyonce.testing.contracts.listing import ListingContract, a_book_id, a_ledger, put
from exactlyonce.testing.contracts.samples import UNIQUE_KEYS, a_colocated, owned_entity, plain_entity, together
from exactlyonce.testing.contracts.store import StoreContract
from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.transports.port import AsyncTransport, MemoryTransport
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> AsyncStore:
        self._memory = MemoryStore(lambda: NOW, unique_keys=UNIQUE_KEYS)
        return Awaited(self._memory)

    async def etag_of_book(self, store: AsyncStore, book: str) -> str:
        document = self._memory.library[BOOKS].newest(book)
        assert document is not None
        return document.etag

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        document = self._memory.library[entity.key].newest(f"request:{request}")
        assert document is not None
        return document.etag


class TestMemoryListing(ListingContract):
    @pytest.fixture
    def store(self) -> AsyncStore:
        self._memory = MemoryStore(lambda: NOW)
        return Awaited(self._memory)

    @pytest.fixture
    def listing(self, store: AsyncStore) -> AsyncListing:
        return MemoryListing(self._memory)

    async def test_a_listing_says_when_there_is_something_to_sweep(self, store: AsyncStore) -> None:
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


class TestMemoryTransport(TransportContract):
    @pytest.fixture
    def transport(self) -> AsyncTransport:
        self._answers = True
        return MemoryTransport(outcome=lambda _: (True, self._answers))

    @contextmanager
    def unanswered(self, transport: AsyncTransport) -> Iterator[None]:
        self._answers = False
        yield
        self._answers = True

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        assert isinstance(transport, MemoryTransport)
        return [output.envelope for output in transport.queues[address]]


class TestMemoryBlobs(BlobContract):
    @pytest.fixture
    def blobs(self) -> AsyncBlobs:
        return AwaitedBlobs(MemoryBlobs())


@pytest.mark.parametrize(("outcome", "there"), [((True, False), True), ((False, False), False), ((False, True), False)])
def test_a_blob_that_may_not_have_arrived_makes_all_of_them_unknown(outcome: tuple[bool, bool], there: bool) -> None:
    blobs = MemoryBlobs(outcome=lambda blob: outcome if blob.name == "b" else (True, True))
    assert blobs.perform(WriteOnce(tuple(Blob(name, b"", "t/x") for name in "abc"))) is UNKNOWN
    assert sorted(blobs.written) == (["a", "b", "c"] if there else ["a", "c"])
