"""Pages and books in Cosmos DB: how long the service keeps them, what they cost, and pages that stand in each other's way."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Literal

import pytest

from exactlyonce.effects import library
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.errors import DamagedDocument
from exactlyonce.records.ledger import Mark, Page
from exactlyonce.records.ledger import written as joined
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, page_id
from exactlyonce.testing.contracts.samples import DAY, a_book, a_page, find, write
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.session_tokens import at_or_after
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.replicas import Lag
from tests.contract.conftest import Place, create_containers


def full_page(entity: EntityRef, number: int = 1) -> Page:
    """A page as entities cut them: of 20 marks, each with two outputs."""
    page = a_page(entity, number)
    hashes = (base64.b64encode(bytes([item] * 12)).decode() for item in range(17))
    marks = (Mark(page.begin + item, hash, "i", True, "c0de", "-0") for item, hash in enumerate(hashes))
    return replace(page, marks=joined(mark.text for mark in marks), to=("stocks", "audience"))


class TestHowLongTheyAreKept:
    @pytest.fixture
    def emulator(self) -> Iterator[RunningEmulator]:
        """An account whose clock may be moved."""
        with running_emulator() as emulator:
            yield emulator

    @pytest.fixture
    async def connection(self, emulator: RunningEmulator) -> AsyncIterator[CosmosConnection]:
        connection = CosmosConnection(emulator.endpoint, "kept", key=emulator.key)
        await create_containers(await (await connection.client()).create_database(connection.database))
        yield connection
        await connection.close()

    async def test_a_page_is_gone_when_its_time_has_passed_and_can_be_written_anew(self, at: Place) -> None:
        await at.perform(library.WritePage(at.entity, a_page(at.entity, 1), DAY))
        token = await write(at.store, at.entity, a_page(at.entity, 2))
        await at.perform(library.WritePage(at.entity, a_page(at.entity, 3), 2 * DAY))
        at.emulator.advance_clock(DAY - 60)
        assert await find(at.store, at.entity, times=(10_000, 30_000), token=token) == [1, 3]
        at.emulator.advance_clock(120)
        assert await find(at.store, at.entity, times=(10_000, 30_000), newest=2, token=token) == [3]
        other = replace(a_page(at.entity), version=11)
        assert isinstance(await at.perform(library.WritePage(at.entity, other, DAY)), library.Written)
        at.emulator.advance_clock(2 * DAY)
        assert await at.perform(library.HasPages(at.entity)) is False

    async def test_a_page_that_is_written_twice_stays_as_long_as_it_was_to_stay_at_first(self, at: Place) -> None:
        """All attempts on one version of a ledger ask for nearly the same time."""
        for seconds in (DAY, 2 * DAY):
            at.emulator.advance_clock(3600)
            assert isinstance(
                await at.perform(library.WritePage(at.entity, a_page(at.entity), seconds)), library.Written
            )
        at.emulator.advance_clock(DAY)
        assert await at.perform(library.HasPages(at.entity)) is False

    async def test_a_book_is_kept_from_its_last_writing_on(self, at: Place) -> None:
        for _ in range(3):
            await at.perform(library.WriteBook(a_book("b-1"), DAY))
            at.emulator.advance_clock(DAY - 60)
        assert await at.perform(library.ReadBooks(("b-1", "b-2"))) == library.FoundBooks((a_book("b-1"),))
        at.emulator.advance_clock(120)
        assert await at.perform(library.ReadBooks(("b-1", "b-2"))) == library.FoundBooks(())


class TestReplicasThatAreBehind:
    async def test_a_search_with_a_token_is_behind_and_never_without_what_is_there(self, at: Place) -> None:
        at.emulator.set_lag(at.connection.database, lag=Lag(writes=1000))
        token = await write(at.store, at.entity)
        for search in (
            library.FindPages(at.entity, (10_000,), ("m-1",), 10, token),
            library.FindPages(at.entity, tuple(range(100)), (), 10, token),
            library.FindPagesAbove(at.entity, 0, token),
            library.FindBlobs(at.entity, ("5f",), token),
            library.HasPages(at.entity, token),
        ):
            assert await at.elsewhere().perform(search) is BEHIND
        assert await at.elsewhere().perform(library.HasPages(at.entity)) is False

    async def test_the_token_of_a_repeated_write_is_no_earlier_than_the_first(self, at: Place) -> None:
        """A commit relies on it, and a view at it has to have the page."""
        at.emulator.set_lag(at.connection.database, lag=Lag(writes=1000))
        first = await write(at.store, at.entity)
        assert await at.elsewhere().perform(library.WritePage(at.entity, a_page(at.entity), DAY)) is UNKNOWN
        at.emulator.set_lag(at.connection.database, lag=Lag(writes=1000, catch_up_after=1))
        again = await at.elsewhere().perform(library.WritePage(at.entity, a_page(at.entity), DAY))
        assert isinstance(again, library.Written)
        assert at_or_after(again.token, first)


class TestAPageInTheWay:
    @pytest.mark.parametrize("action", ["close", "reset"])
    async def test_a_write_whose_reply_was_lost_is_answered_as_if_it_were_the_first(
        self, at: Place, action: Literal["close", "reset"]
    ) -> None:
        at.fault(action=action, when="after", times=1)
        token = await write(at.store, at.entity)
        assert await find(at.store, at.entity, newest=1, token=token) == [1]

    async def test_a_page_that_cannot_be_read_is_not_judged(self, at: Place) -> None:
        await write(at.store, at.entity)
        at.fault(container=LIBRARY_CONTAINER, operations=("read",), action="status", when="before", status=500)
        for page in (a_page(at.entity), replace(a_page(at.entity), version=11)):
            assert await at.perform(library.WritePage(at.entity, page, DAY)) is UNKNOWN

    async def test_a_page_that_is_gone_when_it_is_read_was_not_written(self, at: Place) -> None:
        at.fault(container=LIBRARY_CONTAINER, operations=("create",), action="status", when="before", status=409)
        assert await at.perform(library.WritePage(at.entity, a_page(at.entity), DAY)) is UNKNOWN

    async def test_properties_that_the_service_adds_make_no_other_page(self, at: Place) -> None:
        await write(at.store, at.entity)
        container = await at.connection.container(LIBRARY_CONTAINER)
        there = await container.read_item(page_id(1), at.entity.key)
        await container.replace_item(there["id"], {**there, "ttl": 7 * DAY})
        assert isinstance(await at.perform(library.WritePage(at.entity, a_page(at.entity), DAY)), library.Written)
        await container.replace_item(there["id"], {**there, "until": 19_001})
        assert await at.perform(library.WritePage(at.entity, a_page(at.entity), DAY)) is library.OTHER

    async def test_a_page_under_the_name_of_another_is_not_trusted(self, at: Place) -> None:
        await write(at.store, at.entity)
        container = await at.connection.container(LIBRARY_CONTAINER)
        await container.create_item({**await container.read_item(page_id(1), at.entity.key), "id": page_id(2)})
        with pytest.raises(DamagedDocument, match="does not match its id"):
            await at.perform(library.FindPages(at.entity, (10_000,), (), 1, None))
        with pytest.raises(DamagedDocument, match="does not match its id"):
            await at.perform(library.WritePage(at.entity, a_page(at.entity, 2), DAY))


class TestCosts:
    async def test_a_message_is_looked_for_in_one_request_of_three_units(self, at: Place) -> None:
        for number in (1, 2, 3):
            token = await write(at.store, at.entity, full_page(at.entity, number))
        before = at.emulator.last_request()
        found = await at.perform(library.FindPages(at.entity, (30_000,), (), 30, token))
        assert found == library.FoundPages((full_page(at.entity, 3),))
        (request,) = at.emulator.requests(before)
        assert (request.operation, 2.3 <= request.charge <= 3.5) == ("query", True)

    async def test_a_page_is_written_in_one_request_for_what_a_document_of_its_size_costs(self, at: Place) -> None:
        before = at.emulator.last_request()
        await write(at.store, at.entity, full_page(at.entity))
        (request,) = at.emulator.requests(before)
        assert (request.operation, 5.5 <= request.charge <= 5.8) == ("create", True)

    @pytest.mark.parametrize(("messages", "requests"), [(1, 1), (32, 1), (33, 2), (100, 4)])
    async def test_messages_are_looked_for_together(self, at: Place, messages: int, requests: int) -> None:
        before = at.emulator.last_request()
        await at.perform(library.FindPages(at.entity, tuple(range(messages)), (), 10, None))
        assert len(at.emulator.requests(before)) == requests

    async def test_nothing_is_asked_where_no_book_is_wanted(self, at: Place) -> None:
        before = at.emulator.last_request()
        assert await at.perform(library.ReadBooks(())) == library.FoundBooks(())
        assert at.emulator.requests(before) == []

    async def test_pages_that_are_unchanged_are_deleted_by_one_request(self, at: Place) -> None:
        for number in (1, 2, 3):
            await write(at.store, at.entity, a_page(at.entity, number))
        found = await at.perform(library.FindPagesAbove(at.entity, 0, None))
        assert isinstance(found, library.FoundAbove)
        before = at.emulator.last_request()
        await at.perform(library.DeletePages(at.entity, tuple((page.number, etag) for page, etag in found.pages)))
        assert [request.operation for request in at.emulator.requests(before)] == ["batch"]
        assert await at.perform(library.HasPages(at.entity)) is False
