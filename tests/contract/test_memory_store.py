"""The store in memory does what every store has to do."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from exactlyonce.effects.effect import Awaited
from exactlyonce.records.library import BOOKS
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import UNIQUE_KEYS
from exactlyonce.testing.contracts.store import StoreContract
from exactlyonce.values.envelope import EntityRef


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> AsyncStore:
        self._memory = MemoryStore(lambda: datetime(2026, 11, 21, tzinfo=timezone.utc), unique_keys=UNIQUE_KEYS)
        return Awaited(self._memory)

    async def etag_of_book(self, store: AsyncStore, book: str) -> str:
        document = self._memory.library[BOOKS].newest(book)
        assert document is not None
        return document.etag

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        document = self._memory.library[entity.key].newest(f"request:{request}")
        assert document is not None
        return document.etag
