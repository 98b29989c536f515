"""The contract of a store, as a suite to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[AsyncStore]:
            ...  # with containers for ENTITY_TYPES, whose unique keys are UNIQUE_KEYS

        async def etag_of_book(self, store: AsyncStore, book: str) -> str:
            ...  # read past the store

        async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
            ...  # read past the store

Needs pytest and pytest-asyncio in its automatic mode. Every test uses entities of its own, so that a store may keep what
earlier runs have left.
"""

from __future__ import annotations

import pytest

from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.batches import BatchContract
from exactlyonce.testing.contracts.companions import CompanionContract
from exactlyonce.testing.contracts.entities import EntityContract
from exactlyonce.testing.contracts.library import LibraryContract
from exactlyonce.testing.contracts.pages import PagesContract
from exactlyonce.testing.contracts.requests import RequestsContract
from exactlyonce.testing.contracts.samples import ENTITY_TYPES, UNIQUE_KEYS
from exactlyonce.testing.contracts.streams import StreamContract

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
    """Inherit from it, and give it a fixture `store` and ways to read the ETags of books and requests."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """The store to test; it holds the containers of `ENTITY_TYPES`, with their `UNIQUE_KEYS`."""
        raise NotImplementedError("Override the fixture `store`.")
