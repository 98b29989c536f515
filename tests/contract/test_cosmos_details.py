"""What the contract of stores leaves open: tokens, costs, and what the store in Cosmos DB refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from azure.cosmos import CosmosDict, CosmosList

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity
from exactlyonce.effects.library import DeleteStaged, FindPages, LoadParked, LoadStaged, Park, Stage, Written
from exactlyonce.errors import ConfigurationError, DamagedDocument, InvalidMessage, MalformedMessage, OutputTooLarge
from exactlyonce.records.outbox import Output
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import (
    LIBRARY_CONTAINER,
    CosmosPartition,
    Document,
    EntityContainer,
    parked_id,
    staged_id,
)
from exactlyonce.stores.cosmos.replies import SESSION_TOKEN
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import PLAIN, a_parked, a_staged, park, staged_now
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.session_tokens import at_or_after
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from tests.contract.conftest import ENTITY_CONTAINERS, Elsewhere
from tests.contract.cosmos_requests import REQUESTS, WRITES, create, total
from tests.contract.cosmos_requests import replace as replace_entity


class TestReplicasThatAreBehind:
    @pytest.fixture(autouse=True)
    def _behind(self, emulator: RunningEmulator, connection: CosmosConnection) -> None:
        emulator.set_lag(connection.database, lag=Lag(writes=1000))

    async def test_a_read_with_a_token_is_behind_and_never_absent(
        self, store: CosmosStore, elsewhere: Elsewhere, entity: EntityRef
    ) -> None:
        """Elsewhere, where nothing but the given token shows it."""
        saved = await create(store, entity)
        staged = await store.perform(Stage(entity, (a_staged(entity, tx="5f"),)))
        assert isinstance(staged, Written)
        assert await elsewhere().perform(LoadEntity(entity, saved.token)) is BEHIND
        for transactions in (("5f",), ("5f", "9a")):
            assert await elsewhere().perform(LoadStaged(entity, transactions, staged.token)) is BEHIND
        token = await park(store, entity, a_parked(entity, "web/1"))
        assert await elsewhere().perform(LoadParked(entity, "web/1", token)) is BEHIND

    async def test_tokens_of_batches_and_of_conflicts_count_like_any_other(
        self, store: CosmosStore, elsewhere: Elsewhere, entity: EntityRef
    ) -> None:
        staged = (a_staged(entity), a_staged(entity))
        for again in (staged, staged[:1]):
            await store.perform(Stage(entity, again))
            conflict = await store.perform(Stage(entity, again))
            assert isinstance(conflict, Conflict)
            assert await elsewhere().perform(LoadStaged(entity, (staged[0].tx,), conflict.token)) is BEHIND

    async def test_another_process_may_see_an_earlier_version(
        self, store: CosmosStore, elsewhere: Elsewhere, entity: EntityRef
    ) -> None:
        await create(store, entity)
        assert await total(elsewhere(), entity) is None


class TestTokens:
    async def test_every_view_says_where_it_is(self, store: CosmosStore, entity: EntityRef) -> None:
        saved = await create(store, entity)
        loaded = await store.perform(LoadEntity(entity))
        assert isinstance(loaded, Loaded)
        assert at_or_after(loaded.token, saved.token)

    async def test_an_absence_says_where_it_was_seen(self, store: CosmosStore, entity: EntityRef) -> None:
        loaded = await store.perform(LoadEntity(entity))
        assert isinstance(loaded, Loaded)
        assert loaded.token is not None


class TestCosts:
    @pytest.mark.parametrize("name", list(REQUESTS))
    async def test_every_effect_is_one_request(
        self, store: CosmosStore, entity: EntityRef, emulator: RunningEmulator, name: str
    ) -> None:
        await store.perform(Stage(entity, (a_staged(entity, tx="5f"), a_staged(entity, tx="9a"))))
        before = emulator.last_request()
        await REQUESTS[name](store, entity)
        assert len(emulator.requests(before)) == 1

    async def test_more_deletions_than_a_batch_holds_are_several_requests(
        self, store: CosmosStore, entity: EntityRef, emulator: RunningEmulator
    ) -> None:
        staged = tuple(a_staged(entity) for _ in range(150))
        await store.perform(Stage(entity, staged))
        before = emulator.last_request()
        await store.perform(DeleteStaged(entity, tuple(item.tx for item in staged)))
        assert [request.operation for request in emulator.requests(before)] == ["batch"] * 2
        assert await staged_now(store, entity, *(item.tx for item in staged)) == ()


class TestWhatTheStoreDoesNotTrust:
    @pytest.mark.parametrize(
        "effect",
        [
            lambda entity: LoadStaged(entity, ("5f",), None),
            lambda entity: LoadStaged(entity, ("5f", "9a"), None),
            lambda entity: LoadParked(entity, "web/1"),
        ],
    )
    async def test_a_document_about_something_else_than_its_id_says(
        self,
        store: CosmosStore,
        connection: CosmosConnection,
        entity: EntityRef,
        effect: Callable[[EntityRef], Effect[Any]],
    ) -> None:
        await store.perform(Stage(entity, (a_staged(entity, tx="77"),)))
        await park(store, entity, a_parked(entity, "web/7"))
        container = await connection.container(LIBRARY_CONTAINER)
        ids = {
            staged_id("77"): staged_id("5f"),
            parked_id("web/7"): parked_id("web/1"),
        }
        for id, another in ids.items():
            await container.create_item({**await container.read_item(id, entity.key), "id": another})
        with pytest.raises(DamagedDocument, match="does not match its id"):
            await store.perform(effect(entity))

    async def test_a_reply_without_a_date_has_no_age(
        self, store: CosmosStore, entity: EntityRef, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await park(store, entity, a_parked(entity, "web/1"))
        read = CosmosPartition.read

        async def dateless(self: CosmosPartition, id: str, token: str | None) -> object:
            found = await read(self, id, token)
            assert isinstance(found, Document)
            return Document(found.properties, found.token, None)

        monkeypatch.setattr(CosmosPartition, "read", dateless)
        assert await store.perform(LoadParked(entity, "web/1")) is UNKNOWN

    @pytest.mark.parametrize("seen", [False, True])
    async def test_a_save_whose_reply_has_no_etag_is_unknown(
        self, store: CosmosStore, entity: EntityRef, monkeypatch: pytest.MonkeyPatch, seen: bool
    ) -> None:
        """The next save would rely on it."""
        etag = (await create(store, entity)).etag if seen else None
        _replies_lack("etag", monkeypatch)
        assert await (create(store, entity) if etag is None else replace_entity(store, entity, etag)) is UNKNOWN

    @pytest.mark.parametrize("name", [name for name in WRITES if not name.startswith("save")])
    async def test_a_write_to_the_librarys_container_whose_reply_has_no_token_is_unknown(
        self, store: CosmosStore, entity: EntityRef, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """A commit would rely on it."""
        _replies_lack(SESSION_TOKEN, monkeypatch)
        assert await REQUESTS[name](store, entity) is UNKNOWN

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    async def test_a_message_that_is_too_large_to_be_parked(self, store: CosmosStore, entity: EntityRef) -> None:
        message = replace(a_parked(entity, "web/1"), envelope=Json.of(['"' * 1_000_000]))
        with pytest.raises(MalformedMessage, match="poison queue"):
            await store.perform(Park(entity, message))

    async def test_an_entity_whose_id_cannot_be_stored(self, store: CosmosStore) -> None:
        with pytest.raises(InvalidMessage):
            await store.perform(LoadEntity(EntityRef(PLAIN, ("a/b",), "a/b")))

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    @pytest.mark.parametrize("others", [0, 1])
    async def test_outputs_that_the_service_finds_too_large(
        self, store: CosmosStore, entity: EntityRef, others: int
    ) -> None:
        many = tuple(Output(f"{number:036}", "receipts", Json("{}")) for number in range(30_000))
        large = a_staged(entity, outputs=many)
        with pytest.raises(OutputTooLarge):
            await store.perform(Stage(entity, (*(a_staged(entity) for _ in range(others)), large)))


class TestAConnection:
    async def test_a_wrong_key_is_a_configuration_error(self, emulator: RunningEmulator, entity: EntityRef) -> None:
        connection = CosmosConnection(emulator.endpoint, "any", key="d3Jvbmc=")
        with pytest.raises(ConfigurationError, match="account key"):
            await create(CosmosStore(connection, ENTITY_CONTAINERS), entity)
        await connection.close()

    async def test_a_missing_container_is_a_configuration_error_and_not_an_absent_entity(
        self, connection: CosmosConnection, entity: EntityRef
    ) -> None:
        store = CosmosStore(connection, [EntityContainer(PLAIN, "elsewhere", ("/id",))], "nowhere")
        with pytest.raises(ConfigurationError, match="container"):
            await store.perform(LoadEntity(entity))
        with pytest.raises(ConfigurationError, match="container"):
            await store.perform(FindPages(entity, (10_000,), (), 10, None))

    async def test_a_container_removed_later_is_a_configuration_error_too(
        self, connection: CosmosConnection, store: CosmosStore, entity: EntityRef
    ) -> None:
        await create(store, entity)
        await (await connection.client()).get_database_client(connection.database).delete_container(PLAIN)
        with pytest.raises(ConfigurationError, match="container"):
            await store.perform(LoadEntity(entity))

    async def test_an_account_that_cannot_be_reached_is_unknown(self, entity: EntityRef) -> None:
        connection = CosmosConnection("http://127.0.0.1:1/", "any", key="a2V5")
        store = CosmosStore(connection, ENTITY_CONTAINERS)
        assert await create(store, entity) is UNKNOWN
        await connection.close()

    async def test_a_process_has_one_client(self, connection: CosmosConnection) -> None:
        one, other = await asyncio.gather(connection.client(), connection.client())
        assert one is other

    async def test_a_connection_that_was_closed_opens_again(
        self, connection: CosmosConnection, store: CosmosStore, entity: EntityRef
    ) -> None:
        await create(store, entity)
        await connection.close()
        await connection.close()
        assert await total(store, entity) == 1


def _replies_lack(header: str, patch: pytest.MonkeyPatch) -> None:
    """From now on; the service has never been seen to leave one out."""

    def lacking(all_of_them: Any) -> Any:
        return lambda reply: {name: value for name, value in all_of_them(reply).items() if name.lower() != header}

    for shape in (CosmosDict, CosmosList):
        patch.setattr(shape, "get_response_headers", lacking(shape.get_response_headers))
