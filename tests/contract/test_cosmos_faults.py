"""What goes wrong between the store and Cosmos DB, through the real SDK: which reply a strategy gets, and what was applied."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, Literal

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Busy
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FoundStaged, LoadStaged, Stage
from exactlyonce.errors import ConfigurationError, EntityRefused, EntityTooLarge
from exactlyonce.stores.cosmos import client as cosmos_client
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import OWNED, PLAIN, a_staged, write
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator
from tests.contract.conftest import ENTITY_CONTAINERS, Fault
from tests.contract.cosmos_requests import (
    BATCHES,
    BEST_EFFORTS,
    READS,
    REPEATED,
    REQUESTS,
    WRITES,
    create,
    owned,
    save_batch,
    total,
)

BUSY = [(429, 3200), (449, 0), (410, 1007)]
PASSING = [(404, 1013), (409, 1006), (423, 0)]


@pytest.fixture
def endless_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself waits for any answer."""
    monkeypatch.setattr(cosmos_client, "READ_SECONDS", 3600)


class TestALostReply:
    @pytest.mark.parametrize("action", ["close", "reset"])
    @pytest.mark.parametrize("known", [False, True])
    async def test_a_save_conflicts_with_itself(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, action: Literal["close", "reset"], known: bool
    ) -> None:
        etag = (await create(store, entity)).etag if known else None
        fault(action=action, when="after", times=1)
        document = Json.of({"id": entity.id, "total": 2})
        reply = await store.perform(SaveEntity(entity, document, etag))
        assert isinstance(reply, Conflict)
        loaded = await store.perform(LoadEntity(entity, reply.token))
        assert isinstance(loaded, Loaded)
        assert (loaded.document, reply.token is None) == (document, False)

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    @pytest.mark.parametrize(("documents", "size"), [(1, 0), (3, 0), (5, 900_000)], ids=["one", "a batch", "batches"])
    async def test_staging_conflicts_with_itself_and_has_happened(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, documents: int, size: int
    ) -> None:
        """After the batch that conflicts with itself it goes on."""
        staged = tuple(a_staged(entity, size=size) for _ in range(documents))
        fault(action="close", when="after", times=1)
        reply = await store.perform(Stage(entity, staged))
        assert isinstance(reply, Conflict)
        transactions = tuple(item.tx for item in staged)
        assert await store.perform(LoadStaged(entity, transactions, reply.token)) == FoundStaged(staged)

    async def test_a_request_lost_on_its_way_is_repeated(
        self, store: CosmosStore, entity: EntityRef, fault: Fault
    ) -> None:
        fault(action="close", when="before", times=1)
        assert isinstance(await create(store, entity), Saved)

    async def test_a_read_is_repeated(self, store: CosmosStore, entity: EntityRef, fault: Fault) -> None:
        await create(store, entity)
        fault(action="close", when="after", times=1)
        assert await total(store, entity) == 1


class TestNoReply:
    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED])
    async def test_it_is_unknown(self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str) -> None:
        fault(action="close")
        assert await REQUESTS[name](store, entity) is UNKNOWN

    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED])
    async def test_a_request_that_hangs_is_unknown_after_its_time_limit(
        self, connection: CosmosConnection, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        store = CosmosStore(connection, ENTITY_CONTAINERS, time_limit=0.05)
        await connection.container(PLAIN)
        await connection.container(OWNED)
        await connection.container(LIBRARY_CONTAINER)
        fault(action="hang")
        assert await REQUESTS[name](store, entity) is UNKNOWN

    @pytest.mark.usefixtures("endless_reads")
    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED])
    async def test_a_first_request_that_waits_for_its_container_in_vain_is_unknown_after_the_same_limit(
        self, emulator: RunningEmulator, connection: CosmosConnection, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        """The first use of a container reads it; a message must not wait longer for that than for anything else."""
        first = CosmosConnection(emulator.endpoint, connection.database, key=emulator.key)
        await first.client()
        fault(operations=("read_container",), action="hang", when="before")
        reply = REQUESTS[name](CosmosStore(first, ENTITY_CONTAINERS, time_limit=0.05), entity)
        assert await asyncio.wait_for(reply, 1800) is UNKNOWN
        await first.close()

    @pytest.mark.parametrize("name", [*READS, *BATCHES])
    async def test_a_body_that_is_cut_off_is_unknown(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        """Only replies with a body can be cut off; those to single writes have none."""
        await create(store, entity)
        await write(store, entity)
        await store.perform(Stage(entity, (a_staged(entity, tx="5f"),)))
        await REQUESTS["park"](store, entity)
        if not name.startswith("save_batch"):
            await save_batch(store, entity)
        fault(action="truncate")
        assert await REQUESTS[name](store, entity) is UNKNOWN

    async def test_a_request_can_be_cancelled_and_may_have_been_applied(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, emulator: RunningEmulator
    ) -> None:
        fault(action="hang", times=1)
        request = asyncio.ensure_future(create(store, entity))
        while not any(rule.hit for rule in emulator.faults()):  # noqa: ASYNC110  # The server has a thread of its own.
            await asyncio.sleep(0.001)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await total(store, entity) == 1

    @pytest.mark.parametrize("name", BEST_EFFORTS)
    async def test_what_is_best_effort_fails_silently(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        fault(action="close")
        assert await REQUESTS[name](store, entity) is None


class TestARefusal:
    @pytest.mark.parametrize("name", READS)
    @pytest.mark.parametrize("code", BUSY)
    async def test_a_read_can_be_asked_again(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str, code: tuple[int, int]
    ) -> None:
        fault(action="status", when="before", status=code[0], substatus=code[1], retry_after_ms=2)
        assert await REQUESTS[name](store, entity) == Busy(0.002)

    @pytest.mark.parametrize("name", READS)
    @pytest.mark.parametrize("code", PASSING)
    async def test_a_read_that_is_refused_for_what_passes_is_unknown(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str, code: tuple[int, int]
    ) -> None:
        fault(action="status", when="before", status=code[0], substatus=code[1])
        assert await REQUESTS[name](store, entity) is UNKNOWN

    @pytest.mark.parametrize("name", [*WRITES, *REPEATED])
    @pytest.mark.parametrize("code", [*BUSY, *PASSING, (408, 0), (500, 0), (502, 0), (507, 0)])
    async def test_a_write_is_unknown(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str, code: tuple[int, int]
    ) -> None:
        fault(action="status", when="before", status=code[0], substatus=code[1], retry_after_ms=1)
        assert await REQUESTS[name](store, entity) is UNKNOWN

    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED])
    async def test_a_throttled_request_waits_as_long_as_the_reply_says(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        fault(action="status", when="before", status=429, substatus=3200, retry_after_ms=1, times=2)
        assert not isinstance(await REQUESTS[name](store, entity), Busy | type(UNKNOWN))

    async def test_throttling_can_hide_that_a_write_was_applied(
        self, store: CosmosStore, entity: EntityRef, fault: Fault
    ) -> None:
        """Why a write is never `Busy`."""
        fault(action="close", when="after", times=1)
        fault(action="status", when="before", status=429, substatus=3200, retry_after_ms=1)
        assert await create(store, entity) is UNKNOWN

    async def test_after_a_503_a_create_conflicts_with_itself(
        self, store: CosmosStore, entity: EntityRef, fault: Fault
    ) -> None:
        fault(action="status", when="after", status=503, times=1)
        assert isinstance(await create(store, entity), Conflict)

    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED, *BEST_EFFORTS])
    @pytest.mark.parametrize("code", [(401, 0), (403, 0), (403, 1014), (400, 1001), (404, 1003)])
    async def test_what_only_an_operator_can_change_is_raised(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str, code: tuple[int, int]
    ) -> None:
        fault(action="status", when="before", status=code[0], substatus=code[1])
        with pytest.raises(ConfigurationError):
            await REQUESTS[name](store, entity)

    @pytest.mark.parametrize("name", [*READS, *WRITES, *REPEATED, *BEST_EFFORTS])
    async def test_a_request_that_makes_no_sense_is_raised_with_its_message(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        fault(action="status", when="before", status=400)
        expected = EntityRefused if name.startswith("save") else ConfigurationError
        with pytest.raises(expected, match=r"in partition .* \(400/0\)"):
            await REQUESTS[name](store, entity)

    @pytest.mark.parametrize("name", ["load_entity", "read_books of one", *WRITES, *REPEATED, *BEST_EFFORTS])
    async def test_a_container_that_was_created_anew_and_is_still_not_the_one_that_was_meant_is_reported(
        self, store: CosmosStore, entity: EntityRef, fault: Fault, name: str
    ) -> None:
        """The SDK looks at the container and asks once more. Queries do not say which one they mean."""
        fault(action="status", when="before", status=400, substatus=1024)
        with pytest.raises(ConfigurationError, match="created anew"):
            await REQUESTS[name](store, entity)


class TestAStateThatCannotBeStored:
    """Found by the service alone, so the error names the message that made it, and no setting."""

    STATES: ClassVar[dict[str, Any]] = {
        "a time to live of nothing": {"ttl": 0},
        "a time to live in words": {"ttl": "a day"},
        "nested too deeply": {"nested": json.loads("[" * 130 + "]" * 130)},
        "a number beyond a double": {"number": 10**400},
    }

    @pytest.mark.parametrize("state", STATES.values(), ids=STATES)
    async def test_it_is_refused_and_nothing_is_changed(
        self, store: CosmosStore, entity: EntityRef, state: dict[str, Any]
    ) -> None:
        document = Json.of({"id": entity.id, **state})
        with pytest.raises(EntityRefused, match="handler"):
            await store.perform(SaveEntity(entity, document, None))
        saved = await create(store, entity)
        with pytest.raises(EntityRefused, match="handler"):
            await store.perform(SaveEntity(entity, document, saved.etag))
        other = owned(entity)
        owner = Json.of({"id": other.id, "owner": other.partition[0], **state})
        with pytest.raises(EntityRefused, match="handler"):
            await store.perform(SaveBatch(other, owner, None))
        assert await total(store, entity) == 1

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    async def test_one_that_is_too_large_is_reported_with_its_size(self, store: CosmosStore, entity: EntityRef) -> None:
        large = Json.of({"id": entity.id, "text": "x" * 2_200_000})
        with pytest.raises(EntityTooLarge, match="2 MB"):
            await store.perform(SaveEntity(entity, large, None))
        saved = await create(store, entity)
        with pytest.raises(EntityTooLarge, match=f"in partition '{entity.id}' of container contract-plain"):
            await store.perform(SaveEntity(entity, large, saved.etag))
        assert await total(store, entity) == 1
