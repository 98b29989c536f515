"""The contract of a listing, as a suite to inherit from.

Needs pytest and pytest-asyncio in its automatic mode. Every test uses entities of its own, so the store may keep entities of
earlier runs.
"""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeVar

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import NoteSearch, WriteBook, Written
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.ledger import entity_document as with_ledger
from exactlyonce.records.library import BOOK_DIGITS, Book, Search
from exactlyonce.records.outbox import Kept, OutboxEntry, Pending, Place, Reception, transaction
from exactlyonce.stores.port import AsyncListing, AsyncStore, Condition, ListedBook
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    PLAIN,
    a_colocated,
    a_numbered,
    a_parked,
    an_entry,
    an_owing_entry,
    entity_document,
    owned_entity,
    park,
    plain_entity,
    reply_to,
    together,
    unique,
    write,
)
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

LONG_AGO: Final = datetime(2001, 1, 1, tzinfo=timezone.utc)
LATER: Final = LONG_AGO + timedelta(minutes=1)
Found = TypeVar("Found")
EVER: Final = datetime(2100, 1, 1, tzinfo=timezone.utc)


def an_owing(tx: str) -> OutboxEntry:
    """An entry of a transaction that owes an output."""
    return OutboxEntry("hash-of-the-cause", tx, LONG_AGO, 0, (Pending(Json.of({"id": "o-1"})),))


def a_ledger(*transactions: str, kept: tuple[Kept, ...] = (), **properties: Any) -> Ledger:
    """The ledger of a processed entity, with entries that owe outputs."""
    outbox = tuple(map(an_owing, transactions))
    return Ledger(1, left=1, to=("receipts",), outbox=outbox, kept=kept, **properties)


def a_book_id() -> str:
    """A fresh id of a book."""
    return unique()[:BOOK_DIGITS]


async def put(store: AsyncStore, entity: EntityRef, ledger: Ledger) -> None:
    """Save an entity with a ledger, of its type unless it names another."""
    document = with_ledger(entity_document(entity), replace(ledger, type=ledger.type or entity.type))
    await reply_to(store, SaveEntity(entity, document, None), Saved)


def an_entity(type: str) -> EntityRef:
    """An entity of a type, whose partition key is its id only if the type is plain."""
    return plain_entity() if type == PLAIN else owned_entity(type=type)


async def owes(store: AsyncStore, entity: EntityRef, *transactions: str) -> EntityRef:
    """Save an entity whose outbox has these transactions."""
    await put(store, entity, a_ledger(*transactions))
    return entity


async def all_of(pages: AsyncIterator[tuple[Found, ...]]) -> list[Found]:
    """All items of a listing, in order."""
    return [item async for page in pages for item in page]


async def book_named(listing: AsyncListing, id: str, since: int = 0) -> ListedBook | None:
    """A book in a listing; None if it is not listed."""
    return next((item for item in await all_of(listing.books(since)) if item.book.id == id), None)


class ListingContract:
    """Suite for a listing: give it the fixtures `store` and `listing`."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """A store with the containers of `ENTITY_TYPES`."""
        raise NotImplementedError("Override the fixture `store`.")

    @pytest.fixture
    def listing(self, store: AsyncStore) -> AsyncListing:
        """The listing of the store; `OWNED` and `LEVELS` may have companions."""
        raise NotImplementedError("Override the fixture `listing`.")

    @pytest.mark.parametrize("kind", [PLAIN, OWNED, LEVELS])
    async def test_an_entity_deleted_or_not_is_listed_by_its_full_name_with_the_transaction_that_is_searched_for(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        for deleted in (False, True):
            tx, entity = transaction(a_book_id(), 8), an_entity(kind)
            await put(store, entity, a_ledger(tx, deleted=deleted))
            assert await all_of(listing.owing(entity.type, (Search(tx[:20], 7, ()),))) == [(entity, tx)]

    async def test_transactions_above_a_number_and_single_ones_are_searched_for_and_no_others(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        book, other = a_book_id(), a_book_id()
        entities = {number: await owes(store, plain_entity(), transaction(book, number)) for number in (1, 3, 7, 8, 9)}
        await owes(store, plain_entity(), transaction(other, 9))
        many = await owes(store, plain_entity(), *(transaction(book, number) for number in (10, 2, 9_999_999)))
        owing = await all_of(listing.owing(PLAIN, (Search(book, 7, (3,)),)))
        above = [*((entities[number], transaction(book, number)) for number in (3, 8, 9))]
        above += [(many, transaction(book, number)) for number in (10, 9_999_999)]
        assert sorted(owing, key=lambda item: item[1]) == above
        single = await all_of(listing.owing(PLAIN, (Search(book, None, (1, 2)),)))
        assert sorted(single, key=lambda item: item[1]) == [
            (entities[1], transaction(book, 1)),
            (many, transaction(book, 2)),
        ]

    async def test_many_books_are_searched_for_at_once(self, store: AsyncStore, listing: AsyncListing) -> None:
        books = [a_book_id() for _ in range(120)]
        last = await owes(store, plain_entity(), transaction(books[-1], 5))
        first = await owes(store, plain_entity(), transaction(books[0], 1))
        searches = tuple(Search(book, 4, (1, 2, 3)) for book in books)
        owing = await all_of(listing.owing(PLAIN, searches))
        assert {entity for entity, _ in owing} == {first, last}

    async def test_an_entity_that_owes_nothing_is_not_listed(self, store: AsyncStore, listing: AsyncListing) -> None:
        book, idle, foreign = a_book_id(), plain_entity(), plain_entity()
        await put(store, idle, a_ledger())
        await store.perform(SaveEntity(foreign, entity_document(foreign, total=3), None))
        assert await all_of(listing.owing(PLAIN, (Search(book, 0, ()),))) == []
        assert not {idle, foreign} & set(await all_of(listing.due(PLAIN, EVER)))

    async def test_an_entity_of_another_type_in_the_same_container_is_not_listed(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        book, entity = a_book_id(), plain_entity()
        kept = (Kept("k-1", LONG_AGO, "tx-1"),)
        await put(store, entity, a_ledger(transaction(book, 1), kept=kept, type="other"))
        assert await all_of(listing.owing(PLAIN, (Search(book, 0, ()),))) == []
        assert entity not in await all_of(listing.due(PLAIN, LATER))

    @pytest.mark.parametrize("kind", [PLAIN, OWNED, LEVELS])
    async def test_an_entity_is_listed_once_when_one_of_its_kept_messages_is_due(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        entity = an_entity(kind)
        dues = (LATER, EVER, LATER)
        kept = tuple(Kept(f"k-{number}", due, "tx-1") for number, due in enumerate(dues))
        await put(store, entity, a_ledger(kept=kept))
        assert entity not in await all_of(listing.due(entity.type, LATER))
        listed = await all_of(listing.due(entity.type, LATER + timedelta(seconds=1)))
        assert listed.count(entity) == 1

    async def test_books_are_listed_until_they_have_ended(self, store: AsyncStore, listing: AsyncListing) -> None:
        book = Book(a_book_id(), 812, (807,))
        await reply_to(store, WriteBook(book, 60), Written)
        listed = await book_named(listing, book.id)
        assert listed is not None
        assert listed.book == book
        assert await book_named(listing, book.id, listed.written) == listed
        assert await book_named(listing, book.id, listed.written + 1) is None
        await store.perform(WriteBook(replace(book, open=(), ended=True), 60))
        assert await book_named(listing, book.id) is None

    async def test_a_search_is_noted_in_its_book_unless_that_was_written_since(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        book = Book(a_book_id(), 812, (807,), (807,))
        await store.perform(WriteBook(book, 60))
        before = await book_named(listing, book.id)
        assert before is not None
        noted = replace(book, stuck=(), searched=(1_795_662_000,), written=1_795_661_000)
        await store.perform(NoteSearch(noted, before.etag, 60))
        after = await book_named(listing, book.id)
        assert after is not None
        assert (after.book, after.written) == (noted, 1_795_661_000)
        await store.perform(NoteSearch(replace(noted, used=1), before.etag, 60))
        assert await book_named(listing, book.id) == after
        await store.perform(WriteBook(book, 60))
        await store.perform(NoteSearch(noted, after.etag, 60))
        again = await book_named(listing, book.id)
        assert again is not None
        assert again.book == book

    @pytest.mark.parametrize("kind", [PLAIN, OWNED, LEVELS])
    async def test_bodies_are_those_of_entities_that_are_there(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        present, adopted, deleted, others = (an_entity(kind) for _ in range(4))
        await put(store, present, a_ledger())
        await put(store, deleted, a_ledger(deleted=True))
        await store.perform(SaveEntity(adopted, entity_document(adopted, total=3), None))
        await put(store, others, a_ledger(type="other"))
        bodies = {ref: body async for page in listing.bodies(present.type, Condition(), None) for ref, body in page}
        assert bodies[present] == entity_document(present)
        assert bodies[adopted] == entity_document(adopted, total=3)
        assert not {deleted, others} & set(bodies)

    async def test_companions_are_no_bodies_and_a_partition_can_be_named(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity, other = owned_entity(), owned_entity()
        for item in (entity, other):
            document = with_ledger(entity_document(item), a_ledger(type=item.type))
            await reply_to(store, SaveBatch(item, document, None, (a_colocated(item, "web/m-1"),)), Saved)
        pages = [page async for page in listing.bodies(OWNED, Condition(), entity.partition)]
        assert [ref for page in pages for ref, _ in page] == [entity]

    async def test_the_entity_that_has_owed_for_longest_comes_first(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        later, first = owned_entity(), owned_entity()
        for entity, since in ((later, LONG_AGO + timedelta(seconds=2)), (first, LONG_AGO)):
            record = replace(a_colocated(entity, "web/m-1", owes=True), owing_since=since)
            await together(store, entity, record, total=1)
        pages = [page async for page in listing.companions(OWNED, LATER)]
        (mine,) = ([item for item in page if item in (first, later)] for page in pages if first in page)
        assert mine in ([first, later], [first])

    @pytest.mark.parametrize("kind", [OWNED, LEVELS])
    async def test_an_entity_whose_records_owe_is_listed_once_on_a_page(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        entity, neighbour = owned_entity("someone", kind), owned_entity("someone", kind)
        since = replace(a_colocated(entity, "web/m-1", owes=True), owing_since=LONG_AGO)
        await together(store, entity, since, replace(since, message="web/m-2"), total=1)
        await together(store, neighbour, a_colocated(neighbour, "web/m-1"), an_entry(neighbour, 1), total=1)
        streamed = owned_entity("someone", kind)
        await together(store, streamed, replace(an_owing_entry(streamed, 1), owing_since=LONG_AGO), total=1)
        listed = await all_of(listing.companions(kind, LATER))
        assert [listed.count(item) for item in (entity, streamed, neighbour)] == [1, 1, 0]
        assert entity not in await all_of(listing.companions(kind, LONG_AGO))

    async def test_a_read_model_is_listed_that_misses_messages_for_long_or_holds_some_that_fail(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        waiting, fresh, idle, stopped = (owned_entity() for _ in range(4))
        held = Reception("c", "s", 1, held=((2, 3),), gap_since=LONG_AGO)
        await put(store, waiting, Ledger(receptions=(replace(held, source="r"), held)))
        await put(store, fresh, Ledger(receptions=(replace(held, gap_since=LATER),)))
        await put(store, idle, Ledger(receptions=(Reception("c", "s", 7),)))
        await put(store, stopped, Ledger(receptions=(Reception("c", "s", 2, held=((2, 2),), failing="ValueError"),)))
        listed = await all_of(listing.holding(OWNED, LATER))
        assert [listed.count(item) for item in (waiting, fresh, idle, stopped)] == [1, 0, 0, 0]
        assert stopped in await all_of(listing.holding(OWNED, EVER))

    async def test_parked_messages_are_listed_with_their_reasons(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity = plain_entity()
        await write(store, entity)
        place = Place("c1", entity.source, 7)
        foreign = a_parked(entity, "web/m-1", "its handler raised ValueError")
        await park(store, entity, foreign)
        await park(store, entity, replace(foreign, message="game/m-2", place=place))
        mine = [item async for page in listing.parked() for item in page if item.entity == entity.key]
        assert {(item.message, item.reason, item.at, item.place) for item in mine} == {
            ("web/m-1", foreign.reason, "2026-11-21T10:00:02.250000Z", None),
            ("game/m-2", foreign.reason, "2026-11-21T10:00:02.250000Z", place),
        }

    async def test_belongings_of_an_entity_are_reported_without_bodies(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity, neighbour = owned_entity("someone"), owned_entity("someone")
        await park(store, entity, a_parked(entity, "web/m-2"))
        await write(store, entity)
        await together(store, entity, an_entry(entity, 7, "web/m-3"), a_numbered(entity))
        await together(store, neighbour, an_entry(neighbour, 1, "web/m-9"))
        belongings = await listing.belongings(entity)
        listed = sorted((belonging["kind"], belonging.get("message") or "") for belonging in belongings)
        assert listed == [("entry", "web/m-3"), ("numbered", "game/m-1"), ("page", ""), ("parked", "web/m-2")]
        assert not any({"envelope", "held", "before", "owed", "marks"} & belonging.keys() for belonging in belongings)
        assert all({"id", "_ts"} <= belonging.keys() for belonging in belongings)
