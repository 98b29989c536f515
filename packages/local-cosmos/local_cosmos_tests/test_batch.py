"""Transactional batch: all or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from local_cosmos.inprocess import RunningEmulator
from local_cosmos_tests.raw import BATCH, BULK, RawClient


def item(item_id: str, **properties: Any) -> dict[str, Any]:
    return {"id": item_id, "pk": "p", **properties}


async def ids(container: ContainerProxy) -> list[str]:
    return [found["id"] async for found in container.query_items("SELECT c.id FROM c", partition_key="p")]


async def test_all_operations_of_a_batch_are_applied_in_order(container: ContainerProxy) -> None:
    await container.create_item(item("old"))
    results = await container.execute_item_batch(
        [
            ("create", (item("new", n=1),)),
            ("upsert", (item("new", n=2),)),
            ("replace", ("new", item("new", n=3))),
            ("patch", ("new", [{"op": "incr", "path": "/n", "value": 1}])),
            ("read", ("new",)),
            ("delete", ("old",)),
        ],
        "p",
    )
    assert [result["statusCode"] for result in results] == [201, 200, 200, 200, 200, 204]
    assert results[4]["resourceBody"]["n"] == 4
    assert await ids(container) == ["new"]


@pytest.mark.parametrize(
    ("operations", "statuses"),
    [
        (
            [("create", (item("new"),)), ("upsert", (item("taken", n=2),)), ("create", (item("taken"),))],
            [424, 424, 409],
        ),
        ([("delete", ("absent",)), ("create", (item("new"),))], [404, 424]),
        ([("replace", ("taken", item("taken")), {"if_match_etag": "stale"}), ("create", (item("new"),))], [412, 424]),
        (
            [
                (
                    "patch",
                    ("taken", [{"op": "set", "path": "/n", "value": 5}]),
                    {"filter_predicate": "from c where c.n > 1"},
                )
            ],
            [412],
        ),
        ([("create", (item("new"),)), ("create", ({"id": "other", "pk": "q"},))], [424, 400]),
    ],
    ids=["its last operation", "its first operation", "an outdated etag", "a predicate", "another partition key"],
)
async def test_a_failing_batch_leaves_nothing_and_names_the_operation_that_failed(
    container: ContainerProxy, operations: list[Any], statuses: list[int]
) -> None:
    await container.create_item(item("taken", n=1))
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch(operations, "p")
    failed = next(status for status in statuses if status != 424)
    assert [response["statusCode"] for response in failure.value.operation_responses] == statuses
    assert (failure.value.error_index, failure.value.status_code) == (statuses.index(failed), failed)
    assert await ids(container) == ["taken"]
    assert (await container.read_item("taken", "p"))["n"] == 1


async def test_more_than_a_hundred_operations_are_refused(container: ContainerProxy) -> None:
    await container.execute_item_batch([("create", (item(str(n)),)) for n in range(100)], "p")
    with pytest.raises(CosmosHttpResponseError) as refused:
        await container.execute_item_batch([("upsert", (item(str(n)),)) for n in range(101)], "p")
    assert refused.value.status_code == 400


async def test_more_than_two_megabytes_are_refused_with_413(container: ContainerProxy, raw: RawClient) -> None:
    halves = [{"operationType": "Create", "resourceBody": item(name, text="x" * 1_200_000)} for name in ("a", "b")]
    reply = raw.send("POST", f"{container.container_link}/docs", halves, key="p", headers=BATCH)
    assert reply.status == 413
    assert await ids(container) == []


async def test_a_batch_costs_the_sum_of_its_parts(container: ContainerProxy) -> None:
    results = await container.execute_item_batch([("create", (item("a"),)), ("create", (item("b"),))], "p")
    charge = float(results.get_response_headers()["x-ms-request-charge"])
    assert charge == sum(result["requestCharge"] for result in results) == 11.0


async def test_a_bulk_request_performs_each_operation_by_itself(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    kept = await container.create_item(item("kept"))
    operations = [
        {"operationType": "Create", "partitionKey": '["p"]', "resourceBody": item("new")},
        {"operationType": "Create", "partitionKey": '["p"]', "resourceBody": item("kept")},
        {"operationType": "Delete", "partitionKey": '["p"]', "id": "kept", "ifMatch": '"stale"'},
        {"operationType": "Upsert", "partitionKey": '["q"]', "resourceBody": {"id": "other", "pk": "q"}},
        {"operationType": "Delete", "partitionKey": '["p"]', "id": "kept", "ifMatch": kept["_etag"]},
    ]
    reply = raw.send("POST", f"{container.container_link}/docs", operations, headers=BULK)
    assert (reply.status, reply.headers["x-ms-session-token"]) == (207, "0:-1#4")
    assert [entry["statusCode"] for entry in reply.body] == [201, 409, 412, 201, 204]
    assert await ids(container) == ["new"]
    writes = emulator.history(container.container_link.split("/")[1])
    assert [write.id for write in writes] == ["kept", "new", "other", "kept"]
    assert {write.batch for write in writes} == {None}


def test_a_bulk_request_for_a_range_that_is_gone_is_refused_with_410_1002(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    emulator.split(container.container_link.split("/")[1], "items", "0")
    operations = [{"operationType": "Create", "partitionKey": '["p"]', "resourceBody": item("new")}]
    reply = raw.send("POST", f"{container.container_link}/docs", operations, headers=BULK)
    assert (reply.status, reply.substatus) == (410, 1002)


async def test_the_writes_of_a_batch_share_a_number_in_the_history(
    emulator: RunningEmulator, container: ContainerProxy
) -> None:
    await container.execute_item_batch([("create", (item("a"),)), ("delete", ("a",))], "p")
    await container.create_item(item("b"))
    writes = emulator.history(container.container_link.split("/")[1])
    assert [(write.operation, write.id, write.batch is None) for write in writes] == [
        ("create", "a", False),
        ("delete", "a", False),
        ("create", "b", True),
    ]
    assert writes[0].batch == writes[1].batch
