"""Optimistic concurrency: every row of the documented table of conditions, through the SDK."""

from __future__ import annotations

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosResourceNotFoundError

from local_cosmos_tests.raw import UPSERT, RawClient

STALE = '"not-the-etag"'
DOCUMENT = {"id": "a", "pk": "p", "n": 1}
WRITES: dict[str, Any] = {
    "replace": lambda container, **guard: container.replace_item("a", dict(DOCUMENT), **guard),
    "upsert": lambda container, **guard: container.upsert_item(dict(DOCUMENT), **guard),
    "patch": lambda container, **guard: container.patch_item(
        "a", "p", [{"op": "set", "path": "/n", "value": 1}], **guard
    ),
    "delete": lambda container, **guard: container.delete_item("a", "p", **guard),
}


def if_match(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


async def created(container: ContainerProxy, **properties: Any) -> dict[str, Any]:
    return await container.create_item({"id": "a", "pk": "p", **properties})


@pytest.mark.parametrize("operation", WRITES)
async def test_a_write_needs_the_current_etag_if_it_names_one(container: ContainerProxy, operation: str) -> None:
    item = await created(container)
    with pytest.raises(CosmosAccessConditionFailedError):
        await WRITES[operation](container, **if_match(STALE))
    assert await container.read_item("a", "p") == item
    await WRITES[operation](container, **if_match(item["_etag"]))
    if operation == "delete":
        with pytest.raises(CosmosResourceNotFoundError):
            await container.read_item("a", "p")
    else:
        written = await container.read_item("a", "p")
        assert (written["n"], written["_etag"] != item["_etag"]) == (1, True)


@pytest.mark.parametrize("operation", ["replace", "patch", "delete"])
async def test_a_write_of_an_absent_item_fails_with_404_whatever_the_condition(
    container: ContainerProxy, operation: str
) -> None:
    with pytest.raises(CosmosResourceNotFoundError):
        await WRITES[operation](container, **if_match(STALE))


async def test_replace_with_if_match_star_needs_only_that_the_item_exists(container: ContainerProxy) -> None:
    await created(container)
    await container.replace_item("a", dict(DOCUMENT), match_condition=MatchConditions.IfPresent)


async def test_upsert_with_if_match_of_an_absent_item_creates_it_all_the_same(
    container: ContainerProxy, raw: RawClient
) -> None:
    headers = UPSERT | {"If-Match": STALE}
    assert raw.send("POST", f"{container.container_link}/docs", DOCUMENT, key="p", headers=headers).status == 201


async def test_upsert_with_if_none_match_star_creates_an_absent_item_and_refuses_a_present_one(
    container: ContainerProxy,
) -> None:
    await container.upsert_item(dict(DOCUMENT), match_condition=MatchConditions.IfMissing)
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.upsert_item(dict(DOCUMENT), match_condition=MatchConditions.IfMissing)


async def test_patch_whose_predicate_is_false_fails_with_412_and_changes_nothing(container: ContainerProxy) -> None:
    await created(container, n=1)
    operations = [{"op": "incr", "path": "/n", "value": 1}]
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 2")
    patched = await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 1")
    assert patched["n"] == 2


async def test_create_ignores_conditions(container: ContainerProxy, raw: RawClient) -> None:
    docs = f"{container.container_link}/docs"
    assert raw.send("POST", docs, DOCUMENT, key="p", headers={"If-Match": STALE}).status == 201
    assert raw.send("POST", docs, DOCUMENT, key="p", headers={"If-None-Match": "*"}).status == 409


async def test_replace_and_delete_ignore_if_none_match(container: ContainerProxy, raw: RawClient) -> None:
    await created(container)
    item, any_etag = f"{container.container_link}/docs/a", {"If-None-Match": "*"}
    assert raw.send("PUT", item, DOCUMENT, key="p", headers=any_etag).status == 200
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
    assert again.get_response_headers()["etag"] == again["_etag"]


async def test_a_partition_key_that_differs_from_the_items_is_refused_with_400_1001(
    container: ContainerProxy, raw: RawClient
) -> None:
    reply = raw.send("POST", f"{container.container_link}/docs", {"id": "a", "pk": "other"}, key="p")
    assert (reply.status, reply.substatus) == (400, 1001)


async def test_a_request_for_another_incarnation_of_the_container_is_refused_with_400_1024(
    container: ContainerProxy, raw: RawClient
) -> None:
    headers = {"x-ms-cosmos-intended-collection-rid": "AAAAAYAAAAM="}
    reply = raw.send("GET", f"{container.container_link}/docs/a", key="p", headers=headers)
    assert (reply.status, reply.substatus) == (400, 1024)
