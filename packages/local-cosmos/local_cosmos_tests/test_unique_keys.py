"""Unique keys: what no two items of one logical partition may have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError, CosmosResourceExistsError

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.storage import memory
from local_cosmos.storage.sqlite import SqliteKeeper
from local_cosmos_tests.accounts import LocalAccount
from local_cosmos_tests.raw import BULK, KEY, RawClient


@pytest.fixture(autouse=True, params=[False, True], ids=["by scan", "by index"])
def manner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether few items are looked at one by one, or found by an index."""
    if request.param:
        monkeypatch.setattr(memory, "FEW", 0)
        monkeypatch.setattr(memory, "_SPARED", 1)


def policy(*keys: list[str]) -> dict[str, Any]:
    return {"uniqueKeys": [{"paths": paths} for paths in keys]}


async def with_keys(database: DatabaseProxy, *keys: list[str], name: str = "people") -> ContainerProxy:
    """A container whose items are unique by these keys."""
    return await database.create_container(name, PartitionKey("/pk"), unique_key_policy=policy(*keys), default_ttl=-1)


@pytest.fixture
async def people(database: DatabaseProxy) -> ContainerProxy:
    """One person, by email, and no other of the same address."""
    container = await with_keys(database, ["/email"])
    await container.create_item(person("a", "a@x"))
    await container.create_item(person("b", "b@x"))
    return container


def person(item_id: str, email: str, pk: str = "p", **properties: Any) -> dict[str, Any]:
    return {"id": item_id, "pk": pk, "email": email, **properties}


async def emails(container: ContainerProxy) -> dict[str, Any]:
    rows = container.query_items("SELECT c.id, c.email FROM c", partition_key="p")
    return {row["id"]: row.get("email") async for row in rows}


async def replace_guarded(container: ContainerProxy, etag: str) -> Any:
    return await container.replace_item(
        "b", person("b", "a@x"), etag=etag, match_condition=MatchConditions.IfNotModified
    )


WRITES: dict[str, Callable[[ContainerProxy, str], Awaitable[Any]]] = {
    "create": lambda container, _: container.create_item(person("c", "a@x")),
    "upsert that creates": lambda container, _: container.upsert_item(person("c", "a@x")),
    "upsert that replaces": lambda container, _: container.upsert_item(person("b", "a@x")),
    "replace": lambda container, _: container.replace_item("b", person("b", "a@x")),
    "replace with the current etag": replace_guarded,
    "patch": lambda container, _: container.patch_item("b", "p", [{"op": "set", "path": "/email", "value": "a@x"}]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_that_takes_what_another_item_has_is_refused_with_409_and_changes_nothing(
    people: ContainerProxy, write: Callable[[ContainerProxy, str], Awaitable[Any]]
) -> None:
    before = await people.read_item("b", "p")
    with pytest.raises(CosmosResourceExistsError, match="Unique index constraint violation"):
        await write(people, before["_etag"])
    assert await emails(people) == {"a": "a@x", "b": "b@x"}
    assert (await people.read_item("b", "p"))["_etag"] == before["_etag"]


async def test_a_refusal_carries_a_session_token(people: ContainerProxy) -> None:
    with pytest.raises(CosmosResourceExistsError) as refused:
        await people.create_item(person("c", "a@x"))
    assert refused.value.headers["x-ms-session-token"] == "0:-1#2"


@pytest.mark.simplified(service="undocumented")
async def test_an_outdated_etag_is_reported_before_a_key_that_is_taken(people: ContainerProxy) -> None:
    with pytest.raises(CosmosHttpResponseError) as refused:
        await replace_guarded(people, '"stale"')
    assert refused.value.status_code == 412


async def test_an_item_may_keep_its_own_key_and_leave_it_for_another(people: ContainerProxy) -> None:
    await people.replace_item("a", person("a", "a@x", more=1))
    await people.upsert_item(person("a", "new@x"))
    await people.create_item(person("c", "a@x"))
    await people.delete_item("b", "p")
    await people.create_item(person("d", "b@x"))
    assert await emails(people) == {"a": "new@x", "c": "a@x", "d": "b@x"}


async def test_a_key_is_for_one_logical_partition(people: ContainerProxy) -> None:
    await people.create_item(person("a", "a@x", pk="q"))
    assert (await people.read_item("a", "q"))["email"] == "a@x"


async def test_what_is_missing_counts_as_null_and_null_is_a_value_like_any_other(database: DatabaseProxy) -> None:
    container = await with_keys(database, ["/name/last"])
    await container.create_item({"id": "a", "pk": "p"})
    for name in (None, "text", {}, {"last": None}, {"Last": "Ash"}):
        with pytest.raises(CosmosResourceExistsError):
            await container.create_item({"id": "b", "pk": "p", "name": name})
    await container.create_item({"id": "b", "pk": "p", "name": {"last": "Ash"}})
    await container.create_item({"id": "c", "pk": "p", "name": {"last": "ash"}})


async def test_numbers_are_one_value_however_they_are_written_and_no_other_kind_equals_them(
    database: DatabaseProxy,
) -> None:
    container = await with_keys(database, ["/n"])
    for number, value in enumerate([1, "1", True, None, 1.5, "", False, 0]):
        await container.create_item({"id": str(number), "pk": "p", "n": value})
    with pytest.raises(CosmosResourceExistsError):
        await container.create_item({"id": "more", "pk": "p", "n": 1.0})


async def test_a_key_of_several_paths_is_taken_by_all_of_them_together(database: DatabaseProxy) -> None:
    container = await with_keys(database, ["/first", "/last"], ["/email"])
    await container.create_item({"id": "a", "pk": "p", "first": "Ann", "last": "Ash", "email": 1})
    await container.create_item({"id": "b", "pk": "p", "first": "Ann", "last": "Oak", "email": 2})
    await container.create_item({"id": "c", "pk": "p", "first": "Ann", "email": 3})
    for taken in ({"first": "Ann", "last": "Oak"}, {"first": "Ann"}, {"first": "Bob", "email": 2}):
        with pytest.raises(CosmosResourceExistsError):
            await container.create_item({"id": "d", "pk": "p", "email": 4, **taken})


@pytest.mark.parametrize("where", ["its last operation", "its first operation", "itself"])
async def test_a_batch_is_refused_with_409_of_the_operation_that_takes_what_is_taken(
    people: ContainerProxy, where: str
) -> None:
    operations: dict[str, tuple[list[Any], list[int]]] = {
        "its last operation": ([("upsert", (person("c", "c@x"),)), ("create", (person("d", "a@x"),))], [424, 409]),
        "its first operation": ([("replace", ("b", person("b", "a@x"))), ("delete", ("a",))], [409, 424]),
        "itself": ([("create", (person("c", "c@x"),)), ("create", (person("d", "c@x"),))], [424, 409]),
    }
    sent, statuses = operations[where]
    with pytest.raises(CosmosBatchOperationError) as refused:
        await people.execute_item_batch(sent, "p")
    assert [response["statusCode"] for response in refused.value.operation_responses] == statuses
    assert await emails(people) == {"a": "a@x", "b": "b@x"}


async def test_a_batch_may_take_what_it_has_set_free(people: ContainerProxy) -> None:
    await people.execute_item_batch([("delete", ("a",)), ("replace", ("b", person("b", "a@x")))], "p")
    assert await emails(people) == {"b": "a@x"}


async def test_a_bulk_request_is_refused_what_is_taken_and_nothing_else(people: ContainerProxy, raw: RawClient) -> None:
    operations = [
        {"operationType": "Create", "partitionKey": '["p"]', "resourceBody": person("c", "a@x")},
        {"operationType": "Create", "partitionKey": '["p"]', "resourceBody": person("d", "d@x")},
        {"operationType": "Upsert", "partitionKey": '["p"]', "resourceBody": person("e", "d@x")},
    ]
    reply = raw.send("POST", f"{people.container_link}/docs", operations, headers=BULK)
    assert [entry["statusCode"] for entry in reply.body] == [409, 201, 409]


@pytest.mark.simplified(service="undocumented")
async def test_what_has_expired_holds_its_key_no_longer(people: ContainerProxy, emulator: RunningEmulator) -> None:
    await people.upsert_item(person("a", "a@x", ttl=5))
    emulator.advance_clock(5)
    await people.create_item(person("c", "a@x"))


async def test_a_container_shows_its_keys_and_they_never_change(database: DatabaseProxy, raw: RawClient) -> None:
    container = await with_keys(database, ["/email"])
    properties = await container.read()
    assert properties["uniqueKeyPolicy"] == policy(["/email"])
    with pytest.raises(CosmosHttpResponseError, match="unique index"):  # The SDK leaves them out.
        await database.replace_container(container, PartitionKey("/pk"), default_ttl=60)
    definition = {"id": "people", "partitionKey": KEY, "defaultTtl": 60}
    for other in ({}, {"uniqueKeyPolicy": policy(["/name"])}, {"uniqueKeyPolicy": policy(["/email"], ["/name"])}):
        reply = raw.send("PUT", container.container_link, definition | other)
        assert reply.status == 403
        assert "unique index cannot be modified" in reply.body["message"]
    kept = raw.send("PUT", container.container_link, definition | {"uniqueKeyPolicy": policy(["/email"])})
    assert (kept.status, kept.body["defaultTtl"], kept.body["uniqueKeyPolicy"]) == (200, 60, policy(["/email"]))
    plain = await database.create_container("plain", PartitionKey("/pk"))
    added = definition | {"id": "plain", "uniqueKeyPolicy": policy(["/email"])}
    assert raw.send("PUT", plain.container_link, added).status == 403


@pytest.mark.parametrize(
    "refused",
    [
        "text",
        [],
        {"uniqueKeys": {}},
        {"uniqueKeys": ["/email"]},
        policy([]),
        {"uniqueKeys": [{"paths": "/email"}]},
        policy(["email"]),
        policy(["/"]),
        policy(["/users/*"]),
        policy(["/users/[]/name"]),
        policy(*([f"/{number}"] for number in range(11))),
        policy([f"/{number}" for number in range(9)], [f"/{number}" for number in range(8)]),
        policy(["/" + "x" * 30, "/" + "y" * 30]),
        policy(["/a", "/a"]),
    ],
    ids=repr,
)
async def test_keys_that_cannot_be_are_refused_with_the_container(
    database: DatabaseProxy, raw: RawClient, refused: Any
) -> None:
    definition = {"id": "people", "partitionKey": KEY, "uniqueKeyPolicy": refused}
    reply = raw.send("POST", f"dbs/{database.id}/colls", definition)
    assert reply.status == 400
    assert "unique" in reply.body["message"]


@pytest.mark.parametrize("none", [None, {}, {"uniqueKeys": []}, {"uniqueKeys": None}], ids=repr)
async def test_a_policy_without_keys_is_none(database: DatabaseProxy, raw: RawClient, none: Any) -> None:
    definition = {"id": "people", "partitionKey": KEY, "uniqueKeyPolicy": none}
    assert raw.send("POST", f"dbs/{database.id}/colls", definition).status == 201


@pytest.mark.simplified(service="undocumented")
@pytest.mark.parametrize("name", [["Ash"], {"first": "Ann"}, {"last": ["Ash"]}, {"last": {}}], ids=repr)
async def test_values_of_which_nobody_says_what_they_equal_are_refused_with_400(
    database: DatabaseProxy, name: Any
) -> None:
    container = await with_keys(database, ["/name/last"], ["/name"])
    with pytest.raises(CosmosHttpResponseError, match="unique") as refused:
        await container.create_item({"id": "a", "pk": "p", "name": name})
    assert refused.value.status_code == 400


def test_keys_outlive_the_process(tmp_path: Any) -> None:
    for expected in (201, 409):
        keeper = SqliteKeeper(tmp_path)
        account = LocalAccount(keeper=keeper, uniqueKeyPolicy=policy(["/n"]))
        assert account.ask("create", {"id": str(expected), "pk": "p", "n": 1}, "p").status == expected
        keeper.close()
