"""Transactional batch: all or nothing."""

from __future__ import annotations

import asyncio
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


async def test_a_failing_last_operation_leaves_nothing_of_the_batch(container: ContainerProxy) -> None:
    await container.create_item(item("taken", n=1))
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch(
            [("create", (item("new"),)), ("upsert", (item("taken", n=2),)), ("create", (item("taken"),))], "p"
        )
    statuses = [response["statusCode"] for response in failure.value.operation_responses]
    assert (statuses, failure.value.error_index, failure.value.status_code) == ([424, 424, 409], 2, 409)
    assert await ids(container) == ["taken"]
    assert (await container.read_item("taken", "p"))["n"] == 1


async def test_a_failing_first_operation_is_the_only_one_with_a_status_of_its_own(
    container: ContainerProxy, raw: RawClient
) -> None:
    operations = [{"operationType": "Delete", "id": "absent"}, {"operationType": "Create", "resourceBody": item("a")}]
    reply = raw.send("POST", f"{container.container_link}/docs", operations, key="p", headers=BATCH)
    assert reply.status == 207
    assert [entry["statusCode"] for entry in reply.body] == [404, 424]


async def test_if_match_counts_inside_a_batch(container: ContainerProxy) -> None:
    guard = await container.create_item(item("guard"))
    etag = guard["_etag"]

    async def execute() -> None:
        # The SDK takes the condition out of the caller's dict: a batch that is sent twice must be built twice.
        await container.execute_item_batch(
            [("replace", ("guard", item("guard")), {"if_match_etag": etag}), ("create", (item("message"),))], "p"
        )

    await execute()
    with pytest.raises(CosmosBatchOperationError) as failure:
        await execute()
    assert [response["statusCode"] for response in failure.value.operation_responses] == [412, 424]


async def test_of_sixteen_batches_with_one_etag_exactly_one_wins(container: ContainerProxy) -> None:
    guard = await container.create_item(item("guard"))
    batches = (
        container.execute_item_batch(
            [
                ("create", (item(f"message-{writer}"),)),
                ("replace", ("guard", item("guard", by=writer)), {"if_match_etag": guard["_etag"]}),
            ],
            "p",
        )
        for writer in range(16)
    )
    results = await asyncio.gather(*batches, return_exceptions=True)
    assert sum(isinstance(result, CosmosBatchOperationError) for result in results) == 15
    winner = (await container.read_item("guard", "p"))["by"]
    assert sorted(await ids(container)) == ["guard", f"message-{winner}"]


async def test_a_patch_in_a_batch_obeys_its_predicate(container: ContainerProxy) -> None:
    await container.create_item(item("a", n=1))
    operations = [{"op": "set", "path": "/n", "value": 5}]
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch(
            [("patch", ("a", operations), {"filter_predicate": "from c where c.n > 1"})], "p"
        )
    assert failure.value.status_code == 412


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


async def test_an_item_of_another_partition_key_fails_the_batch(container: ContainerProxy) -> None:
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch([("create", (item("a"),)), ("create", ({"id": "b", "pk": "q"},))], "p")
    assert failure.value.status_code == 400
    assert await ids(container) == []


async def test_a_batch_is_one_step_of_the_session_token_and_says_so_even_when_it_fails(
    container: ContainerProxy,
) -> None:
    success = await container.execute_item_batch([("create", (item("a"),)), ("create", (item("b"),))], "p")
    assert success.get_response_headers()["x-ms-session-token"] == "0:-1#1"
    with pytest.raises(CosmosBatchOperationError) as failure:
        await container.execute_item_batch([("create", (item("a"),))], "p")
    assert failure.value.headers["x-ms-session-token"] == "0:-1#1"


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
