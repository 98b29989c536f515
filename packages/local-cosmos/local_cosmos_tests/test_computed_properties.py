"""Computed properties: queries find what is not stored."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

COMPUTED: Any = [
    {"name": "cp_low", "query": "SELECT VALUE LOWER(c.name) FROM c"},
    {"name": "cp_total", "query": "SELECT VALUE c.price * (1 - c.discount) FROM c"},
    {"name": "hidden", "query": "SELECT VALUE CONCAT('computed ', c.name) FROM c"},
]
POLICY: Any = {"includedPaths": [{"path": "/*"}, {"path": "/cp_total/?"}], "excludedPaths": []}


async def shop(database: DatabaseProxy, partitions: int = 1) -> ContainerProxy:
    container = await database.create_container(
        "shop",
        PartitionKey("/pk"),
        computed_properties=COMPUTED,
        indexing_policy=POLICY,
        offer_throughput=partitions * 10_000,
    )
    for number, name in enumerate(("Bread", "APPLE", "cake")):
        item = {
            "id": f"{number}",
            "pk": f"{number}",
            "name": name,
            "price": 10 * number,
            "discount": 0.5,
            "hidden": "stored",
        }
        await container.create_item(item)
    return container


async def found(container: ContainerProxy, query: str) -> list[Any]:
    return [row async for row in container.query_items(query)]


@pytest.mark.parametrize("partitions", [1, 3])
async def test_queries_find_computed_properties_everywhere(database: DatabaseProxy, partitions: int) -> None:
    container = await shop(database, partitions)
    assert await found(container, "SELECT VALUE c.id FROM c WHERE c.cp_low = 'apple'") == ["1"]
    assert await found(container, "SELECT c.cp_low FROM c WHERE c['cp_total'] > 5") == [{"cp_low": "cake"}]
    assert await found(container, "SELECT VALUE c.cp_total FROM c ORDER BY c.cp_total DESC") == [10, 5, 0]
    assert await found(container, "SELECT VALUE SUM(c.cp_total) FROM c") == [15]


async def test_items_are_grouped_by_computed_properties(database: DatabaseProxy) -> None:
    counted = await found(await shop(database), "SELECT c.cp_low AS low, COUNT(1) AS k FROM c GROUP BY c.cp_low")
    assert sorted(row["low"] for row in counted) == ["apple", "bread", "cake"]


async def test_they_hide_stored_properties_but_not_from_a_wildcard(database: DatabaseProxy) -> None:
    container = await shop(database)
    assert await found(container, "SELECT VALUE c.hidden FROM c WHERE c.id = '0'") == ["computed Bread"]
    (item,) = await found(container, "SELECT * FROM c WHERE c.hidden = 'computed Bread'")
    assert item["hidden"] == "stored"
    assert "cp_low" not in item


async def test_sorting_needs_a_path_of_the_policy_that_names_them(database: DatabaseProxy) -> None:
    container = await shop(database)
    with pytest.raises(CosmosHttpResponseError, match="order-by item is excluded"):
        await found(container, "SELECT * FROM c ORDER BY c.cp_low")


async def test_a_replace_of_the_container_changes_them(database: DatabaseProxy) -> None:
    container = await shop(database)
    assert (await container.read())["computedProperties"] == COMPUTED
    upper = [{"name": "cp_up", "query": "SELECT VALUE UPPER(c.name) FROM c"}]
    await database.replace_container(container, PartitionKey("/pk"), computed_properties=upper)
    assert await found(container, "SELECT VALUE c.cp_up FROM c WHERE c.id = '0'") == ["BREAD"]
    assert await found(container, "SELECT VALUE c.cp_low FROM c") == []


@pytest.mark.parametrize(
    "computed",
    [
        [{"name": "a", "query": "SELECT c.a FROM c"}],
        [{"name": "a", "query": "SELECT VALUE c.a FROM c WHERE c.a > 1"}],
        [{"name": "a", "query": "SELECT VALUE COUNT(1) FROM c"}],
        [{"name": "a", "query": "SELECT VALUE NOSUCH(c.a) FROM c"}],
        [{"name": "id", "query": "SELECT VALUE c.a FROM c"}],
        [{"name": "a", "query": "SELECT VALUE c.a FROM c"}] * 2,
        [{"name": f"a{number}", "query": "SELECT VALUE c.a FROM c"} for number in range(21)],
        ["a"],
    ],
)
async def test_what_is_no_computed_property_is_refused(database: DatabaseProxy, computed: Any) -> None:
    with pytest.raises(CosmosHttpResponseError, match="omputed") as refused:
        await database.create_container("refused", PartitionKey("/pk"), computed_properties=computed)
    assert refused.value.status_code == 400
