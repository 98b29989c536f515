"""Items: system properties, ids, patches, time to live, charges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import (
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from local_cosmos.inprocess import RunningEmulator
from local_cosmos_tests.raw import RawClient


async def ids(container: ContainerProxy) -> list[str]:
    return [item["id"] async for item in container.query_items("SELECT c.id FROM c", partition_key="p")]


async def test_system_properties_are_the_services_and_not_the_clients(container: ContainerProxy) -> None:
    item = await container.create_item({"id": "a", "pk": "p", "_etag": "mine", "_ts": 1, "_rid": "mine"})
    assert item["_ts"] == 1_800_000_000
    assert item["_etag"].startswith('"')
    assert item["_self"].startswith((await container.read())["_self"])
    assert item["_attachments"] == "attachments/"
    again = await container.upsert_item(dict(item))
    assert again["_rid"] == item["_rid"]


async def test_no_response_sends_no_body_but_the_etag(container: ContainerProxy) -> None:
    reply = await container.create_item({"id": "a", "pk": "p"}, no_response=True)
    assert dict(reply) == {}
    assert reply.get_response_headers()["etag"] == (await container.read_item("a", "p"))["_etag"]


@pytest.mark.parametrize("item_id", ["with space", "ümläut €", "a+b=c&d;e:f%20", "quote'\"s"])
async def test_any_allowed_id_can_be_read_back(container: ContainerProxy, item_id: str) -> None:
    await container.create_item({"id": item_id, "pk": "p"})
    assert (await container.read_item(item_id, "p"))["id"] == item_id
    await container.delete_item(item_id, "p")


async def test_numbers_keep_what_a_double_keeps(container: ContainerProxy) -> None:
    item = await container.create_item({"id": "a", "pk": "p", "big": 2**53 + 1, "small": 123456789012345})
    assert (item["big"], item["small"]) == (2**53, 123456789012345)
    query = "SELECT VALUE c.big FROM c WHERE c.big = 9007199254740993"
    found: AsyncIterator[Any] = container.query_items(query, partition_key="p")
    assert [big async for big in found] == [2**53]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/new", "value": 1}], {"n": 1, "list": [1, 2], "in": {"x": 1}, "new": 1}),
        ([{"op": "add", "path": "/list/1", "value": 9}], {"n": 1, "list": [1, 9, 2], "in": {"x": 1}}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {"n": 1, "list": [1, 2, 9], "in": {"x": 1}}),
        ([{"op": "set", "path": "/list/1", "value": 9}], {"n": 1, "list": [1, 9], "in": {"x": 1}}),
        ([{"op": "set", "path": "/in/y", "value": 9}], {"n": 1, "list": [1, 2], "in": {"x": 1, "y": 9}}),
        ([{"op": "replace", "path": "/n", "value": 9}], {"n": 9, "list": [1, 2], "in": {"x": 1}}),
        ([{"op": "remove", "path": "/list/0"}], {"n": 1, "list": [2], "in": {"x": 1}}),
        ([{"op": "incr", "path": "/in/x", "value": -3}], {"n": 1, "list": [1, 2], "in": {"x": -2}}),
        ([{"op": "incr", "path": "/in/z", "value": 2}], {"n": 1, "list": [1, 2], "in": {"x": 1, "z": 2}}),
        ([{"op": "move", "from": "/in/x", "path": "/moved"}], {"n": 1, "list": [1, 2], "in": {}, "moved": 1}),
    ],
)
async def test_a_patch_does_what_it_says(
    container: ContainerProxy, operations: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    await container.create_item({"id": "a", "pk": "p", "n": 1, "list": [1, 2], "in": {"x": 1}})
    patched = await container.patch_item("a", "p", operations)
    assert {name: value for name, value in patched.items() if not name.startswith("_")} == {
        "id": "a",
        "pk": "p",
        **expected,
    }


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [{"op": "set", "path": "/n", "value": 5}, {"op": "replace", "path": "/absent", "value": 1}],
        [{"op": "remove", "path": "/absent"}],
        [{"op": "set", "path": "/list/7", "value": 1}],
        [{"op": "set", "path": "/absent/deeper", "value": 1}],
        [{"op": "incr", "path": "/text", "value": 1}],
        [{"op": "incr", "path": "/n", "value": "1"}],
        [{"op": "move", "from": "/in", "path": "/in/deeper"}],
        [{"op": "swap", "path": "/n"}],
        [{"op": "set", "path": "n", "value": 1}],
        [{"op": "set", "path": "/id", "value": "b"}],
        [{"op": "set", "path": "/pk", "value": "q"}],
        [{"op": "incr", "path": "/n", "value": 1}] * 11,
    ],
)
async def test_a_patch_that_does_not_fit_is_refused_and_changes_nothing(
    container: ContainerProxy, operations: list[dict[str, Any]]
) -> None:
    item = await container.create_item({"id": "a", "pk": "p", "n": 1, "list": [1], "text": "t", "in": {}})
    with pytest.raises(CosmosHttpResponseError) as refused:
        await container.patch_item("a", "p", operations)
    assert refused.value.status_code == 400
    assert await container.read_item("a", "p") == item


async def test_replies_bear_the_time_of_the_account(emulator: RunningEmulator, container: ContainerProxy) -> None:
    emulator.advance_clock(86_400)
    item = await container.create_item({"id": "a", "pk": "p"})
    replied = parsedate_to_datetime(item.get_response_headers()["Date"]).timestamp()
    assert replied == pytest.approx(emulator.now(), abs=60)
    assert replied == pytest.approx(item["_ts"], abs=60)


async def test_an_item_is_gone_as_soon_as_its_time_is_over(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    await container.create_item({"id": "a", "pk": "p", "ttl": 10})
    await container.create_item({"id": "b", "pk": "p"})
    emulator.advance_clock(9)
    assert await ids(container) == ["a", "b"]
    emulator.advance_clock(1)
    assert await ids(container) == ["b"]
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read_item("a", "p")
    with pytest.raises(CosmosResourceNotFoundError):
        await container.replace_item("a", {"id": "a", "pk": "p"})
    await container.create_item({"id": "a", "pk": "p"})  # The id is free again.


async def test_every_write_begins_the_time_anew(emulator: RunningEmulator, container: ContainerProxy) -> None:
    await container.create_item({"id": "a", "pk": "p", "ttl": 10})
    emulator.advance_clock(9)
    await container.patch_item("a", "p", [{"op": "set", "path": "/n", "value": 1}])
    emulator.advance_clock(9)
    assert await ids(container) == ["a"]


@pytest.mark.parametrize(("default", "left"), [(10, ["never", "longer"]), (None, ["default", "never", "longer"])])
async def test_the_containers_time_to_live_counts_where_an_item_has_none_and_nothing_expires_without_it(
    emulator: RunningEmulator, database: DatabaseProxy, default: int | None, left: list[str]
) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), default_ttl=default)
    await container.create_item({"id": "default", "pk": "p"})
    await container.create_item({"id": "never", "pk": "p", "ttl": -1})
    await container.create_item({"id": "longer", "pk": "p", "ttl": 20 if default else 1})
    emulator.advance_clock(10)
    assert await ids(container) == left


@pytest.mark.parametrize(
    "document",
    [
        {},
        *({"id": item_id} for item_id in ("", 1, "a/b")),
        *({"id": "a", "ttl": ttl} for ttl in (0, -2, None, "1", 1.5)),
    ],
    ids=repr,
)
def test_an_invalid_id_or_time_to_live_is_refused(
    container: ContainerProxy, raw: RawClient, document: dict[str, Any]
) -> None:
    assert raw.send("POST", f"{container.container_link}/docs", {"pk": "p", **document}, key="p").status == 400


@pytest.mark.simplified(service="measured work; charges of deletes, patches and batches are not published")
async def test_charges_follow_the_published_prices_and_grow_with_size(container: ContainerProxy) -> None:
    def charge(answer: Any) -> float:
        return float(answer.get_response_headers()["x-ms-request-charge"])

    small = {"id": "a", "pk": "p", "text": "x" * 500}
    assert charge(await container.create_item(small)) == 5.5
    assert charge(await container.replace_item("a", small)) == 11.0
    assert charge(await container.read_item("a", "p")) == 1.0
    large = {"id": "b", "pk": "p", "text": "x" * 100 * 1024}
    assert charge(await container.create_item(large)) == pytest.approx(55, rel=0.05)
    assert charge(await container.read_item("b", "p")) == pytest.approx(10, rel=0.05)


async def test_a_replace_with_another_id_moves_the_item(container: ContainerProxy) -> None:
    created = await container.create_item({"id": "old", "pk": "p"})
    guard = {"etag": created["_etag"], "match_condition": MatchConditions.IfNotModified}
    moved = await container.replace_item("old", {"id": "new", "pk": "p"}, **guard)
    assert (moved["id"], moved["_rid"]) == ("new", created["_rid"])
    assert [item["id"] async for item in container.read_all_items()] == ["new"]
    assert [item["id"] async for item in container.query_items_change_feed(start_time="Beginning")] == ["new"]


async def test_a_replace_cannot_take_the_id_of_another_item(container: ContainerProxy) -> None:
    for item_id in ("a", "b"):
        await container.create_item({"id": item_id, "pk": "p"})
    with pytest.raises(CosmosResourceExistsError):
        await container.replace_item("a", {"id": "b", "pk": "p"})
    with pytest.raises(CosmosBatchOperationError) as refused:
        await container.execute_item_batch(
            [("replace", ("a", {"id": "c", "pk": "p"})), ("create", ({"id": "b", "pk": "p"},))], "p"
        )
    assert refused.value.error_index == 1
    assert sorted([item["id"] async for item in container.read_all_items()]) == ["a", "b"]


async def test_all_items_of_a_partition_key_are_deleted_at_once(
    emulator: RunningEmulator, database: DatabaseProxy, container: ContainerProxy
) -> None:
    for pk, item_id in (("a", "1"), ("a", "2"), ("b", "1")):
        await container.create_item({"id": item_id, "pk": pk})
    await container.delete_all_items_by_partition_key("a")
    assert [item["pk"] async for item in container.read_all_items()] == ["b"]
    await container.delete_all_items_by_partition_key("a")
    deletes = [write.id for write in emulator.history(database.id) if write.operation == "delete"]
    assert deletes == ["1", "2"]
