"""Optimistic concurrency: every row of the documented table of conditions, through the SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from local_cosmos.inprocess import RunningEmulator
from local_cosmos_tests.raw import RawClient

IF_MATCH = MatchConditions.IfNotModified
STALE = '"not-the-etag"'


async def created(container: ContainerProxy, **properties: Any) -> dict[str, Any]:
    return await container.create_item({"id": "a", "pk": "p", **properties})


async def test_replace_with_the_current_etag_succeeds_and_changes_the_etag(container: ContainerProxy) -> None:
    item = await created(container)
    replaced = await container.replace_item("a", dict(item), etag=item["_etag"], match_condition=IF_MATCH)
    assert replaced["_etag"] != item["_etag"]
    assert replaced.get_response_headers()["etag"] == replaced["_etag"]


async def test_replace_with_a_stale_etag_fails_with_412(container: ContainerProxy) -> None:
    await created(container)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.replace_item("a", {"id": "a", "pk": "p"}, etag=STALE, match_condition=IF_MATCH)


async def test_replace_of_an_absent_item_fails_with_404_whatever_the_condition(container: ContainerProxy) -> None:
    with pytest.raises(CosmosResourceNotFoundError):
        await container.replace_item("a", {"id": "a", "pk": "p"}, etag=STALE, match_condition=IF_MATCH)


async def test_replace_with_if_match_star_needs_only_that_the_item_exists(container: ContainerProxy) -> None:
    await created(container)
    await container.replace_item("a", {"id": "a", "pk": "p", "n": 1}, match_condition=MatchConditions.IfPresent)


async def test_upsert_with_the_current_etag_replaces(container: ContainerProxy) -> None:
    item = await created(container)
    upserted = await container.upsert_item({"id": "a", "pk": "p", "n": 1}, etag=item["_etag"], match_condition=IF_MATCH)
    assert upserted["n"] == 1


async def test_upsert_with_a_stale_etag_fails_with_412(container: ContainerProxy) -> None:
    await created(container)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.upsert_item({"id": "a", "pk": "p"}, etag=STALE, match_condition=IF_MATCH)


async def test_upsert_with_if_match_of_an_absent_item_creates_it_all_the_same(
    container: ContainerProxy, raw: RawClient
) -> None:
    reply = raw.send(
        "POST",
        f"{container.container_link}/docs",
        {"id": "a", "pk": "p"},
        key="p",
        headers={"x-ms-documentdb-is-upsert": "True", "If-Match": STALE},
    )
    assert reply.status == 201


async def test_upsert_with_if_none_match_star_creates_an_absent_item_and_refuses_a_present_one(
    container: ContainerProxy,
) -> None:
    document = {"id": "a", "pk": "p"}
    await container.upsert_item(document, match_condition=MatchConditions.IfMissing)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.upsert_item(document, match_condition=MatchConditions.IfMissing)


async def test_delete_with_the_current_etag_deletes(container: ContainerProxy) -> None:
    item = await created(container)
    await container.delete_item("a", "p", etag=item["_etag"], match_condition=IF_MATCH)
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read_item("a", "p")


async def test_delete_with_a_stale_etag_fails_with_412(container: ContainerProxy) -> None:
    await created(container)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.delete_item("a", "p", etag=STALE, match_condition=IF_MATCH)


async def test_delete_of_an_absent_item_fails_with_404_whatever_the_condition(container: ContainerProxy) -> None:
    with pytest.raises(CosmosResourceNotFoundError):
        await container.delete_item("a", "p", etag=STALE, match_condition=IF_MATCH)


async def test_patch_obeys_if_match_as_replace_does(container: ContainerProxy) -> None:
    item = await created(container)
    operations = [{"op": "set", "path": "/n", "value": 1}]
    with pytest.raises(CosmosResourceNotFoundError):
        await container.patch_item("b", "p", operations, etag=STALE, match_condition=IF_MATCH)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.patch_item("a", "p", operations, etag=STALE, match_condition=IF_MATCH)
    patched = await container.patch_item("a", "p", operations, etag=item["_etag"], match_condition=IF_MATCH)
    assert patched["n"] == 1


async def test_patch_whose_predicate_is_false_fails_with_412_and_changes_nothing(container: ContainerProxy) -> None:
    await created(container, n=1)
    operations = [{"op": "incr", "path": "/n", "value": 1}]
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 2")
    patched = await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 1")
    assert patched["n"] == 2


async def test_create_ignores_conditions(container: ContainerProxy, raw: RawClient) -> None:
    docs, document = f"{container.container_link}/docs", {"id": "a", "pk": "p"}
    assert raw.send("POST", docs, document, key="p", headers={"If-Match": STALE}).status == 201
    assert raw.send("POST", docs, document, key="p", headers={"If-None-Match": "*"}).status == 409


async def test_replace_and_delete_ignore_if_none_match(container: ContainerProxy, raw: RawClient) -> None:
    await created(container)
    item, any_etag = f"{container.container_link}/docs/a", {"If-None-Match": "*"}
    assert raw.send("PUT", item, {"id": "a", "pk": "p"}, key="p", headers=any_etag).status == 200
    assert raw.send("DELETE", item, key="p", headers=any_etag).status == 204


async def test_a_read_with_the_current_etag_in_if_none_match_answers_304(
    container: ContainerProxy, raw: RawClient
) -> None:
    item = await created(container)
    path = f"{container.container_link}/docs/a"
    unchanged = raw.send("GET", path, key="p", headers={"If-None-Match": item["_etag"]})
    assert (unchanged.status, unchanged.body) == (304, None)
    assert raw.send("GET", path, key="p", headers={"If-None-Match": STALE}).status == 200


async def test_an_identical_write_still_changes_the_etag(container: ContainerProxy) -> None:
    item = await created(container)
    again = await container.upsert_item(dict(item))
    assert again["_etag"] != item["_etag"]


async def test_of_sixteen_writers_with_one_etag_exactly_one_wins_every_time(container: ContainerProxy) -> None:
    item = await created(container)
    for round_number in range(10):
        writes = (
            container.replace_item("a", {**item, "by": writer}, etag=item["_etag"], match_condition=IF_MATCH)
            for writer in range(16)
        )
        results = await asyncio.gather(*writes, return_exceptions=True)
        winners = [result for result in results if isinstance(result, dict)]
        losers = [result for result in results if isinstance(result, CosmosAccessConditionFailedError)]
        assert (len(winners), len(losers)) == (1, 15), round_number
        item = await container.read_item("a", "p")
        assert item["by"] == winners[0]["by"]


async def test_of_sixteen_raw_writers_with_one_etag_exactly_one_wins_every_time(
    emulator: RunningEmulator, container: ContainerProxy, raw: RawClient
) -> None:
    etag = (await created(container))["_etag"]
    path = f"{container.container_link}/docs/a"
    for _ in range(5):
        replies = await asyncio.gather(
            *(
                asyncio.to_thread(raw.send, "PUT", path, {"id": "a", "pk": "p"}, key="p", headers={"If-Match": etag})
                for _ in range(16)
            )
        )
        assert sorted(reply.status for reply in replies) == [200] + [412] * 15
        etag = next(reply.headers["etag"] for reply in replies if reply.status == 200)


async def test_of_sixteen_creators_exactly_one_wins(container: ContainerProxy) -> None:
    creates = (container.create_item({"id": "a", "pk": "p", "by": writer}) for writer in range(16))
    results = await asyncio.gather(*creates, return_exceptions=True)
    assert sum(isinstance(result, dict) for result in results) == 1
    assert sum(isinstance(result, CosmosResourceExistsError) for result in results) == 15


async def test_a_partition_key_that_differs_from_the_items_is_refused_with_400_1001(
    container: ContainerProxy, raw: RawClient
) -> None:
    reply = raw.send("POST", f"{container.container_link}/docs", {"id": "a", "pk": "other"}, key="p")
    assert (reply.status, reply.substatus) == (400, 1001)


async def test_a_request_for_another_incarnation_of_the_container_is_refused_with_400_1024(
    container: ContainerProxy, raw: RawClient
) -> None:
    reply = raw.send(
        "GET",
        f"{container.container_link}/docs/a",
        key="p",
        headers={"x-ms-cosmos-intended-collection-rid": "AAAAAYAAAAM="},
    )
    assert (reply.status, reply.substatus) == (400, 1024)


async def test_an_item_of_more_than_two_megabytes_is_refused_with_413(
    container: ContainerProxy, raw: RawClient
) -> None:
    docs = f"{container.container_link}/docs"
    assert raw.send("POST", docs, {"id": "a", "pk": "p", "text": "x" * 2_000_000}, key="p").status == 201
    assert raw.send("POST", docs, {"id": "b", "pk": "p", "text": "x" * 2_200_000}, key="p").status == 413
