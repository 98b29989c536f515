"""A 409 between the store and Cosmos DB: for a unique key, for an id, or for one's own success, whichever is judged first.

That each store distinguishes them is the contract's subject; here are the replies that go wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import (
    OWNED,
    UNIQUE,
    an_entry,
    entity_document,
    load,
    owned_entity,
    save,
    together,
)
from exactlyonce.values.envelope import EntityRef
from local_cosmos.semantics.replicas import Lag
from tests.contract.conftest import Place

Pair = tuple[EntityRef, EntityRef]
Save = Callable[[CosmosStore, EntityRef, str, str | None], Awaitable[Any]]


async def alone(store: CosmosStore, entity: EntityRef, email: str, etag: str | None = None) -> Any:
    return await store.perform(SaveEntity(entity, entity_document(entity, email=email), etag))


async def in_a_batch(store: CosmosStore, entity: EntityRef, email: str, etag: str | None = None) -> Any:
    return await store.perform(SaveBatch(entity, entity_document(entity, email=email), etag))


saving = pytest.mark.parametrize("saving", [alone, in_a_batch], ids=["alone", "in a batch"])


@pytest.fixture
async def pair(store: CosmosStore) -> tuple[EntityRef, EntityRef]:
    """Two entities of one partition; the first has the email a@x, the second is not there yet."""
    owner = uuid4().hex
    first, second = owned_entity(owner, UNIQUE), owned_entity(owner, UNIQUE)
    await save(store, first, email="a@x", name={"first": "Ann"})
    return first, second


@saving
@pytest.mark.parametrize("known", [False, True])
async def test_a_save_that_won_unheard_is_a_conflict_even_if_a_unique_key_is_judged_first(
    at: Place, pair: Pair, saving: Save, known: bool
) -> None:
    etag = (await save(at.store, pair[1], email="b@x")).etag if known else None
    at.fault(action="status", when="after", status=409, times=1)
    reply = await saving(at.store, pair[1], "c@x", etag)
    assert isinstance(reply, Conflict)
    assert reply.token is not None
    assert (await load(at.store, pair[1], reply.token)).document == entity_document(pair[1], email="c@x")


@saving
async def test_a_lost_reply_and_then_the_key_of_somebody_else_is_about_the_key(
    at: Place, pair: Pair, saving: Save
) -> None:
    at.fault(action="close", when="before", times=1)
    with pytest.raises(UniqueKeyTaken):
        await saving(at.store, pair[1], "a@x", None)


@saving
@pytest.mark.parametrize(
    "trouble",
    [
        {"action": "status", "when": "before", "status": 409, "times": 1},
        {"operations": ("read",), "action": "close"},
        {"operations": ("read",), "action": "status", "when": "before", "status": 429, "retry_after_ms": 1},
    ],
    ids=[
        "a 409 without a token, so that any look may be too old",
        "a look without an answer",
        "a look that is throttled",
    ],
)
async def test_a_refusal_that_no_look_confirms_is_a_conflict(
    at: Place, pair: Pair, saving: Save, trouble: dict[str, Any]
) -> None:
    at.fault(**trouble)
    assert isinstance(await saving(at.store, pair[1], "a@x", None), Conflict)


@saving
async def test_a_look_at_a_replica_that_is_behind_proves_nothing(at: Place, pair: Pair, saving: Save) -> None:
    at.emulator.set_lag(at.connection.database, lag=Lag(writes=1000))
    owner = str(pair[0].partition[0])
    await save(at.store, owned_entity(owner, UNIQUE), email="z@x")
    assert isinstance(await saving(at.store, pair[1], "a@x", None), Conflict)


@saving
async def test_a_refusal_costs_the_save_and_one_read(at: Place, pair: Pair, saving: Save) -> None:
    before = at.emulator.last_request()
    with pytest.raises(UniqueKeyTaken):
        await saving(at.store, pair[1], "a@x", None)
    operations = [request.operation for request in at.emulator.requests(before)]
    assert operations == ["create" if saving is alone else "batch", "read"]


async def test_a_companion_that_is_there_already_is_a_conflict_however_current_the_entity_is(at: Place) -> None:
    """A stale look for companions misses what the condition on the entity cannot know of."""
    entity = owned_entity(type=OWNED)
    entry = an_entry(entity, 1, "web/1")
    saved = await together(at.store, entity, entry)
    before = at.emulator.last_request()
    reply = await at.perform(SaveBatch(entity, entity_document(entity, total=2), saved.etag, (entry,)))
    assert isinstance(reply, Conflict)
    assert len(at.emulator.requests(before)) == 1
