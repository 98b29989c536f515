"""Indexing policies: what ORDER BY leaves out, what it needs, and what a policy may be."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

ETAG = {"path": '/"_etag"/?'}
BOTH = [[{"path": "/a"}, {"path": "/b", "order": "descending"}]]


async def filled(database: DatabaseProxy, **policy: Any) -> ContainerProxy:
    given = {"includedPaths": [{"path": "/*"}], "excludedPaths": [], **policy} if policy else None
    container = await database.create_container("ordered", PartitionKey("/pk"), indexing_policy=given)
    for item in ({"id": "1", "a": 2, "b": 1}, {"id": "2", "b": 2}, {"id": "3", "a": 1, "b": 3, "c": {"d e": 1}}):
        await container.create_item({"pk": "p", **item})
    return container


async def ordered(container: ContainerProxy, by: str) -> str:
    query = f"SELECT VALUE c.id FROM c ORDER BY {by}"  # noqa: S608  # Test data.
    found: list[Any] = [row async for row in container.query_items(query, partition_key="p")]
    return "".join(found)


async def test_items_that_lack_a_property_that_no_path_names_are_left_out(database: DatabaseProxy) -> None:
    assert await ordered(await filled(database, includedPaths=[{"path": "/"}]), "c.a") == "31"
    await database.delete_container("ordered")
    container = await filled(database)
    assert await ordered(container, "c.a") == "31"
    assert await ordered(container, "c.a DESC") == "13"
    assert await ordered(container, 'c.c["d e"]') == "3"


@pytest.mark.parametrize("path", ["/a/?", "/a/*"])
async def test_items_that_lack_a_property_named_by_the_policy_are_there(database: DatabaseProxy, path: str) -> None:
    container = await filled(database, includedPaths=[{"path": "/*"}, {"path": path}])
    assert await ordered(container, "c.a") == "231"


async def test_every_item_has_its_id_and_time_of_writing(database: DatabaseProxy) -> None:
    container = await filled(database, includedPaths=[], excludedPaths=[{"path": "/*"}])
    assert await ordered(container, "c.id") == "123"
    assert len(await ordered(container, "c._ts")) == 3


@pytest.mark.parametrize(
    ("policy", "by", "what"),
    [
        ({"excludedPaths": [{"path": "/a/?"}]}, "c.a", "excluded"),
        ({"includedPaths": [], "excludedPaths": [{"path": "/*"}]}, "c.a", "excluded"),
        ({"indexingMode": "none", "automatic": False}, "c.a", "excluded"),
        ({"compositeIndexes": BOTH}, "c.a, c.b", "composite index"),
        ({"compositeIndexes": BOTH}, "c.b DESC, c.a", "composite index"),
        ({"compositeIndexes": BOTH}, "c.a, c.b DESC, c.c", "composite index"),
    ],
)
async def test_an_order_without_an_index_is_refused(
    database: DatabaseProxy, policy: dict[str, Any], by: str, what: str
) -> None:
    container = await filled(database, **policy)
    with pytest.raises(CosmosHttpResponseError, match=what) as refused:
        await ordered(container, by)
    assert refused.value.status_code == 400


@pytest.mark.parametrize(("by", "ids"), [("c.a, c.b DESC", "231"), ("c.a DESC, c.b", "132")])
async def test_a_composite_index_serves_its_order_and_the_opposite_one(
    database: DatabaseProxy, by: str, ids: str
) -> None:
    assert await ordered(await filled(database, compositeIndexes=BOTH), by) == ids


async def test_a_container_that_states_no_policy_has_the_default_one(database: DatabaseProxy) -> None:
    policy = (await (await filled(database)).read())["indexingPolicy"]
    assert policy["includedPaths"] == [{"path": "/*"}]
    assert policy["excludedPaths"] == [ETAG]
    assert (policy["indexingMode"], policy["automatic"]) == ("consistent", True)


@pytest.mark.parametrize(
    ("given", "included", "excluded"),
    [
        ({"automatic": False}, [{"path": "/*"}], [ETAG]),
        ({"includedPaths": [{"path": "/"}]}, [{"path": "/"}], [ETAG]),
        ({"includedPaths": [{"path": "/*", "indexes": [{"kind": "Range"}]}]}, [{"path": "/*"}], [ETAG]),
        ({"excludedPaths": [{"path": "/a/?"}]}, [], [{"path": "/a/?"}, ETAG]),
        ({"excludedPaths": [ETAG, {"path": "/a/?"}]}, [], [ETAG, {"path": "/a/?"}]),
        ({"indexingMode": "none"}, None, None),
    ],
)
async def test_parts_of_a_policy_that_are_not_given_get_their_defaults(
    database: DatabaseProxy, given: dict[str, Any], included: object, excluded: object
) -> None:
    container = await database.create_container("partial", PartitionKey("/pk"), indexing_policy=given)
    policy = (await container.read())["indexingPolicy"]
    assert (policy.get("includedPaths"), policy.get("excludedPaths")) == (included, excluded)
    assert policy.get("automatic", True) == given.get("automatic", True)


@pytest.mark.parametrize(
    ("policy", "what"),
    [
        ({"compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "nonsense"}]]}, "ascending or descending"),
        ({"compositeIndexes": [[{"path": "/a"}]]}, "two paths"),
        ({"includedPaths": [{"path": "a"}]}, "path"),
        ({"includedPaths": [{"path": "/a"}]}, r"/\?"),
        ({"includedPaths": "/*"}, "list"),
        ({"indexingMode": "eager"}, "indexing mode"),
        ({"vectorIndexes": [{"path": "/v"}]}, "vectorIndexes"),
    ],
)
async def test_a_policy_that_cannot_be_is_refused(database: DatabaseProxy, policy: dict[str, Any], what: str) -> None:
    with pytest.raises(CosmosHttpResponseError, match=what):
        await filled(database, **policy)
