"""Pages and books in memory."""

from __future__ import annotations

from typing import Literal

from exactlyonce.effects.books import FoundBooks, NoteSearch, ReadBooks, WriteBook
from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
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
from exactlyonce.records.library import library_document
from exactlyonce.records.pages import Page, read_page
from exactlyonce.stores.memory.partitions import MemoryPartitions, Partition
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

_PAGE = "page:"


class MemoryPages(MemoryPartitions):
    """The effects on pages and books. Nothing expires here by itself."""

    @performs(FindPages)
    def find_pages(self, effect: FindPages) -> FoundPages | NoAnswer | Busy:
        found = self._pages(effect.entity, effect.token)
        return found if isinstance(found, NoAnswer) else effect.found(one for one, _ in found)

    @performs(FindPagesAbove)
    def find_pages_above(self, effect: FindPagesAbove) -> FoundAbove | NoAnswer | Busy:
        found = self._pages(effect.entity, effect.token)
        return (
            found
            if isinstance(found, NoAnswer)
            else FoundAbove(tuple(one for one in found if one[0].number > effect.number))
        )

    @performs(FindBlobs)
    def find_blobs(self, effect: FindBlobs) -> frozenset[str] | NoAnswer | Busy:
        found = self._pages(effect.entity, effect.token)
        if isinstance(found, NoAnswer):
            return found
        return frozenset(tx for one, _ in found for tx in one.blobs if tx in effect.transactions)

    @performs(HasPages)
    def has_pages(self, effect: HasPages) -> bool | NoAnswer | Busy:
        found = self._pages(effect.entity, effect.token)
        return found if isinstance(found, NoAnswer) else bool(found)

    @performs(WritePage)
    def write_page(self, effect: WritePage) -> Written | Literal[Other.OTHER] | Unknown | Busy:
        partition, id = self._library(effect.entity), f"{_PAGE}{effect.page.number}"

        def create() -> Written | Literal[Other.OTHER]:
            there = partition.newest(id)
            if there is not None and there.document is not None and read_page(there.document.value) != effect.page:
                return OTHER
            if there is None:
                self._append(partition, id, Json.of(library_document(effect.page)))
            return Written(partition.token)

        return self._write("write_page", create)

    @performs(DeletePages)
    def delete_pages(self, effect: DeletePages) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for number, etag in effect.pages:
                self._delete_unchanged(partition, f"{_PAGE}{number}", etag)

        self._write("delete_pages", delete)

    @performs(WriteBook)
    def write_book(self, effect: WriteBook) -> Written | Unknown | Busy:
        partition = self._books()

        def upsert() -> Written:
            self._append(partition, effect.book.id, Json.of(library_document(effect.book)))
            return Written(partition.token)

        return self._write("write_book", upsert)

    @performs(ReadBooks)
    def read_books(self, effect: ReadBooks) -> FoundBooks | NoAnswer | Busy:
        partition = self._books()
        view = partition.view(self._replica(partition))
        documents = (view[id].document for id in effect.books if id in view)
        return FoundBooks(tuple(read_book(one.value) for one in documents if one is not None))

    @performs(NoteSearch)
    def note_search(self, effect: NoteSearch) -> None:
        partition = self._books()

        def replace() -> None:
            current = partition.newest(effect.book.id)
            if current is not None and current.etag == effect.etag:
                self._append(partition, effect.book.id, Json.of(library_document(effect.book)))

        self._write("note_search", replace)

    def _books(self) -> Partition:
        return self.library.setdefault(BOOKS, Partition())

    def _pages(self, entity: EntityRef, token: str | None) -> tuple[tuple[Page, str], ...] | NoAnswer:
        """All pages of an entity, each with its ETag, in the view of a replica that has reached the token."""
        partition = self._library(entity)
        position = self._view(partition, token)
        if position is None:
            return BEHIND
        return tuple(
            (read_page(one.document.value), one.etag)
            for id, one in partition.view(position).items()
            if id.startswith(_PAGE) and one.document is not None
        )
