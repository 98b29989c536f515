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
from exactlyonce.values.frozen_json import Json
from tests.contract.conftest import ENTITY_CONTAINERS, Place
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

Rule = dict[str, Any]


def refusal(status: int, substatus: int = 0, **more: Any) -> Rule:
    return {"action": "status", "when": "before", "status": status, "substatus": substatus, **more}


BUSY = [(429, 3200), (449, 0), (410, 1007)]
PASSING = [(404, 1013), (409, 1006), (423, 0)]
ANSWERED = [*READS, *WRITES, *REPEATED]
REPLIES: list[tuple[list[str], Rule, Any]] = [
    (ANSWERED, {"action": "close"}, UNKNOWN),
    (BEST_EFFORTS, {"action": "close"}, None),
    *((READS, refusal(*code, retry_after_ms=2), Busy(0.002)) for code in BUSY),
    *((READS, refusal(*code), UNKNOWN) for code in PASSING),
    *(
        ([*WRITES, *REPEATED], refusal(*code, retry_after_ms=1), UNKNOWN)
        for code in (*BUSY, *PASSING, (408, 0), (500, 0), (502, 0), (507, 0))
    ),
]
SAVES = [name for name in WRITES if name.startswith("save")]
OTHERS = [name for name in (*ANSWERED, *BEST_EFFORTS) if name not in SAVES]
# The SDK looks at a container that was created anew, and asks again. Queries do not say which container they mean.
NAMING = ["load_entity", "read_books of one", *WRITES, *REPEATED, *BEST_EFFORTS]
ERRORS: list[tuple[list[str], Rule, type[Exception], str]] = [
    *(
        ([*ANSWERED, *BEST_EFFORTS], refusal(*code), ConfigurationError, rf"\({code[0]}/{code[1]}\)")
        for code in ((401, 0), (403, 0), (403, 1014), (400, 1001), (404, 1003))
    ),
    (SAVES, refusal(400), EntityRefused, r"in partition .* \(400/0\)"),
    (OTHERS, refusal(400), ConfigurationError, r"in partition .* \(400/0\)"),
    (NAMING, refusal(400, 1024), ConfigurationError, "created anew"),
]


def named(rule: Rule) -> str:
    return f"{rule.get('status', rule['action'])}/{rule.get('substatus', 0)}"


@pytest.fixture
def endless_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself waits for any answer."""
    monkeypatch.setattr(cosmos_client, "READ_SECONDS", 3600)


class TestALostReply:
    @pytest.mark.parametrize("action", ["close", "reset"])
    @pytest.mark.parametrize("known", [False, True])
    async def test_a_save_conflicts_with_itself(
        self, at: Place, action: Literal["close", "reset"], known: bool
    ) -> None:
        etag = (await create(at.store, at.entity)).etag if known else None
        at.fault(action=action, when="after", times=1)
        document = Json.of({"id": at.entity.id, "total": 2})
        reply = await at.perform(SaveEntity(at.entity, document, etag))
        assert isinstance(reply, Conflict)
        loaded = await at.perform(LoadEntity(at.entity, reply.token))
        assert isinstance(loaded, Loaded)
        assert (loaded.document, reply.token is None) == (document, False)

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    @pytest.mark.parametrize(("documents", "size"), [(1, 0), (3, 0), (5, 900_000)], ids=["one", "a batch", "batches"])
    async def test_staging_conflicts_with_itself_and_has_happened(self, at: Place, documents: int, size: int) -> None:
        """After the batch that conflicts with itself it goes on."""
        staged = tuple(a_staged(at.entity, size=size) for _ in range(documents))
        at.fault(action="close", when="after", times=1)
        reply = await at.perform(Stage(at.entity, staged))
        assert isinstance(reply, Conflict)
        transactions = tuple(item.tx for item in staged)
        assert await at.perform(LoadStaged(at.entity, transactions, reply.token)) == FoundStaged(staged)

    async def test_a_request_lost_on_its_way_is_repeated(self, at: Place) -> None:
        at.fault(action="close", when="before", times=1)
        assert isinstance(await create(at.store, at.entity), Saved)

    async def test_a_read_is_repeated(self, at: Place) -> None:
        await create(at.store, at.entity)
        at.fault(action="close", when="after", times=1)
        assert await total(at.store, at.entity) == 1


class TestNoReply:
    @pytest.mark.parametrize("name", ANSWERED)
    async def test_a_request_that_hangs_is_unknown_after_its_time_limit(self, at: Place, name: str) -> None:
        store = CosmosStore(at.connection, ENTITY_CONTAINERS, time_limit=0.05)
        await at.connection.container(PLAIN)
        await at.connection.container(OWNED)
        await at.connection.container(LIBRARY_CONTAINER)
        at.fault(action="hang")
        assert await REQUESTS[name](store, at.entity) is UNKNOWN

    @pytest.mark.usefixtures("endless_reads")
    @pytest.mark.parametrize("name", ANSWERED)
    async def test_a_first_request_that_waits_for_its_container_in_vain_is_unknown_after_the_same_limit(
        self, at: Place, name: str
    ) -> None:
        """The first use of a container reads it; a message must not wait longer for that than for anything else."""
        first = CosmosConnection(at.emulator.endpoint, at.connection.database, key=at.emulator.key)
        await first.client()
        at.fault(operations=("read_container",), action="hang", when="before")
        reply = REQUESTS[name](CosmosStore(first, ENTITY_CONTAINERS, time_limit=0.05), at.entity)
        assert await asyncio.wait_for(reply, 1800) is UNKNOWN
        await first.close()

    @pytest.mark.parametrize("name", [*READS, *BATCHES])
    async def test_a_body_that_is_cut_off_is_unknown(self, at: Place, name: str) -> None:
        """Only replies with a body can be cut off; those to single writes have none."""
        await create(at.store, at.entity)
        await write(at.store, at.entity)
        await at.perform(Stage(at.entity, (a_staged(at.entity, tx="5f"),)))
        await REQUESTS["park"](at.store, at.entity)
        if not name.startswith("save_batch"):
            await save_batch(at.store, at.entity)
        at.fault(action="truncate")
        assert await at.ask(name) is UNKNOWN

    async def test_a_request_can_be_cancelled_and_may_have_been_applied(self, at: Place) -> None:
        at.fault(action="hang", times=1)
        request = asyncio.ensure_future(create(at.store, at.entity))
        while not any(rule.hit for rule in at.emulator.faults()):  # noqa: ASYNC110  # The server has a thread of its own.
            await asyncio.sleep(0.001)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await total(at.store, at.entity) == 1


class TestARefusal:
    @pytest.mark.parametrize(
        ("name", "rule", "reply"),
        [
            pytest.param(name, rule, reply, id=f"{name}: {named(rule)}")
            for names, rule, reply in REPLIES
            for name in names
        ],
    )
    async def test_a_fault_that_passes_is_a_reply(self, at: Place, name: str, rule: Rule, reply: Any) -> None:
        at.fault(**rule)
        assert await at.ask(name) == reply

    @pytest.mark.parametrize(
        ("name", "rule", "error", "text"),
        [
            pytest.param(name, rule, error, text, id=f"{name}: {named(rule)}")
            for names, rule, error, text in ERRORS
            for name in names
        ],
    )
    async def test_a_fault_that_stays_until_somebody_acts_is_raised(
        self, at: Place, name: str, rule: Rule, error: type[Exception], text: str
    ) -> None:
        at.fault(**rule)
        with pytest.raises(error, match=text):
            await at.ask(name)

    @pytest.mark.parametrize("name", ANSWERED)
    async def test_a_throttled_request_waits_as_long_as_the_reply_says(self, at: Place, name: str) -> None:
        at.fault(action="status", when="before", status=429, substatus=3200, retry_after_ms=1, times=2)
        assert not isinstance(await at.ask(name), Busy | type(UNKNOWN))

    async def test_throttling_can_hide_that_a_write_was_applied(self, at: Place) -> None:
        """Why a write is never `Busy`."""
        at.fault(action="close", when="after", times=1)
        at.fault(action="status", when="before", status=429, substatus=3200, retry_after_ms=1)
        assert await create(at.store, at.entity) is UNKNOWN

    async def test_after_a_503_a_create_conflicts_with_itself(self, at: Place) -> None:
        at.fault(action="status", when="after", status=503, times=1)
        assert isinstance(await create(at.store, at.entity), Conflict)


class TestAStateThatCannotBeStored:
    """Found by the service alone, so the error names the message that made it, and no setting."""

    STATES: ClassVar[dict[str, Any]] = {
        "a time to live of nothing": {"ttl": 0},
        "a time to live in words": {"ttl": "a day"},
        "nested too deeply": {"nested": json.loads("[" * 130 + "]" * 130)},
        "a number beyond a double": {"number": 10**400},
    }

    @pytest.mark.parametrize("state", STATES.values(), ids=STATES)
    async def test_a_state_that_the_service_refuses_changes_nothing(self, at: Place, state: dict[str, Any]) -> None:
        document = Json.of({"id": at.entity.id, **state})
        with pytest.raises(EntityRefused, match="handler"):
            await at.perform(SaveEntity(at.entity, document, None))
        saved = await create(at.store, at.entity)
        with pytest.raises(EntityRefused, match="handler"):
            await at.perform(SaveEntity(at.entity, document, saved.etag))
        other = owned(at.entity)
        owner = Json.of({"id": other.id, "owner": other.partition[0], **state})
        with pytest.raises(EntityRefused, match="handler"):
            await at.perform(SaveBatch(other, owner, None))
        assert await total(at.store, at.entity) == 1

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    async def test_a_state_that_is_too_large_is_reported_with_its_size(self, at: Place) -> None:
        large = Json.of({"id": at.entity.id, "text": "x" * 2_200_000})
        with pytest.raises(EntityTooLarge, match="2 MB"):
            await at.perform(SaveEntity(at.entity, large, None))
        saved = await create(at.store, at.entity)
        with pytest.raises(EntityTooLarge, match=f"in partition '{at.entity.id}' of container contract-plain"):
            await at.perform(SaveEntity(at.entity, large, saved.etag))
        assert await total(at.store, at.entity) == 1
