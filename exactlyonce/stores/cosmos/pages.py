"""Pages and books in Cosmos DB: pages lie in the library's partition of their entity, books in a partition of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, Literal

from exactlyonce.effects.books import FoundBooks, NoteSearch, ReadBooks, WriteBook
from exactlyonce.effects.effect import UNKNOWN, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.effects.pages import (
    OTHER,
    DeletePages,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundPages,
    HasPages,
    Other,
    WritePage,
)
from exactlyonce.effects.port import Busy, performs
from exactlyonce.records.books import BOOKS, read_book
from exactlyonce.records.pages import Page, read_page
from exactlyonce.stores.cosmos.containers import CosmosContainers
from exactlyonce.stores.cosmos.layout import book_id, from_library, page_id, to_library
from exactlyonce.stores.cosmos.partition import Applied, CosmosPartition, Document, Documents, Given
from exactlyonce.stores.cosmos.replies import Operation
from exactlyonce.stores.refusals import require_same
from exactlyonce.values.identity import EntityRef

_MOST: Final = 32
"""Messages that one query asks for. Each is a condition of its own, and what they cost is not to grow with the text."""
_KIND: Final = {"@kind": "page"}
_OF_PAGES: Final = "FROM c WHERE c.kind = @kind"
_SEARCHED: Final = frozenset({"hashes", "blobs"})
"""Properties by which pages are found, which nobody reads. A query is charged for what it returns."""
_KNOWING: Final = f"SELECT c.id, {', '.join(f'c.{one.name}' for one in fields(Page) if one.name not in _SEARCHED)}"


class CosmosPages(CosmosContainers):
    """The effects on pages and books."""

    @performs(FindPages)
    async def find_pages(self, effect: FindPages) -> FoundPages | NoAnswer | Busy:
        partition, found = self._library(effect.entity), dict[int, Page]()
        replies = await asyncio.gather(
            *(
                partition.query(f"{_KNOWING} {_OF_PAGES} AND ({condition})", {**_KIND, **given}, effect.token)
                for condition, given in _conditions(effect)
            )
        )
        for reply in replies:
            if not isinstance(reply, Documents):
                return reply
            pages = (_page(effect.entity, one) for one in reply.properties)
            found |= {page.number: page for page in pages}
        return FoundPages(tuple(found.values()))

    @performs(FindPagesAbove)
    async def find_pages_above(self, effect: FindPagesAbove) -> FoundAbove | NoAnswer | Busy:
        query = f"SELECT * {_OF_PAGES} AND c.number > @number"
        reply = await self._library(effect.entity).query(query, {**_KIND, "@number": effect.number}, effect.token)
        if not isinstance(reply, Documents):
            return reply
        return FoundAbove(tuple((_page(effect.entity, one), one["_etag"]) for one in reply.properties))

    @performs(FindBlobs)
    async def find_blobs(self, effect: FindBlobs) -> frozenset[str] | NoAnswer | Busy:
        query = "SELECT b AS tx FROM c JOIN b IN c.blobs WHERE c.kind = @kind AND ARRAY_CONTAINS(@transactions, b)"
        given = {**_KIND, "@transactions": effect.transactions}
        reply = await self._library(effect.entity).query(query, given, effect.token)
        return frozenset(row["tx"] for row in reply.properties) if isinstance(reply, Documents) else reply

    @performs(HasPages)
    async def has_pages(self, effect: HasPages) -> bool | NoAnswer | Busy:
        reply = await self._library(effect.entity).query(f"SELECT TOP 1 c.id {_OF_PAGES}", _KIND, effect.token)
        return bool(reply.properties) if isinstance(reply, Documents) else reply

    @performs(WritePage)
    async def write_page(self, effect: WritePage) -> Written | Literal[Other.OTHER] | Unknown:
        partition, document = self._library(effect.entity), to_library(effect.entity, effect.page, effect.seconds)
        reply = await partition.create(document, Operation.PAGE)
        if not isinstance(reply, Conflict):
            return _written(reply)
        if reply.token is None:
            return UNKNOWN  # A view that may be stale could show a page that was deleted since.
        there = await partition.read(document["id"], reply.token)
        if not isinstance(there, Document) or there.token is None:
            return UNKNOWN
        return Written(there.token) if _page(effect.entity, there.properties) == effect.page else OTHER

    @performs(DeletePages)
    async def delete_pages(self, effect: DeletePages) -> None:
        await self._library(effect.entity).delete_all({page_id(number): etag for number, etag in effect.pages})

    @performs(WriteBook)
    async def write_book(self, effect: WriteBook) -> Written | Unknown:
        document = to_library(None, effect.book, effect.seconds)
        reply = await self._books().write_all([document], Operation.BOOK)
        return UNKNOWN if isinstance(reply, Conflict) else _written(reply)

    @performs(ReadBooks)
    async def read_books(self, effect: ReadBooks) -> FoundBooks | NoAnswer | Busy:
        if not effect.books:
            return FoundBooks(())
        reply = await self._books().read_all([*map(book_id, effect.books)], None)
        if not isinstance(reply, Documents):
            return reply
        return FoundBooks(tuple(read_book(from_library(one)) for one in reply.properties))

    @performs(NoteSearch)
    async def note_search(self, effect: NoteSearch) -> None:
        document = to_library(None, effect.book, effect.seconds)
        await self._books().replace(document["id"], document, effect.etag, Operation.NOTE)

    def _books(self) -> CosmosPartition:
        return CosmosPartition(self._connection, self._library_container, (BOOKS,), self._time_limit)


def _conditions(effect: FindPages) -> Iterator[tuple[str, Given]]:
    """The conditions of each query, with values of their parameters. The first query asks for the newest page as well."""
    asked: list[tuple[str, str | int]] = [
        *(("(c.begin <= @{0} AND c.until >= @{0})", time) for time in effect.times),
        *(("ARRAY_CONTAINS(c.hashes, @{0})", hash) for hash in effect.hashes),
    ]
    for first in range(0, max(len(asked), 1), _MOST):
        some = asked[first : first + _MOST] if first else [("c.number = @{0}", effect.newest), *asked[:_MOST]]
        names = [f"asked{number}" for number in range(len(some))]
        condition = " OR ".join(text.format(name) for (text, _), name in zip(some, names, strict=True))
        yield condition, {f"@{name}": value for (_, value), name in zip(some, names, strict=True)}


def _page(entity: EntityRef, document: dict[str, Any]) -> Page:
    page = read_page(from_library(document))
    require_same(entity, document["id"], page_id(page.number), document["id"])
    return page


def _written(reply: Applied | Unknown) -> Written | Unknown:
    return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN
