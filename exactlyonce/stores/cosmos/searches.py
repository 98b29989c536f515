"""What the sweeper notes in books in Cosmos DB."""

from __future__ import annotations

from exactlyonce.effects.books import NoteSearch
from exactlyonce.effects.port import performs
from exactlyonce.records.books import BOOKS
from exactlyonce.records.library import library_document
from exactlyonce.stores.cosmos.containers import CosmosContainers
from exactlyonce.stores.cosmos.layout import LIBRARY_PATH, book_id
from exactlyonce.stores.cosmos.partition import CosmosPartition


class CosmosSearches(CosmosContainers):
    """The effect on books that were searched."""

    @performs(NoteSearch)
    async def note_search(self, effect: NoteSearch) -> None:
        partition = CosmosPartition(self._connection, self._library_container, (BOOKS,), self._time_limit)
        id = book_id(effect.book.id)
        place = {"id": id, LIBRARY_PATH[1:]: BOOKS, "ttl": effect.seconds}
        await partition.replace(id, {**library_document(effect.book), **place}, effect.etag)
