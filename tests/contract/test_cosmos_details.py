"""What the contract of stores leaves open: tokens, costs, and what the store in Cosmos DB refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from azure.cosmos import CosmosDict, CosmosList

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged, FindPages, LoadParked, LoadStaged, Park, Stage, Written
from exactlyonce.errors import ConfigurationError, DamagedDocument, InvalidMessage, MalformedMessage, OutputTooLarge
from exactlyonce.records.ledger import Ledger, Mark, entity_document, read_entity
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
from exactlyonce.testing.contracts.samples import PLAIN, a_parked, a_staged, park, parked, staged_now
from exactlyonce.values.envelope import EntityRef, message_key
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.session_tokens import at_or_after
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from tests.contract.conftest import ENTITY_CONTAINERS, Place
from tests.contract.cosmos_requests import REQUESTS, WRITES, create, total
from tests.contract.cosmos_requests import replace as replace_entity


class TestReplicasThatAreBehind:
    @pytest.fixture(autouse=True)
    def _behind(self, emulator: RunningEmulator, connection: CosmosConnection) -> None:
        emulator.set_lag(connection.database, lag=Lag(writes=1000))

    async def test_a_read_with_a_token_is_behind_and_never_absent(self, at: Place) -> None:
        """Elsewhere, where nothing but the given token shows it."""
        saved = await create(at.store, at.entity)
        staged = await at.perform(Stage(at.entity, (a_staged(at.entity, tx="5f"),)))
        assert isinstance(staged, Written)
        assert await at.elsewhere().perform(LoadEntity(at.entity, saved.token)) is BEHIND
        for transactions in (("5f",), ("5f", "9a")):
            assert await at.elsewhere().perform(LoadStaged(at.entity, transactions, staged.token)) is BEHIND
        token = await park(at.store, at.entity, a_parked(at.entity, "web/1"))
        assert await at.elsewhere().perform(LoadParked(at.entity, "web/1", token)) is BEHIND

    async def test_tokens_of_batches_and_of_conflicts_count_like_any_other(self, at: Place) -> None:
        staged = (a_staged(at.entity), a_staged(at.entity))
        for again in (staged, staged[:1]):
            await at.perform(Stage(at.entity, again))
            conflict = await at.perform(Stage(at.entity, again))
            assert isinstance(conflict, Conflict)
            assert await at.elsewhere().perform(LoadStaged(at.entity, (staged[0].tx,), conflict.token)) is BEHIND

    async def test_another_process_may_see_an_earlier_version(self, at: Place) -> None:
        await create(at.store, at.entity)
        assert await total(at.elsewhere(), at.entity) is None


class TestTokens:
    async def test_every_view_says_where_it_is(self, at: Place) -> None:
        saved = await create(at.store, at.entity)
        loaded = await at.perform(LoadEntity(at.entity))
        assert isinstance(loaded, Loaded)
        assert at_or_after(loaded.token, saved.token)

    async def test_an_absence_says_where_it_was_seen(self, at: Place) -> None:
        loaded = await at.perform(LoadEntity(at.entity))
        assert isinstance(loaded, Loaded)
        assert loaded.token is not None


class TestCosts:
    @pytest.mark.parametrize("name", list(REQUESTS))
    async def test_every_effect_is_one_request(self, at: Place, name: str) -> None:
        await at.perform(Stage(at.entity, (a_staged(at.entity, tx="5f"), a_staged(at.entity, tx="9a"))))
        before = at.emulator.last_request()
        await at.ask(name)
        assert len(at.emulator.requests(before)) == 1

    async def test_more_deletions_than_a_batch_holds_are_several_requests(self, at: Place) -> None:
        staged = tuple(a_staged(at.entity) for _ in range(150))
        await at.perform(Stage(at.entity, staged))
        before = at.emulator.last_request()
        await at.perform(DeleteStaged(at.entity, tuple(item.tx for item in staged)))
        assert [request.operation for request in at.emulator.requests(before)] == ["batch"] * 2
        assert await staged_now(at.store, at.entity, *(item.tx for item in staged)) == ()


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
        self, at: Place, effect: Callable[[EntityRef], Effect[Any]]
    ) -> None:
        await at.perform(Stage(at.entity, (a_staged(at.entity, tx="77"),)))
        await park(at.store, at.entity, a_parked(at.entity, "web/7"))
        container = await at.connection.container(LIBRARY_CONTAINER)
        ids = {staged_id("77"): staged_id("5f"), parked_id("web/7"): parked_id("web/1")}
        for id, another in ids.items():
            await container.create_item({**await container.read_item(id, at.entity.key), "id": another})
        with pytest.raises(DamagedDocument, match="does not match its id"):
            await at.perform(effect(at.entity))

    async def test_a_reply_without_a_date_has_no_age(self, at: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        await park(at.store, at.entity, a_parked(at.entity, "web/1"))
        read = CosmosPartition.read

        async def dateless(self: CosmosPartition, id: str, token: str | None) -> object:
            found = await read(self, id, token)
            assert isinstance(found, Document)
            return Document(found.properties, found.token, None)

        monkeypatch.setattr(CosmosPartition, "read", dateless)
        assert await at.perform(LoadParked(at.entity, "web/1")) is UNKNOWN

    @pytest.mark.parametrize("seen", [False, True])
    async def test_a_save_whose_reply_has_no_etag_is_unknown(
        self, at: Place, monkeypatch: pytest.MonkeyPatch, seen: bool
    ) -> None:
        """The next save would rely on it."""
        etag = (await create(at.store, at.entity)).etag if seen else None
        _replies_lack("etag", monkeypatch)
        assert (
            await (create(at.store, at.entity) if etag is None else replace_entity(at.store, at.entity, etag))
            is UNKNOWN
        )

    @pytest.mark.parametrize("name", [name for name in WRITES if not name.startswith("save")])
    async def test_a_write_to_the_librarys_container_whose_reply_has_no_token_is_unknown(
        self, at: Place, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """A commit would rely on it."""
        _replies_lack(SESSION_TOKEN, monkeypatch)
        assert await at.ask(name) is UNKNOWN

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    async def test_a_message_that_is_too_large_to_be_parked(self, at: Place) -> None:
        message = replace(a_parked(at.entity, "web/1"), envelope=Json.of(['"' * 1_000_000]))
        with pytest.raises(MalformedMessage, match="poison queue"):
            await at.perform(Park(at.entity, message))

    async def test_an_entity_whose_id_cannot_be_stored(self, store: CosmosStore) -> None:
        with pytest.raises(InvalidMessage):
            await store.perform(LoadEntity(EntityRef(PLAIN, ("a/b",), "a/b")))

    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    @pytest.mark.parametrize("others", [0, 1])
    async def test_outputs_that_the_service_finds_too_large(self, at: Place, others: int) -> None:
        many = tuple(Output(f"{number:036}", "receipts", Json("{}")) for number in range(30_000))
        large = a_staged(at.entity, outputs=many)
        with pytest.raises(OutputTooLarge):
            await at.perform(Stage(at.entity, (*(a_staged(at.entity) for _ in range(others)), large)))


class TestAConnection:
    async def test_a_wrong_key_is_a_configuration_error(self, at: Place) -> None:
        connection = CosmosConnection(at.emulator.endpoint, "any", key="d3Jvbmc=")
        with pytest.raises(ConfigurationError, match="account key"):
            await create(CosmosStore(connection, ENTITY_CONTAINERS), at.entity)
        await connection.close()

    async def test_a_missing_container_is_a_configuration_error_and_not_an_absent_entity(self, at: Place) -> None:
        store = CosmosStore(at.connection, [EntityContainer(PLAIN, "elsewhere", ("/id",))], "nowhere")
        with pytest.raises(ConfigurationError, match="container"):
            await store.perform(LoadEntity(at.entity))
        with pytest.raises(ConfigurationError, match="container"):
            await store.perform(FindPages(at.entity, (10_000,), (), 10, None))

    async def test_a_container_removed_later_is_a_configuration_error_too(self, at: Place) -> None:
        await create(at.store, at.entity)
        await (await at.connection.client()).get_database_client(at.connection.database).delete_container(PLAIN)
        with pytest.raises(ConfigurationError, match="container"):
            await at.perform(LoadEntity(at.entity))

    async def test_an_account_that_cannot_be_reached_is_unknown(self, entity: EntityRef) -> None:
        connection = CosmosConnection("http://127.0.0.1:1/", "any", key="a2V5")
        store = CosmosStore(connection, ENTITY_CONTAINERS)
        assert await create(store, entity) is UNKNOWN
        await connection.close()

    async def test_a_process_has_one_client(self, connection: CosmosConnection) -> None:
        one, other = await asyncio.gather(connection.client(), connection.client())
        assert one is other

    async def test_a_connection_that_was_closed_opens_again(self, at: Place) -> None:
        await create(at.store, at.entity)
        await at.connection.close()
        await at.connection.close()
        assert await total(at.store, at.entity) == 1


def _replies_lack(header: str, patch: pytest.MonkeyPatch) -> None:
    """From now on; the service has never been seen to leave one out."""

    def lacking(all_of_them: Any) -> Any:
        return lambda reply: {name: value for name, value in all_of_them(reply).items() if name.lower() != header}

    for shape in (CosmosDict, CosmosList):
        patch.setattr(shape, "get_response_headers", lacking(shape.get_response_headers))


LONG = ("中" * 255, "🙂" * 250, "\u0627" * 170 + "x" * 80, "%" * 255, "x" * 255)


@pytest.mark.parametrize("id", LONG, ids=ascii)
async def test_a_long_identity_comes_back_in_all_documents(store: CosmosStore, id: str) -> None:
    entity = EntityRef(PLAIN, (id,), id)
    key = message_key(entity.source, "m-1")
    mark = Mark(1_795_700_000_000, "A" * 16, "i", True, "c0de").text
    ledger = Ledger(version=1, type=PLAIN, entity=entity.key, marks=mark)
    saved = await store.perform(SaveEntity(entity, entity_document(Json.of({"id": id}), ledger), None))
    assert isinstance(saved, Saved)
    loaded = await store.perform(LoadEntity(entity, saved.token))
    assert isinstance(loaded, Loaded)
    assert read_entity(entity, loaded.document).ledger == ledger
    written = await store.perform(Park(entity, a_parked(entity, key)))
    assert isinstance(written, Written)
    assert (await parked(store, entity, key, written.token)).message == a_parked(entity, key)
    assert (await parked(store, entity, f"{key}x", written.token)).message is None
