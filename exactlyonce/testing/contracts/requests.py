"""The part of the contract for stores that is about requests that callers open."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.effects.requests import (
    CLOSED,
    CloseRequest,
    DeleteRequests,
    FoundRequests,
    KeepAnswers,
    LoadRequests,
    OpenRequest,
)
from exactlyonce.records.library import RequestDocument
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import a_request, an_answered, now, plain_entity, unique
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after


class RequestsContract:
    """A request is opened, answered as long as it is there, and closed."""

    async def etag_of_request(self, store: AsyncStore, entity: EntityRef, request: str) -> str:
        """The ETag of a request's document, as clean-up reads it; the port has no request for it."""
        raise NotImplementedError("Override the method `etag_of_request`.")

    async def test_an_opened_request_is_found_as_it_was_stored(self, store: AsyncStore) -> None:
        entity, document = plain_entity(), a_request(plain_entity(), unique())
        token = await opened(store, entity, document)
        assert await requests(store, entity, document.request, token=token) == (document,)
        assert await requests(store, entity, document.request, unique(), token=token) == (document,)
        assert await requests(store, plain_entity(), document.request) == ()

    async def test_a_request_is_opened_once_under_its_id(self, store: AsyncStore) -> None:
        entity, document = plain_entity(), a_request(plain_entity(), unique())
        token = await opened(store, entity, document)
        again = await store.perform(OpenRequest(entity, document))
        assert isinstance(again, Conflict)
        assert at_or_after(again.token, token)

    async def test_the_view_that_shows_a_request_has_a_token_that_shows_it(self, store: AsyncStore) -> None:
        entity, document = plain_entity(), a_request(plain_entity(), unique())
        token = await opened(store, entity, document)
        found = await store.perform(LoadRequests(entity, (document.request,), token))
        assert isinstance(found, FoundRequests)
        assert at_or_after(found.token, token)

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
    reply = await store.perform(OpenRequest(entity, document))
    assert isinstance(reply, Written)
    return reply.token


async def kept(store: AsyncStore, entity: EntityRef, *documents: RequestDocument) -> str:
    """Keep answers; the token of the write."""
    reply = await store.perform(KeepAnswers(entity, documents))
    assert isinstance(reply, Written)
    return reply.token


async def requests(
    store: AsyncStore, entity: EntityRef, *ids: str, token: str | None = None
) -> tuple[RequestDocument, ...]:
    """The documents of requests."""
    reply = await store.perform(LoadRequests(entity, ids, token))
    assert isinstance(reply, FoundRequests)
    return reply.documents
