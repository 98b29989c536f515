"""The listings of the store in memory do what every listing has to do."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from exactlyonce.effects.port import Awaited
from exactlyonce.stores.listing import AsyncListing
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.listing import ListingContract


class TestMemoryListing(ListingContract):
    @pytest.fixture
    def store(self) -> AsyncStore:
        self._memory = MemoryStore(lambda: datetime(2026, 11, 21, tzinfo=timezone.utc))
        return Awaited(self._memory)

    @pytest.fixture
    def listing(self, store: AsyncStore) -> AsyncListing:
        return MemoryListing(self._memory)
