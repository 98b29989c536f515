"""The listings of Cosmos DB do what every listing has to do; and are cheap, and report what they cannot do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import WriteBook, Written
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.ledger import entity_document as with_ledger
from exactlyonce.records.library import Book, Search
from exactlyonce.records.outbox import Kept, transaction
from exactlyonce.stores.cosmos import listing as cosmos_listing
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.listing import CosmosListing
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import AsyncListing, AsyncStore, Condition
from exactlyonce.testing.contracts.listing import (
    LATER,
    LONG_AGO,
    ListingContract,
    a_book_id,
    a_ledger,
    all_of,
    owes,
    put,
)
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    PLAIN,
    a_colocated,
    entity_document,
    owned_entity,
    plain_entity,
)
from exactlyonce.values.frozen_json import Json
from tests.contract.conftest import ENTITY_CONTAINERS, Fault, Place

CONTAINERS = [replace(container, companions=container.type in (OWNED, LEVELS)) for container in ENTITY_CONTAINERS]


@pytest.fixture
def listing(connection: CosmosConnection) -> CosmosListing:
    return CosmosListing(connection, CONTAINERS, time_limit=1)


class TestCosmosListing(ListingContract):
    @pytest.fixture
    def store(self, connection: CosmosConnection) -> AsyncStore:
        return CosmosStore(connection, CONTAINERS)

    @pytest.fixture
    def listing(self, connection: CosmosConnection, store: AsyncStore) -> AsyncListing:
        return CosmosListing(connection, CONTAINERS)


async def test_all_pages_of_all_physical_partitions_are_gone_through(at: Place, listing: CosmosListing) -> None:
    at.emulator.split(at.connection.database, OWNED, "0")
    book = a_book_id()
    wanted = {await owes(at.store, owned_entity(), transaction(book, number)) for number in range(1, 1_002)}
    pages = [page async for page in listing.owing(OWNED, (Search(book, 0, ()),))]
    assert len(pages) > 1
    assert {entity for page in pages for entity, _ in page} == wanted


async def test_a_search_that_is_cut_short_is_reported_whatever_was_found_so_far(
    at: Place, listing: CosmosListing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that took the first page for all would leave the rest owing."""
    monkeypatch.setattr(cosmos_listing, "_PAGE", 1)
    book = a_book_id()
    for number in (1, 2, 3):
        await owes(at.store, plain_entity(), transaction(book, number))
    pages = listing.owing(PLAIN, (Search(book, 0, ()),))
    assert len(await anext(pages)) == 1
    at.fault(operations=("query",), action="status", when="before", status=500)
    with pytest.raises(TryAgainLater, match="search again for the rest"):
        await all_of(pages)


async def test_types_that_share_a_container_and_its_partitions_are_distinguished(connection: CosmosConnection) -> None:
    places = [EntityContainer(type, OWNED, ("/owner",), companions=True) for type in (OWNED, "other")]
    store, listing = CosmosStore(connection, places), CosmosListing(connection, places)
    one, other = owned_entity("someone"), replace(owned_entity("someone"), type="other")
    for entity in (one, other):
        record = replace(a_colocated(entity, "web/m-1", owes=True), owing_since=LONG_AGO)
        document = Json.of({"id": entity.id, "owner": "someone"})
        assert isinstance(await store.perform(SaveBatch(entity, document, None, (record,))), Saved)
    assert await all_of(listing.companions(OWNED, LATER)) == [one]
    assert await all_of(listing.companions("other", LATER)) == [other]


async def test_a_whole_number_is_one_however_it_was_written(at: Place, listing: CosmosListing) -> None:
    """The service knows doubles only, and the key of an entity distinguishes 7 from 7.0."""
    entity = owned_entity(type=LEVELS)
    tx = transaction(a_book_id(), 1)
    document = entity_document(entity, _ledger={"type": LEVELS, "outbox": [{"tx": tx}]}).value
    container = await at.connection.container(LEVELS)
    await container.create_item({**document, "ordinal": 7.0})
    assert [item.key for item, _ in await all_of(listing.owing(LEVELS, (Search(tx[:20], 0, ()),)))] == [entity.key]


async def test_a_ledger_that_names_no_type_is_that_of_the_containers_type(at: Place, listing: CosmosListing) -> None:
    entity = owned_entity()
    tx = transaction(a_book_id(), 1)
    document = with_ledger(entity_document(entity), a_ledger(tx))
    assert isinstance(await at.perform(SaveEntity(entity, document, None)), Saved)
    assert await all_of(listing.owing(OWNED, (Search(tx[:20], 0, ()),))) == [(entity, tx)]


async def test_a_search_asks_for_names_only(at: Place, listing: CosmosListing) -> None:
    entity = owned_entity()
    tx = transaction(a_book_id(), 1)
    await put(at.store, entity, a_ledger(tx, token="x" * 1_000_000, kept=(Kept("k-1", LONG_AGO, "tx-1"),)))
    before = at.emulator.last_request()
    assert await all_of(listing.owing(OWNED, (Search(tx[:20], 0, (1, 2)),))) == [(entity, tx)]
    assert entity in await all_of(listing.due(OWNED, LATER))
    asked = [request for request in at.emulator.requests(before) if request.operation == "query"]
    assert len(asked) == 2
    assert all(item.charge < 3 for item in asked)  # It grows with what is returned.


async def test_documents_of_others_that_name_no_entity_stop_no_search(
    at: Place, listing: CosmosListing, caplog: pytest.LogCaptureFixture
) -> None:
    container = await at.connection.container(OWNED)
    foreign = {"owner": "o", "owing_since": "2000", "_kind": "processed"}
    for id, named in enumerate([None, 7, "no JSON", "[]"]):
        await container.create_item({**foreign, "id": f"d-{id}", "entity": named})
    tx = transaction(a_book_id(), 1)
    await container.create_item({"id": "d-4", "_ledger": {"type": OWNED, "outbox": [{"tx": tx}]}})
    entity = await owes(at.store, owned_entity(), tx)
    assert await all_of(listing.owing(OWNED, (Search(tx[:20], 0, ()),))) == [(entity, tx)]
    assert await all_of(listing.companions(OWNED, LATER)) == []
    assert [record.args for record in caplog.records if record.name == "exactlyonce.stores.cosmos.listing"] == [
        ("d-4", OWNED),
        *((f"d-{id}", OWNED) for id in range(4)),
    ]


@pytest.mark.parametrize("status", [500, 503, 429, 410])
async def test_a_store_that_does_not_answer_is_reported(listing: CosmosListing, fault: Fault, status: int) -> None:
    fault(operations=("query",), action="status", when="before", status=status)
    with pytest.raises(TryAgainLater, match="'contract-owned' could not be searched"):
        await all_of(listing.due(OWNED, LATER))
    with pytest.raises(TryAgainLater, match="'contract-plain' could not be searched"):
        await anext(listing.bodies(PLAIN, Condition("c.total > 1"), None))


async def test_a_search_that_takes_too_long_is_reported(at: Place) -> None:
    listing = CosmosListing(at.connection, CONTAINERS, time_limit=0.1)
    at.fault(operations=("query",), action="hang", when="before")
    with pytest.raises(TryAgainLater, match="could not be searched"):
        await all_of(listing.due(OWNED, LATER))
    with pytest.raises(TryAgainLater, match="could not be read"):
        await listing.belongings(owned_entity())


async def test_a_fault_for_an_operator_is_reported_as_such(connection: CosmosConnection) -> None:
    nowhere = [replace(container, container="nowhere") for container in CONTAINERS]
    with pytest.raises(ConfigurationError, match="Create the"):
        await all_of(CosmosListing(connection, nowhere).companions(OWNED, LATER))


async def test_a_condition_in_sql_chooses_among_entities_and_takes_its_values_as_parameters(
    at: Place, listing: CosmosListing
) -> None:
    few, many = plain_entity(), plain_entity()
    for entity, total in ((few, 3), (many, 300)):
        document = with_ledger(entity_document(entity, total=total), a_ledger(type=PLAIN))
        assert isinstance(await at.perform(SaveEntity(entity, document, None)), Saved)
    condition = Condition("c.total > @least OR c.total < @most", {"least": 100, "most": 0})
    found = [item async for page in listing.bodies(PLAIN, condition, None) for item in page]
    assert found == [(many, entity_document(many, total=300))]
    assert [item async for page in listing.bodies(PLAIN, condition, few.partition) for item in page] == []


async def test_a_condition_that_is_no_sql_is_refused_by_name(listing: CosmosListing) -> None:
    with pytest.raises(ConfigurationError, match=r"condition 'c\.total >'\. Write it as after WHERE"):
        await anext(listing.bodies(PLAIN, Condition("c.total >"), None))


async def test_books_are_listed_by_one_query_of_one_partition(at: Place, listing: CosmosListing) -> None:
    at.emulator.split(at.connection.database, "exactlyonce", "0")
    for _ in range(30):
        assert isinstance(await at.perform(WriteBook(Book(a_book_id(), 812, (807,)), 60)), Written)
    before = at.emulator.last_request()
    assert len(await all_of(listing.books(0))) == 30
    assert [request.operation for request in at.emulator.requests(before)] == ["query"]
