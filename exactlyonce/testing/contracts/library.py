"""Contracts of the library's documents, opened requests, pages and books; parts of `StoreContract`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import pytest

from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import (
    CLOSED,
    OTHER,
    CloseRequest,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundBooks,
    FoundPages,
    FoundParked,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadRequests,
    LoadStaged,
    NoteSearch,
    OpenRequest,
    ReadBooks,
    Stage,
    Unpark,
    WriteBook,
    WritePage,
    Written,
)
from exactlyonce.records.ledger import KeptAnswer
from exactlyonce.records.library import Book, RequestDocument
from exactlyonce.records.outbox import Answer
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    AWKWARD,
    DAY,
    MEGABYTE,
    a_book,
    a_page,
    a_parked,
    a_request,
    a_staged,
    an_answered,
    entity_document,
    find,
    load,
    now,
    park,
    parked,
    parked_now,
    plain_entity,
    reply_to,
    staged_now,
    unique,
    write,
)
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.session_tokens import at_or_after

# ruff: noqa: S101  # A suite asserts.


HOUR: Final = 3600


class LibraryContract:
    """Staged documents and parked messages."""

    async def test_staging_one_transaction_twice_in_a_request_is_a_conflict(self, store: AsyncStore) -> None:
        entity = plain_entity()
        document = a_staged(entity)
        await reply_to(store, Stage(entity, (document, document)), Conflict)
        assert await staged_now(store, entity, document.tx) == ()

    async def test_staged_outputs_are_loaded_as_they_were_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first, second, third = (a_staged(entity) for _ in range(3))
        await reply_to(store, Stage(entity, (first, second)), Written)
        reply = await reply_to(store, Stage(entity, (third,)), Written)
        for documents in [(first,), (third, first), (first, second, third)]:
            transactions = tuple(document.tx for document in documents)
            loaded = await store.perform(LoadStaged(entity, transactions, reply.token))
            assert loaded == FoundStaged(documents)

    async def test_staging_a_transaction_again_is_a_conflict_whose_token_shows_it(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(2))
        for some in (documents[:1], documents):
            await store.perform(Stage(entity, some))
            reply = await reply_to(store, Stage(entity, some), Conflict)
            loaded = await store.perform(LoadStaged(entity, (documents[0].tx,), reply.token))
            assert loaded == FoundStaged(documents[:1])

    async def test_staged_outputs_that_are_gone_are_left_out_and_not_missed_by_a_deletion(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity) for _ in range(4))
        transactions = tuple(document.tx for document in documents)
        await store.perform(Stage(entity, documents))
        await store.perform(DeleteStaged(entity, (unique(),)))
        await store.perform(DeleteStaged(entity, (transactions[0], unique(), transactions[2])))
        assert await staged_now(store, entity, *transactions) == documents[1::2]
        assert await staged_now(store, entity, transactions[2]) == ()
        await store.perform(DeleteStaged(entity, transactions[1:]))
        assert await staged_now(store, entity, *transactions) == ()

    async def test_staged_outputs_larger_than_a_batch_together_are_staged(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_staged(entity, size=MEGABYTE) for _ in range(3))
        await reply_to(store, Stage(entity, documents), Written)
        assert await staged_now(store, entity, *(document.tx for document in documents)) == documents

    async def test_a_message_that_nobody_parked_is_not_found(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await write(store, entity)
        assert await parked(store, entity, "web/m-1", token) == FoundParked(None, None, None)

    @pytest.mark.parametrize("message", AWKWARD)
    async def test_a_parked_message_is_loaded_as_it_was_parked(self, store: AsyncStore, message: str) -> None:
        entity = plain_entity()
        message_parked = a_parked(entity, message)
        loaded = await parked(store, entity, message, await park(store, entity, message_parked))
        assert loaded.message == message_parked
        assert loaded.etag is not None
        assert loaded.now is not None
        saved = await reply_to(store, SaveEntity(entity, entity_document(entity), None), Saved)
        assert abs(loaded.now.timestamp() - (await load(store, entity, saved.token)).timestamp) < HOUR
        assert (await parked(store, entity, message + "-", None)).message is None

    async def test_a_parked_message_is_taken_away_only_as_it_was_read_and_may_be_parked_again(
        self, store: AsyncStore
    ) -> None:
        entity, message = plain_entity(), "web/m-1"
        documents = a_parked(entity, message, "the first"), a_parked(entity, message, "the second")
        first, second = [await parked(store, entity, message, await park(store, entity, item)) for item in documents]
        assert first.etag is not None
        assert second.etag is not None
        assert (second.message, second.etag != first.etag) == (documents[1], True)
        await store.perform(Unpark(entity, message, first.etag))
        assert (await parked_now(store, entity, message)).etag == second.etag
        await store.perform(Unpark(entity, message, second.etag))
        assert (await parked_now(store, entity, message)).message is None
        for sent in (message, "web/m-2", None):  # It is gone already.
            await store.perform(Unpark(entity, message, second.etag, sent, HOUR))
            assert (await parked_now(store, entity, message)).message is None
        again = await parked(store, entity, message, await park(store, entity, documents[0]))
        assert again.message == documents[0]
        await store.perform(Unpark(entity, message, first.etag))
        assert (await parked_now(store, entity, message)).etag == again.etag


# Opened requests.


class RequestsContract:
    """A request is opened, answered while open, and closed."""

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        """The ETag of a request's document, as clean-up reads it; the port has no effect for this."""
        raise NotImplementedError("Override the method `etag_of_request`.")

    async def test_a_request_is_opened_once_and_a_view_that_shows_it_has_a_token_that_does(
        self, store: AsyncStore
    ) -> None:
        entity, document = plain_entity(), a_request(plain_entity(), unique())
        token = await opened(store, entity, document)
        assert at_or_after((await reply_to(store, OpenRequest(entity, document), Conflict)).token, token)
        for ids in ((document.request,), (document.request, unique())):
            view = await reply_to(store, LoadRequests(entity, ids, token), FoundRequests)
            assert view.documents == (document,)
            assert at_or_after(view.token, token)
        assert await requests(store, plain_entity(), document.request) == ()

    async def test_answers_are_kept_in_place_of_the_messages(self, store: AsyncStore) -> None:
        entity = plain_entity()
        ids = (unique(), unique())
        for id in ids:
            await opened(store, entity, a_request(entity, id))
        answered = tuple(an_answered(entity, id) for id in ids)
        token = await kept(store, entity, *answered)
        assert set(await requests(store, entity, *ids, token=token)) == {*answered}
        assert at_or_after(await kept(store, entity, *answered), token)
        assert set(await requests(store, entity, *ids, token=token)) == {*answered}

    async def test_an_answer_is_not_kept_in_a_request_that_is_gone(self, store: AsyncStore) -> None:
        entity, id, there = plain_entity(), unique(), unique()
        token = await opened(store, entity, a_request(entity, id))
        await opened(store, entity, a_request(entity, there))
        assert await store.perform(CloseRequest(entity, id)) is CLOSED
        after = await kept(store, entity, an_answered(entity, id))
        assert at_or_after(after, token)
        assert await requests(store, entity, id, token=after) == (), "the token shows it gone"
        both = await kept(store, entity, an_answered(entity, id), an_answered(entity, there))
        assert await requests(store, entity, id, there, token=both) == (an_answered(entity, there),)

    async def test_closing_takes_a_request_whatever_became_of_it_and_may_be_repeated(self, store: AsyncStore) -> None:
        entity, id = plain_entity(), unique()
        await opened(store, entity, a_request(entity, id))
        await kept(store, entity, an_answered(entity, id))
        for _ in range(2):
            assert await store.perform(CloseRequest(entity, id)) is CLOSED
        assert await requests(store, entity, id, token=await now(store, entity)) == ()

    async def test_clean_up_deletes_requests_as_they_were_read(self, store: AsyncStore) -> None:
        entity = plain_entity()
        left, answered = unique(), unique()
        for id in (left, answered):
            await opened(store, entity, a_request(entity, id))
        etags = tuple([(id, await self.etag_of_request(store, entity, id)) for id in (left, answered)])
        await kept(store, entity, an_answered(entity, answered))
        await store.perform(DeleteRequests(entity, etags))
        token = await now(store, entity)
        assert await requests(store, entity, left, answered, token=token) == (an_answered(entity, answered),)
        await store.perform(DeleteRequests(entity, etags[:1]))


async def opened(store: AsyncStore, entity: EntityRef, document: RequestDocument) -> str:
    """Open a request; the token of the write."""
    return (await reply_to(store, OpenRequest(entity, document), Written)).token


async def kept(store: AsyncStore, entity: EntityRef, *documents: RequestDocument) -> str:
    """Keep answers; the token of the write."""
    return (await reply_to(store, KeepAnswers(entity, documents), Written)).token


async def requests(
    store: AsyncStore, entity: EntityRef, *ids: str, token: str | None = None
) -> tuple[RequestDocument, ...]:
    """The documents of requests."""
    return (await reply_to(store, LoadRequests(entity, ids, token), FoundRequests)).documents


# Pages and books.


_MANY: Final = 100
"""Most messages that are processed together."""


class PagesContract:
    """A page is created once, and found by the times and hashes of messages; a book is written over."""

    async def etag_of_book(self, store: AsyncStore, book: str) -> str:
        """The ETag of a book, as the sweeper reads it; the port has no effect for this."""
        raise NotImplementedError("Override the method `etag_of_book`.")

    async def test_no_page_is_found_where_none_was_written(self, store: AsyncStore) -> None:
        entity = plain_entity()
        assert await find(store, entity, "m-1", times=(10_000,), newest=1, token=None) == []
        assert await above(store, entity, 0, token=None) == {}

    async def test_a_page_is_found_as_it_was_written_without_what_it_is_searched_by(self, store: AsyncStore) -> None:
        entity = plain_entity()
        answer = KeptAnswer("m-1", Answer(201, (("X-Kind", "ÄÖÜ"),), '{"whole":1.0}', "f"))
        page = replace(a_page(entity, hashes=("m-1",), blobs=("5f.0000001",)), to=("ÄÖÜ 🎯",), answers=(answer,))
        token = await write(store, entity, page)
        assert await store.perform(FindPages(entity, (10_000,), ("m-1",), 1, token)) == FoundPages(
            (replace(page, hashes=(), blobs=()),)
        )
        reply = await reply_to(store, FindPagesAbove(entity, 0, token), FoundAbove)
        assert [item for item, _ in reply.pages] == [page]

    async def test_pages_are_found_by_times_from_their_oldest_to_their_newest_mark_though_times_overlap(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        token = await three_pages(store, entity)
        for time, numbers in [(19_999, []), (20_000, [2]), (29_000, [2]), (29_001, [])]:
            assert await find(store, entity, times=(time,), token=token) == numbers
        token = await write(store, entity, replace(a_page(entity, 4), begin=15_000, until=25_000))
        assert await find(store, entity, times=(21_000,), token=token) == [2, 4]
        assert await find(store, entity, times=(15_000, 25_000), token=token) == [1, 2, 4]

    async def test_pages_are_found_by_the_hashes_that_they_name(self, store: AsyncStore) -> None:
        entity = plain_entity()
        await write(store, entity, a_page(entity, 1, hashes=("m-1", "m-2")))
        token = await write(store, entity, a_page(entity, 2, hashes=("m-2", "m-3")))
        assert await find(store, entity, "m-1", token=token) == [1]
        assert await find(store, entity, "m-2", token=token) == [1, 2]
        assert await find(store, entity, "m-4", "m-3", token=token) == [2]
        assert await find(store, entity, "M-1", "m-", token=token) == []

    async def test_the_newest_page_is_always_among_them(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await three_pages(store, entity)
        assert await find(store, entity, times=(10_000,), newest=3, token=token) == [1, 3]
        assert await find(store, entity, "m-1", newest=2, token=token) == [2]
        assert await find(store, entity, times=(35_000,), newest=3, token=token) == [3]
        assert await find(store, entity, newest=3, token=token) == [3]

    async def test_pages_of_many_messages_are_found_each_once(self, store: AsyncStore) -> None:
        entity = plain_entity()
        pages = [a_page(entity, number, hashes=(f"m-{number}", "m-all")) for number in range(1, _MANY + 1)]
        for page in pages:
            token = await write(store, entity, page)
        every = [page.number for page in pages]
        times, hashes = [page.begin for page in pages], [page.hashes[0] for page in pages]
        assert await find(store, entity, times=(*times,), token=token) == every
        assert await find(store, entity, *hashes, token=token) == every
        assert await find(store, entity, *hashes[:50], "m-all", times=(*times[50:],), newest=1, token=token) == every
        most = [*every[:40], 50, *every[60:]]
        assert await find(store, entity, *hashes[60:], times=(*times[:40],), newest=50, token=token) == most

    async def test_a_page_that_is_written_twice_is_written_and_the_token_shows_it(self, store: AsyncStore) -> None:
        entity = plain_entity()
        first = await write(store, entity)
        again = await reply_to(store, WritePage(entity, a_page(entity), 2 * DAY), Written)
        assert at_or_after(again.token, first)
        assert await find(store, entity, newest=1, token=again.token) == [1]
        assert len(await above(store, entity, 0, token=again.token)) == 1

    async def test_another_page_with_the_same_number_is_told_from_it_and_changes_nothing(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        page = a_page(entity)
        token = await write(store, entity, page)
        for other in (replace(page, marks=""), replace(page, version=11), replace(page, blobs=("5f",))):
            assert await store.perform(WritePage(entity, other, DAY)) is OTHER
        assert await store.perform(FindPages(entity, (10_000,), (), 1, token)) == FoundPages((page,))

    async def test_of_sixteen_pages_with_one_number_written_at_once_one_is_written(self, store: AsyncStore) -> None:
        entity = plain_entity()
        pages = [replace(a_page(entity), version=10 + number % 2) for number in range(16)]
        replies = await asyncio.gather(*(store.perform(WritePage(entity, page, DAY)) for page in pages))
        stored = await reply_to(store, FindPagesAbove(entity, 0, await now(store, entity)), FoundAbove)
        ((there, _),) = stored.pages
        for page, reply in zip(pages, replies, strict=True):
            assert isinstance(reply, Written) if page == there else reply is OTHER

    async def test_pages_above_a_number_are_those_that_were_cut_later(self, store: AsyncStore) -> None:
        entity = plain_entity()
        token = await three_pages(store, entity)
        for number, numbers in [(0, [1, 2, 3]), (1, [2, 3]), (2, [3]), (3, [])]:
            assert sorted(await above(store, entity, number, token=token)) == numbers

    async def test_pages_are_deleted_as_they_were_read(self, store: AsyncStore) -> None:
        entity = plain_entity()
        etags = await above(store, entity, 0, token=await three_pages(store, entity))
        await store.perform(DeletePages(entity, ((1, etags[1]),)))
        assert sorted(await above(store, entity, 0, token=await now(store, entity))) == [2, 3]
        await store.perform(DeletePages(entity, ((2, etags[2]), (3, etags[3]))))
        assert await above(store, entity, 0, token=await now(store, entity)) == {}
        assert await find(store, entity, times=(10_000,), newest=3, token=await now(store, entity)) == []

    async def test_a_page_that_took_the_place_of_a_deleted_one_stays_and_hinders_no_other(
        self, store: AsyncStore
    ) -> None:
        entity = plain_entity()
        etags = await above(store, entity, 0, token=await three_pages(store, entity))
        await store.perform(DeletePages(entity, ((2, etags[2]),)))
        await write(store, entity, replace(a_page(entity, 2), version=21))
        await store.perform(DeletePages(entity, ((2, etags[2]),)))
        assert sorted(await above(store, entity, 0, token=await now(store, entity))) == [1, 2, 3]
        await store.perform(DeletePages(entity, ((1, etags[1]), (2, etags[2]), (3, etags[3]), (8, etags[3]))))
        assert sorted(await above(store, entity, 0, token=await now(store, entity))) == [2]

    async def test_whether_an_entity_has_pages_can_be_asked(self, store: AsyncStore) -> None:
        entity = plain_entity()
        assert await store.perform(HasPages(entity)) is False
        await store.perform(Stage(entity, (a_staged(entity),)))
        await store.perform(OpenRequest(entity, a_request(entity, unique())))
        await park(store, entity, a_parked(entity, "web/m-1"))
        assert await store.perform(HasPages(entity)) is False
        await write(store, entity)
        assert await store.perform(HasPages(entity)) is True
        assert await store.perform(HasPages(plain_entity())) is False

    async def test_transactions_whose_blobs_were_committed_are_found(self, store: AsyncStore) -> None:
        entity = plain_entity()
        await write(store, entity, a_page(entity, 1, blobs=("a.1", "a.2")))
        await write(store, entity, a_page(entity, 2))
        token = await write(store, entity, a_page(entity, 3, blobs=("b.1",)))
        for asked, committed in [((), ()), (("a.3",), ()), (("a.2", "b.1", "a"), ("a.2", "b.1")), (("a.1",), ("a.1",))]:
            assert await store.perform(FindBlobs(entity, asked, token)) == frozenset(committed)
        assert await store.perform(FindBlobs(plain_entity(), ("a.1",), None)) == frozenset()

    async def test_pages_of_two_entities_are_kept_apart(self, store: AsyncStore) -> None:
        first, other = plain_entity(), plain_entity()
        await write(store, first, a_page(first, 1))
        token = await write(store, other, a_page(other, 2))
        assert await find(store, other, times=(10_000, 20_000), newest=1, token=token) == [2]

    async def test_books_are_read_as_they_were_written_last_and_absent_ones_left_out(self, store: AsyncStore) -> None:
        first, second, absent = unique(), unique(), unique()
        assert await books(store, first) == set()
        await keep(store, a_book(first, 1))
        await keep(store, a_book(second))
        await keep(store, replace(a_book(first), ended=True))
        written = {replace(a_book(first), ended=True), a_book(second)}
        assert await books(store, first, absent, second) == written
        assert await books(store, first, absent) | await books(store, second) == written
        assert await books(store, absent) == await books(store) == set()

    async def test_of_a_hundred_books_all_are_read(self, store: AsyncStore) -> None:
        ids = [unique() for _ in range(_MANY)]
        await asyncio.gather(*(keep(store, a_book(id)) for id in ids))
        assert {book.id for book in await books(store, *ids)} == {*ids}

    async def test_a_book_that_lands_late_is_the_one_that_is_read(self, store: AsyncStore) -> None:
        id = unique()
        for used in (900, 812):
            await keep(store, a_book(id, used))
        assert await books(store, id) == {a_book(id, 812)}

    async def test_a_search_is_noted_only_in_the_book_that_was_read(self, store: AsyncStore) -> None:
        book, searched = a_book(unique()), replace(a_book(unique()), ended=True)
        await store.perform(NoteSearch(searched, '"etag"', DAY))
        await keep(store, book)
        await store.perform(NoteSearch(replace(book, ended=True), '"etag"', DAY))
        assert await books(store, book.id, searched.id) == {book}
        etag = await self.etag_of_book(store, book.id)
        for noted in (replace(book, ended=True), replace(book, used=1)):
            await store.perform(NoteSearch(noted, etag, DAY))
            assert await books(store, book.id) == {replace(book, ended=True)}


async def three_pages(store: AsyncStore, entity: EntityRef) -> str:
    """Write pages 1 to 3; the token of the last write."""
    for number in (1, 2, 3):
        token = await write(store, entity, a_page(entity, number))
    return token


async def above(store: AsyncStore, entity: EntityRef, number: int, *, token: str | None) -> dict[int, str]:
    """The ETags of the pages above a number, by their numbers."""
    reply = await reply_to(store, FindPagesAbove(entity, number, token), FoundAbove)
    return {page.number: etag for page, etag in reply.pages}


async def keep(store: AsyncStore, book: Book) -> None:
    """Write a book."""
    await reply_to(store, WriteBook(book, DAY), Written)


async def books(store: AsyncStore, *ids: str) -> set[Book]:
    """The existing books."""
    reply = await reply_to(store, ReadBooks(ids), FoundBooks)
    assert len({*reply.books}) == len(reply.books)
    return {*reply.books}
