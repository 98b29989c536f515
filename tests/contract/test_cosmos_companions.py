"""Companions in Cosmos DB: what the contract of stores leaves open, and what goes wrong on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from azure.cosmos.aio import ContainerProxy

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved
from exactlyonce.errors import ConfigurationError, EntityTooLarge
from exactlyonce.records.companions import id_of
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    PLAIN,
    a_colocated,
    an_entry,
    companions_now,
    companions_of,
    entity_document,
    owned_entity,
    together,
    unique,
)
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.session_tokens import at_or_after
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from tests.contract.conftest import Place, partition_key
from tests.contract.cosmos_requests import REQUESTS, save_batch

LARGE_BODIES = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


class TestALostReply:
    @pytest.mark.parametrize("action", ["close", "reset"])
    @pytest.mark.parametrize("created", [0, 2])
    @pytest.mark.parametrize("known", [False, True])
    async def test_a_batch_conflicts_with_itself_and_has_happened(
        self, at: Place, action: Literal["close", "reset"], created: int, known: bool
    ) -> None:
        entity = owned_entity()
        etag = (await together(at.store, entity, total=1)).etag if known else None
        entries = tuple(an_entry(entity, number) for number in range(created))
        document = entity_document(entity, total=2)
        at.fault(action=action, when="after", times=1)
        reply = await at.perform(SaveBatch(entity, document, etag, entries))
        assert isinstance(reply, Conflict)
        assert await as_saved(at.store, entity, reply) == (document, entries)

    async def test_after_a_503_it_conflicts_with_itself(self, at: Place) -> None:
        at.fault(action="status", when="after", status=503, times=1)
        assert isinstance(await save_batch(at.store, at.entity), Conflict)

    async def test_if_every_reply_is_lost_it_is_unknown_and_has_happened_once(self, at: Place) -> None:
        at.fault(action="close", when="after")
        assert await save_batch(at.store, at.entity, 2) is UNKNOWN
        assert [write.operation for write in at.emulator.history(at.connection.database)] == ["create"] * 3

    async def test_writing_over_companions_again_changes_nothing(self, at: Place) -> None:
        entity = owned_entity()
        ids, read = await three_entries(at.store, entity)
        new = tuple((replace(entry, digest="new"), etag) for entry, etag in read)
        before = len(at.emulator.history(at.connection.database))
        at.fault(action="close", when="after", times=1)
        await at.perform(ReplaceCompanions(entity, new))
        assert len(at.emulator.history(at.connection.database)) == before + len(new)
        assert await companions_now(at.store, entity, *ids) == tuple(entry for entry, _ in new)


class TestReplicasThatAreBehind:
    @pytest.fixture(autouse=True)
    def _behind(self, emulator: RunningEmulator, connection: CosmosConnection) -> None:
        emulator.set_lag(connection.database, lag=Lag(writes=1000))

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_companions_read_with_a_token_are_behind_and_never_absent(self, at: Place, type: str) -> None:
        """Elsewhere, where nothing but the given token shows it."""
        entity = owned_entity(type=type)
        entry = an_entry(entity, 1)
        saved = await together(at.store, entity, entry)
        conflict = await at.perform(SaveBatch(entity, entity_document(entity), None))
        assert isinstance(conflict, Conflict)
        for token in (saved.token, conflict.token):
            for ids in ((id_of(entity, entry),), (id_of(entity, entry), "other")):
                assert await at.elsewhere().perform(LoadCompanions(entity, ids, token)) is BEHIND
            assert await at.elsewhere().perform(FindEntries(entity, ((1, 1),), token)) is BEHIND
            assert await at.elsewhere().perform(FindNumbered(entity, "c1", (1, 9), token)) is BEHIND
            assert await at.elsewhere().perform(LoadEntity(entity, token)) is BEHIND

    async def test_another_process_may_see_nothing_yet(self, at: Place) -> None:
        entity = owned_entity()
        record, entry = a_colocated(entity, "web/1", owes=True), an_entry(entity, 1)
        await together(at.store, entity, record, entry)
        assert await companions_of(at.elsewhere(), entity, id_of(entity, record)) == ()
        assert await at.elsewhere().perform(FindEntries(entity, ((1, 1),), None)) == FoundCompanions(())
        assert await at.elsewhere().perform(FindNumbered(entity, "c1", (1, 9))) == FoundNumbered(())
        assert await at.elsewhere().perform(FindOwing(entity)) == FoundCompanions(())
        assert await at.elsewhere().perform(HasCompanions(entity)) is False


class TestTheReplyToASave:
    async def test_the_token_of_a_save_covers_the_save(self, store: CosmosStore) -> None:
        entity = owned_entity()
        saved = await together(store, entity, an_entry(entity, 1))
        loaded = await store.perform(LoadEntity(entity))
        assert isinstance(loaded, Loaded)
        assert at_or_after(saved.token, loaded.token)
        assert at_or_after(loaded.token, saved.token)

    async def test_without_the_etag_of_the_entity_it_is_unknown(
        self, at: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        execute = ContainerProxy.execute_item_batch

        async def without_etag(*args: Any, **options: Any) -> Any:
            results = await execute(*args, **options)
            del results[0]["eTag"]
            return results

        monkeypatch.setattr(ContainerProxy, "execute_item_batch", without_etag)
        assert await save_batch(at.store, at.entity) is UNKNOWN

    @LARGE_BODIES
    @pytest.mark.parametrize("others", [0, 1])
    async def test_a_save_that_the_service_finds_too_large_is_refused(self, store: CosmosStore, others: int) -> None:
        entity = owned_entity()
        entries = tuple(an_entry(entity, number) for number in range(others))
        with pytest.raises(EntityTooLarge, match="saved together"):
            await together(store, entity, *entries, text="x" * 2_100_000)


class TestCosts:
    @pytest.mark.parametrize("deletes", [False, True])
    async def test_unchanged_companions_are_replaced_or_deleted_by_one_request(self, at: Place, deletes: bool) -> None:
        entity = owned_entity()
        _, read = await three_entries(at.store, entity)
        before = at.emulator.last_request()
        named = tuple((id_of(entity, item), etag) for item, etag in read)
        await at.perform(DeleteCompanions(entity, named) if deletes else ReplaceCompanions(entity, read))
        assert [request.operation for request in at.emulator.requests(before)] == ["batch"]

    @LARGE_BODIES
    async def test_more_than_a_batch_holds_is_written_over_by_several_requests(self, at: Place) -> None:
        entity = owned_entity()
        old = [an_entry(entity, number) for number in range(3)]
        await together(at.store, entity, *old)
        new = tuple(an_entry(entity, 1, item.message, padding="x" * 800_000) for item in old)
        before = at.emulator.last_request()
        await at.perform(ReplaceCompanions(entity, tuple((item, None) for item in new)))
        assert [request.operation for request in at.emulator.requests(before)] == ["batch", "replace"]
        assert await companions_now(at.store, entity, *(id_of(entity, item) for item in new)) == new


PLACES: dict[str, tuple[tuple[str, ...], tuple[PartitionValue, ...], dict[str, Any]]] = {
    "plain": (("/owner",), ("a",), {"owner": "a"}),
    "nested": (("/owner/team/id",), (7,), {"owner": {"team": {"id": 7}}}),
    "hierarchical": (("/tenant", "/zone"), ("a", True), {"tenant": "a", "zone": True}),
    "nested in one": (("/place/x", "/place/y", "/z"), ("a", 2, 3.5), {"place": {"x": "a", "y": 2}, "z": 3.5}),
    "named as in Python only": (("/kind",), ("a",), {"kind": "a"}),
}


class TestPartitionKeys:
    @pytest.mark.parametrize("place", PLACES)
    async def test_companions_lie_in_the_partition_of_their_entity(self, at: Place, place: str) -> None:
        paths, values, properties = PLACES[place]
        database = (await at.connection.client()).get_database_client(at.connection.database)
        await database.create_container("here", partition_key=partition_key(paths))
        store = CosmosStore(at.connection, [EntityContainer("any", "here", paths)])
        entity = EntityRef("any", values, unique())
        document = entity_document(EntityRef(PLAIN, (entity.id,), entity.id), **properties)
        record, entry = a_colocated(entity, "web/1", owes=True), an_entry(entity, 1)
        saved = await store.perform(SaveBatch(entity, document, None, (record, entry)))
        assert isinstance(saved, Saved)
        ((settled, etag),) = await companions_of(store, entity, id_of(entity, record), token=saved.token)
        assert settled == record
        await store.perform(ReplaceCompanions(entity, ((record, etag),)))
        assert len(await companions_of(store, entity, id_of(entity, record), id_of(entity, entry))) == 2
        stored = await (await at.connection.container("here")).read_item(
            id_of(entity, entry), values[0] if len(values) == 1 else list(values)
        )
        assert {name: stored[name] for name in properties} == properties

    @pytest.mark.parametrize("name", [name for name in REQUESTS if "companions" in name or "batch" in name])
    async def test_an_entity_that_is_alone_in_its_partition_cannot_have_any(self, at: Place, name: str) -> None:
        """Reported at the first request, if nobody has verified it."""
        store = CosmosStore(at.connection, [EntityContainer(OWNED, PLAIN, ("/id",))])
        with pytest.raises(ConfigurationError, match=r"'/id'.*Use a container with another path"):
            await REQUESTS[name](store, at.entity)

    @pytest.mark.parametrize("path", ["/entity", "/message/key", "/order", "/order/number", "/_kind"])
    async def test_a_path_to_a_property_of_companions_is_refused(self, at: Place, path: str) -> None:
        store = CosmosStore(at.connection, [EntityContainer(OWNED, PLAIN, ("/tenant", path))])
        with pytest.raises(ConfigurationError, match=f"{path!r}.*of their own"):
            await save_batch(store, at.entity)


async def as_saved(store: CosmosStore, entity: EntityRef, reply: Conflict) -> tuple[Any, Any]:
    """The entity document and the entries, in their order, as a view at the token of a conflict has them."""
    loaded = await store.perform(LoadEntity(entity, reply.token))
    found = await store.perform(FindEntries(entity, ((0, 99),), reply.token))
    assert isinstance(loaded, Loaded)
    assert isinstance(found, FoundCompanions)
    return loaded.document, tuple(entry for entry, _ in found.companions)


async def three_entries(store: CosmosStore, entity: EntityRef) -> tuple[tuple[str, ...], Any]:
    """Save an entity together with three entries; their ids, and the entries with their ETags."""
    entries = tuple(an_entry(entity, number) for number in range(3))
    saved = await together(store, entity, *entries)
    ids = tuple(id_of(entity, entry) for entry in entries)
    return ids, await companions_of(store, entity, *ids, token=saved.token)
