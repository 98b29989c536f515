"""What takes several requests, batches or pages: what all of them say together, and what one of them can spoil."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce.effects.companions import FindEntries, FoundCompanions
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import FoundRequests, FoundStaged, LoadRequests, LoadStaged, Stage, Written
from exactlyonce.records.library import StagedOutputs
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.library import opened
from exactlyonce.testing.contracts.samples import a_request, a_staged, an_entry, owned_entity, together
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.session_tokens import at_or_after
from tests.contract.conftest import Place

MANY = 150
"""More than a batch holds, and more than a page."""

LARGE_BODIES = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


class TestBatches:
    @pytest.mark.parametrize(("times", "kind"), [(0, Written), (1, Conflict)])
    async def test_the_token_of_several_batches_covers_the_last_one(
        self, at: Place, times: int, kind: type[Written | Conflict]
    ) -> None:
        """A ledger that held the first one's token would let a view pass that lacks the others."""
        if times:
            at.fault(action="close", when="after", times=times)
        reply: Any = await at.perform(Stage(at.entity, _staged(at.entity)))
        assert isinstance(reply, kind)
        assert at_or_after(reply.token, await _now(at.store, at.entity))

    @pytest.mark.parametrize("lost", [0, 1])
    async def test_outputs_are_staged_only_if_every_batch_was_answered(self, at: Place, lost: int) -> None:
        at.fault(operations=("batch",), action="status", when="before", status=500, skip=lost, times=1)
        assert await at.perform(Stage(at.entity, _staged(at.entity))) is UNKNOWN


class TestPagesOfReplies:
    async def test_staged_outputs_are_found_on_whichever_page_they_are(self, at: Place) -> None:
        staged = _staged(at.entity)
        written = await at.perform(Stage(at.entity, staged))
        assert isinstance(written, Written)
        before = at.emulator.last_request()
        assert await at.perform(LoadStaged(at.entity, _transactions(staged), written.token)) == FoundStaged(staged)
        assert len(at.emulator.requests(before)) > 1

    @LARGE_BODIES
    async def test_entries_are_found_in_the_order_of_their_versions_on_whichever_page_they_are(self, at: Place) -> None:
        """A page ends at four megabytes."""
        entity = owned_entity()
        entries = [an_entry(entity, version, padding="x" * 450_000) for version in range(1, 13)]
        etag = None
        for some in (entries[6:9], entries[9:], entries[3:6], entries[:3]):
            etag = (await together(at.store, entity, *some, etag=etag)).etag
        found = await at.perform(FindEntries(entity, ((1, 12),), None))
        assert isinstance(found, FoundCompanions)
        assert [entry for entry, _ in found.companions] == entries

    async def test_several_pages_are_no_later_view_than_was_asked_for(self, at: Place) -> None:
        """Each may come from another replica: what the last one had seen, the first one may lack."""
        requests = [a_request(at.entity, f"r-{number}") for number in range(MANY)]
        tokens = [await opened(at.store, at.entity, request) for request in requests]
        for token in (None, tokens[0]):
            found = await at.perform(LoadRequests(at.entity, tuple(item.request for item in requests), token))
            assert isinstance(found, FoundRequests)
            assert {*found.documents} == {*requests}
            assert found.token == token

    async def test_a_page_that_is_not_answered_makes_the_whole_unknown(self, at: Place) -> None:
        staged = _staged(at.entity)
        await at.perform(Stage(at.entity, staged))
        at.fault(container=LIBRARY_CONTAINER, operations=("query",), action="status", when="before", status=500, skip=1)
        assert await at.perform(LoadStaged(at.entity, _transactions(staged), None)) is UNKNOWN


def _staged(entity: EntityRef) -> tuple[StagedOutputs, ...]:
    return tuple(a_staged(entity) for _ in range(MANY))


def _transactions(staged: tuple[StagedOutputs, ...]) -> tuple[str, ...]:
    return tuple(item.tx for item in staged)


async def _now(store: CosmosStore, entity: EntityRef) -> str | None:
    """Where the partition is: the token of one read, whatever it finds."""
    found = await store.perform(LoadRequests(entity, ("r-1",), None))
    assert isinstance(found, FoundRequests)
    return found.token
