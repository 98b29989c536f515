"""Metrics of queries: what a page looked at, and which indexes a query can use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy

POLICY: Any = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/hidden/?"}],
    "compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "descending"}]],
}


@pytest.fixture
async def rows(database: DatabaseProxy) -> ContainerProxy:
    container = await database.create_container("rows", PartitionKey("/pk"), indexing_policy=POLICY)
    for number in range(10):
        await container.create_item({"id": f"{number}", "pk": "p", "a": number, "b": 0, "hidden": number})
    return container


async def metrics_of(rows: ContainerProxy, query: str, header: str) -> Any:
    found: dict[str, str] = {}
    pages = rows.query_items(
        query,
        partition_key="p",
        populate_query_metrics=True,
        populate_index_metrics=True,
        response_hook=lambda headers, _: found.update(headers),
    )
    assert [row async for row in pages]
    return found[header]


async def test_a_page_tells_what_it_looked_at_and_what_it_gives(rows: ContainerProxy) -> None:
    text = await metrics_of(rows, "SELECT VALUE c.a FROM c WHERE c.a < 4", "x-ms-documentdb-query-metrics")
    metrics = dict(part.split("=") for part in text.split(";"))
    assert metrics["retrievedDocumentCount"] == "10"
    assert metrics["outputDocumentCount"] == "4"
    assert metrics["outputDocumentSize"] == "4"
    assert metrics["indexUtilizationRatio"] == "0.40"


async def test_a_count_of_all_items_looks_at_none(rows: ContainerProxy) -> None:
    text = await metrics_of(rows, "SELECT VALUE COUNT(1) FROM c", "x-ms-documentdb-query-metrics")
    metrics = dict(part.split("=") for part in text.split(";"))
    assert (metrics["retrievedDocumentCount"], metrics["retrievedDocumentSize"]) == ("0", "0")
    assert metrics["indexUtilizationRatio"] == "1.00"
    text = await metrics_of(rows, "SELECT VALUE COUNT(c.a) FROM c", "x-ms-documentdb-query-metrics")
    assert "retrievedDocumentCount=10" in text


@pytest.mark.parametrize(
    ("query", "utilized", "potential", "composite"),
    [
        ("SELECT * FROM c WHERE c.a = 1 AND c.hidden > 0", ["/pk/?", "/a/?"], ["/hidden/?"], []),
        ("SELECT * FROM c ORDER BY c.a", ["/pk/?", "/a/?"], [], []),
        (
            "SELECT * FROM c WHERE c.b = 0 ORDER BY c.a, c.b DESC",
            ["/pk/?", "/b/?", "/a/?"],
            [],
            [["/a ASC", "/b DESC"]],
        ),
    ],
)
async def test_a_query_tells_which_indexes_it_can_use(
    rows: ContainerProxy, query: str, utilized: list[str], potential: list[str], composite: list[list[str]]
) -> None:
    metrics = await metrics_of(rows, query, "x-ms-cosmos-index-utilization")
    metrics = json.loads(metrics) if isinstance(metrics, str) else metrics
    assert [metric["IndexSpec"] for metric in metrics["UtilizedSingleIndexes"]] == utilized
    assert [metric["IndexSpec"] for metric in metrics["PotentialSingleIndexes"]] == potential
    assert [metric["IndexSpecs"] for metric in metrics["UtilizedCompositeIndexes"]] == composite
