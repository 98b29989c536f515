"""The contract of a listing, as a suite to inherit from.

Needs pytest and pytest-asyncio in its automatic mode. Every test uses entities of its own, so that a store may keep what
earlier runs have left.
"""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Final

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.records.ledger import Entry, Ledger
from exactlyonce.records.ledger import entity_document as with_ledger
from exactlyonce.records.outputs import Output
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.stores.listing import AsyncListing, Condition
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    a_colocated,
    a_numbered,
    a_parked,
    an_entry,
    an_owing_entry,
    entity_document,
    owned_entity,
    park,
    plain_entity,
    together,
    unique,
    write,
)
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

LONG_AGO: Final = datetime(2001, 1, 1, tzinfo=timezone.utc)
LATER: Final = LONG_AGO + timedelta(minutes=1)
EVER: Final = datetime(2100, 1, 1, tzinfo=timezone.utc)


def an_owing(at: datetime) -> Entry:
    """An entry that owes an output."""
    output = Output("o-1", "receipts", Json.of({"id": "o-1"}))
    return Entry("web/m-1", unique(), 1, at, (output.ref,), "digest", owed=(output.content("account/a", at),))


async def put(store: AsyncStore, entity: EntityRef, ledger: Ledger) -> None:
    """Save an entity with a ledger of its type."""
    document = with_ledger(entity_document(entity), replace(ledger, type=entity.type))
    assert isinstance(await store.perform(SaveEntity(entity, document, None)), Saved)


async def owes(store: AsyncStore, entity: EntityRef, at: datetime = LONG_AGO) -> EntityRef:
    """Save an entity that has owed outputs since a time."""
    await put(store, entity, Ledger(1, entries=(an_owing(at),)))
    return entity


async def all_of(pages: AsyncIterator[tuple[EntityRef, ...]]) -> list[EntityRef]:
    """All items of a listing, in order."""
    return [entity async for page in pages for entity in page]


class ListingContract:
    """Inherit from it, and give it the fixtures `store` and `listing`."""

    @pytest.fixture
    def store(self) -> AsyncStore:
        """A store with the containers of `ENTITY_TYPES`."""
        raise NotImplementedError("Override the fixture `store`.")

    @pytest.fixture
    def listing(self, store: AsyncStore) -> AsyncListing:
        """The listing to test, of that store; `OWNED` and `LEVELS` may have companions."""
        raise NotImplementedError("Override the fixture `listing`.")

    @pytest.mark.parametrize("kind", ["plain", OWNED, LEVELS])
    async def test_an_entity_that_owes_is_listed_by_its_full_name(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        entity = await owes(store, plain_entity() if kind == "plain" else owned_entity(type=kind))
        assert entity in await all_of(listing.owing(entity.type, LATER))

    async def test_what_has_owed_for_a_shorter_time_is_not_listed_yet(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity = await owes(store, plain_entity(), LATER)
        assert entity not in await all_of(listing.owing(entity.type, LATER))
        assert entity in await all_of(listing.owing(entity.type, LATER + timedelta(seconds=1)))

    async def test_what_owes_nothing_is_not_listed(self, store: AsyncStore, listing: AsyncListing) -> None:
        published, foreign = plain_entity(), plain_entity()
        await put(store, published, Ledger(1, entries=(replace(an_owing(LONG_AGO), owed=None),)))
        await store.perform(SaveEntity(foreign, entity_document(foreign, total=3), None))
        assert not {published, foreign} & set(await all_of(listing.owing(published.type, EVER)))

    async def test_an_entity_of_another_type_in_the_same_container_is_not_listed(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity = plain_entity()
        document = with_ledger(entity_document(entity), Ledger(1, type="other", entries=(an_owing(LONG_AGO),)))
        await store.perform(SaveEntity(entity, document, None))
        assert entity not in await all_of(listing.owing(entity.type, LATER))

    @pytest.mark.parametrize("kind", ["plain", OWNED, LEVELS])
    async def test_bodies_are_those_of_entities_that_are_there(
        self, store: AsyncStore, listing: AsyncListing, kind: str
    ) -> None:
        def some() -> EntityRef:
            return plain_entity() if kind == "plain" else owned_entity(type=kind)

        present, adopted, deleted, others = some(), some(), some(), some()
        await put(store, present, Ledger(1))
        await put(store, deleted, Ledger(1, deleted=True))
        await store.perform(SaveEntity(adopted, entity_document(adopted, total=3), None))
        document = with_ledger(entity_document(others), Ledger(1, type="other"))
        await store.perform(SaveEntity(others, document, None))
        found = {ref: body async for page in listing.bodies(present.type, Condition(), None) for ref, body in page}
        assert found[present] == entity_document(present)
        assert found[adopted] == entity_document(adopted, total=3)
        assert not {deleted, others} & set(found)

    async def test_companions_are_no_bodies_and_a_partition_can_be_named(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity, other = owned_entity(), owned_entity()
        for one in (entity, other):
            document = with_ledger(entity_document(one), Ledger(1, type=one.type))
            record = a_colocated(one, "web/m-1")
            assert isinstance(await store.perform(SaveBatch(one, document, None, (record,))), Saved)
        pages = [page async for page in listing.bodies(OWNED, Condition(), entity.partition)]
        assert [ref for page in pages for ref, _ in page] == [entity]

    async def test_a_deleted_entity_may_owe_too(self, store: AsyncStore, listing: AsyncListing) -> None:
        entity = plain_entity()
        await put(store, entity, Ledger(1, deleted=True, entries=(an_owing(LONG_AGO),)))
        assert entity in await all_of(listing.owing(entity.type, LATER))

    async def test_who_has_owed_for_longest_comes_first(self, store: AsyncStore, listing: AsyncListing) -> None:
        later, first = owned_entity(), owned_entity()
        await owes(store, later, LONG_AGO + timedelta(seconds=2))
        await owes(store, first)
        pages = [page async for page in listing.owing(OWNED, LATER)]
        (mine,) = ([one for one in page if one in (first, later)] for page in pages if first in page)
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
        listed = await all_of(listing.owing(kind, LATER))
        assert [listed.count(one) for one in (entity, streamed, neighbour)] == [1, 1, 0]
        assert entity not in await all_of(listing.owing(kind, LONG_AGO))

    async def test_a_read_model_that_holds_and_misses_messages_for_long_is_listed(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        waiting, fresh, idle = owned_entity(), owned_entity(), owned_entity()
        held = Reception("c", "s", 1, held=((2, 3),), gap_since=LONG_AGO)
        await put(store, waiting, Ledger(receptions=(replace(held, source="r"), held)))
        await put(store, fresh, Ledger(receptions=(replace(held, gap_since=LATER),)))
        await put(store, idle, Ledger(receptions=(Reception("c", "s", 7),)))
        listed = await all_of(listing.holding(OWNED, LATER))
        assert (listed.count(waiting), fresh in listed, idle in listed) == (1, False, False)

    async def test_a_read_model_that_holds_messages_and_was_left_alone_is_listed(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        stopped = owned_entity()
        await put(store, stopped, Ledger(receptions=(Reception("c", "s", 2, held=((2, 2),), failing="ValueError"),)))
        assert stopped in await all_of(listing.holding(OWNED, EVER))
        assert stopped not in await all_of(listing.holding(OWNED, LATER))

    async def test_parked_messages_are_listed_with_their_reasons(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity = plain_entity()
        await write(store, entity, "web/m-0")
        place = Place("c1", entity.source, 7)
        foreign = a_parked(entity, "web/m-1", "its handler raised ValueError")
        await park(store, entity, foreign)
        await park(store, entity, replace(foreign, message="game/m-2", place=place))
        mine = [one async for page in listing.parked() for one in page if one.entity == entity.key]
        assert {(one.message, one.reason, one.at, one.place) for one in mine} == {
            ("web/m-1", foreign.reason, "2026-11-21T10:00:02.250000Z", None),
            ("game/m-2", foreign.reason, "2026-11-21T10:00:02.250000Z", place),
        }

    async def test_what_belongs_to_an_entity_is_reported_without_bodies(
        self, store: AsyncStore, listing: AsyncListing
    ) -> None:
        entity, neighbour = owned_entity("someone"), owned_entity("someone")
        await park(store, entity, a_parked(entity, "web/m-2"))
        await write(store, entity, "web/m-1")
        await together(store, entity, an_entry(entity, 7, "web/m-3"), a_numbered(entity))
        await together(store, neighbour, an_entry(neighbour, 1, "web/m-9"))
        found = await listing.belongings(entity)
        listed = sorted((one["kind"], one.get("message")) for one in found)
        assert listed == [
            ("entry", "web/m-3"),
            ("numbered", "game/m-1"),
            ("parked", "web/m-2"),
            ("processed", "web/m-1"),
        ]
        assert not any({"envelope", "held", "before", "owed"} & one.keys() for one in found)
        assert all({"id", "at", "_ts"} <= one.keys() for one in found)
