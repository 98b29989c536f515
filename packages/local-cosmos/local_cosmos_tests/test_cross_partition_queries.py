"""Queries over several physical partitions: the SDK gets a plan, asks each partition, and merges the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos import CosmosClient as BlockingClient
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos.inprocess import RunningEmulator
from local_cosmos_tests.raw import QUERY, RawClient

ITEMS: list[dict[str, Any]] = [
    {"id": str(n), "pk": f"p{n}", "n": n, "third": n % 3, "half": n / 2, "name": f"item {n % 5}", "tags": [n % 2, "x"]}
    for n in range(40)
]
ALL_FEATURES = (
    "Aggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,NonValueAggregate,OffsetAndLimit,OrderBy,Top"
)


DESCENDING = "descending"
POLICY: dict[str, Any] = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [],
    "compositeIndexes": [
        [{"path": "/third", "order": DESCENDING}, {"path": "/n"}],
        [{"path": "/name"}, {"path": "/third", "order": DESCENDING}, {"path": "/n", "order": DESCENDING}],
    ],
}


def create(emulator: RunningEmulator, database: str, container: str, partitions: int) -> None:
    """A container with all items."""
    with BlockingClient(emulator.endpoint, emulator.key) as client:
        created = client.create_database_if_not_exists(database).create_container(
            container, PartitionKey("/pk"), indexing_policy=POLICY, offer_throughput=partitions * 10_000
        )
        for item in ITEMS:
            created.create_item(item)


@pytest.fixture(scope="module")
def filled(emulator: RunningEmulator) -> str:
    """A database whose containers no test changes."""
    create(emulator, "unchanged", "whole", partitions=1)
    create(emulator, "unchanged", "parted", partitions=3)
    return "unchanged"


@pytest.fixture
def whole(client: CosmosClient, filled: str) -> ContainerProxy:
    """All items in one physical partition: it needs no merging, and is the reference."""
    return client.get_database_client(filled).get_container_client("whole")


@pytest.fixture
def parted(client: CosmosClient, filled: str) -> ContainerProxy:
    """The same items in three physical partitions."""
    return client.get_database_client(filled).get_container_client("parted")


@pytest.fixture
def changing(emulator: RunningEmulator, database: DatabaseProxy) -> ContainerProxy:
    """The same for one test alone."""
    create(emulator, database.id, "changing", partitions=3)
    return database.get_container_client("changing")


async def results(container: ContainerProxy, query: str, **options: Any) -> list[Any]:
    parameters: list[dict[str, object]] = [{"name": "@least", "value": 7}, {"name": "@few", "value": 3}]
    pages: AsyncIterator[Any] = container.query_items(query, parameters=parameters, **options)
    return [row async for row in pages]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.n FROM c WHERE c.n >= @least OR c.n = 2 ORDER BY c.half DESC",
        "SELECT c.third, c.n FROM c ORDER BY c.third DESC, c.n ASC",
        "SELECT VALUE c.n FROM c ORDER BY c.name ASC, c.third DESC, c.n DESC",
        "SELECT TOP 5 c.n, c.id FROM c WHERE c.third = 1 ORDER BY c.n DESC",
        "SELECT TOP @few VALUE c.n FROM c ORDER BY c.n",
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 10",
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET @least LIMIT @few",
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 38 LIMIT 10",
        "SELECT DISTINCT VALUE c.third FROM c ORDER BY c.third",
        "SELECT DISTINCT TOP 2 VALUE c.name FROM c ORDER BY c.name DESC",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n = 100",
        "SELECT VALUE COUNT(c.third) FROM c WHERE c.n > @least",
        "SELECT VALUE SUM(c.half) FROM c",
        "SELECT VALUE AVG(c.n) FROM c WHERE c.n < 7",
        "SELECT VALUE AVG(c.n) FROM c",
        "SELECT VALUE MIN(c.n) FROM c WHERE c.third = 2",
        "SELECT VALUE MAX(c.name) FROM c",
        "SELECT VALUE MAX(c.n * -1) FROM c",
        "SELECT VALUE COUNT(1) FROM c ORDER BY c.half",
        "SELECT DISTINCT TOP 10 VALUE SUM(c.n) FROM c ORDER BY c.half DESC",
        "SELECT VALUE COUNT(1) FROM c OFFSET 0 LIMIT 5",
    ],
)
async def test_results_are_those_of_a_single_partition_in_the_same_order(
    whole: ContainerProxy, parted: ContainerProxy, query: str
) -> None:
    expected = await results(whole, query)
    assert expected
    assert await results(parted, query) == expected
    assert await results(parted, query, max_item_count=3) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT VALUE c.n FROM c",
        "SELECT DISTINCT VALUE c.third FROM c",
        "SELECT DISTINCT c.third, c.name FROM c WHERE c.n > @least",
        "SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags WHERE t = 1",
    ],
)
async def test_results_without_order_are_those_of_a_single_partition(
    whole: ContainerProxy, parted: ContainerProxy, query: str
) -> None:
    expected = await results(whole, query)
    assert sorted(map(str, await results(parted, query, max_item_count=3))) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("SELECT TOP 7 * FROM c", 7),
        ("SELECT * FROM c OFFSET 30 LIMIT 20", 10),
        ("SELECT c.n + 1, c.id FROM c OFFSET 1 LIMIT 4", 4),
        ("SELECT DISTINCT VALUE c.name FROM c OFFSET 1 LIMIT 3", 3),
    ],
)
async def test_limits_without_order_count_over_all_partitions(parted: ContainerProxy, query: str, number: int) -> None:
    found = await results(parted, query)
    assert len({str(row) for row in found}) == len(found) == number


async def test_once_the_sdk_knows_of_a_split_the_order_is_right(
    emulator: RunningEmulator, database: DatabaseProxy, changing: ContainerProxy
) -> None:
    emulator.split(database.id, "changing", "1")
    assert len([feed_range async for feed_range in changing.read_feed_ranges(force_refresh=True)]) == 4
    assert await results(changing, "SELECT VALUE c.n FROM c ORDER BY c.n") == list(range(40))


async def test_an_ordered_query_that_meets_a_split_gives_rows_twice_which_is_the_sdks_doing(
    emulator: RunningEmulator, database: DatabaseProxy, changing: ContainerProxy
) -> None:
    """azure-cosmos 4.17.1 builds anew what it reads from, and then adds, or begins again, what it was reading already."""
    running: Any = changing.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", max_item_count=4)
    begun = [await anext(running) for _ in range(9)]
    emulator.split(database.id, "changing", "1")
    met = begun + [row async for row in running]
    emulator.split(database.id, "changing", "0")
    later = await results(changing, "SELECT VALUE c.n FROM c ORDER BY c.n")
    for found in (met, later):
        assert set(found) == set(range(40))
        assert len(found) > 40


@pytest.mark.parametrize(
    ("query", "expected"),
    [("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", [39, 38, 37]), ("SELECT VALUE COUNT(1) FROM c", [40])],
)
def test_the_blocking_sdk_merges_as_well(
    emulator: RunningEmulator, filled: str, query: str, expected: list[int]
) -> None:
    with BlockingClient(emulator.endpoint, emulator.key) as client:
        container = client.get_database_client(filled).get_container_client("parted")
        assert list(container.query_items(query, enable_cross_partition_query=True)) == expected


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT c.third, COUNT(1) AS n FROM c GROUP BY c.third", "GroupBy"),
        ("SELECT COUNT(1) AS n FROM c", "NonValueAggregate"),
        ("SELECT COUNT(1) AS n, MAX(c.n) AS most FROM c", "MultipleAggregates"),
    ],
)
async def test_what_the_python_sdk_cannot_merge_is_refused_by_name(
    parted: ContainerProxy, query: str, named: str
) -> None:
    with pytest.raises(CosmosHttpResponseError, match=named) as refused:
        await results(parted, query)
    assert refused.value.status_code == 400


async def test_aggregates_of_one_partition_key_need_no_plan(parted: ContainerProxy) -> None:
    query = "SELECT c.third, COUNT(1) AS n FROM c GROUP BY c.third"
    assert await results(parted, query, partition_key="p4") == [{"third": 1, "n": 1}]


async def test_the_gateway_does_not_merge_but_says_1004(parted: ContainerProxy, raw: RawClient) -> None:
    headers = QUERY | {"x-ms-documentdb-query-enablecrosspartition": "True"}

    def ask(query: str) -> tuple[int, int]:
        reply = raw.send("POST", f"{parted.container_link}/docs", {"query": query}, headers=headers)
        return reply.status, reply.substatus

    assert ask("SELECT * FROM c ORDER BY c.n") == (400, 1004)
    assert ask("SELECT VALUE COUNT(1) FROM c") == (400, 1004)
    assert ask("SELECT * FROM c WHERE c.n = 1") == (200, 0)


def plan_of(raw: RawClient, container: ContainerProxy, query: str, features: str = ALL_FEATURES) -> Any:
    headers = {
        "x-ms-cosmos-is-query-plan-request": "True",
        "x-ms-cosmos-query-version": "1.0",
        "x-ms-cosmos-supported-query-features": features,
    }
    body = {"query": query, "parameters": [{"name": "@few", "value": 3}]}
    reply = raw.send("POST", f"{container.container_link}/docs", body, headers=headers)
    return reply.body["queryInfo"] if reply.status == 200 else reply.body["message"]


MERGED = (
    'SELECT TOP 5 c["_rid"] AS _rid, [{"item": c["n"]}, {"item": c["id"]}] AS orderByItems,'
    ' {"id": c["id"], "n": c["n"]} AS payload FROM c'
    ' WHERE ((c["n"] > 1) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c["n"] DESC, c["id"] ASC'
)


@pytest.mark.parametrize(
    ("query", "expected", "rewritten"),
    [
        (
            "SELECT c.id, c['n'] FROM c WHERE c.n > 1 ORDER BY c.n DESC, c.id OFFSET 2 LIMIT @few",
            {"orderBy": ["Descending", "Ascending"], "offset": 2, "limit": 3, "top": None},
            MERGED,
        ),
        (
            "SELECT TOP 10 VALUE COUNT(c.id) FROM c",
            {"top": 10, "aggregates": ["Count"], "orderBy": []},
            'SELECT VALUE [{"item": COUNT(c["id"])}] FROM c',
        ),
        ("SELECT * FROM c WHERE c.n = 1", {"distinctType": "None"}, ""),
    ],
    ids=["rows in order", "an aggregate, whose TOP is left to the client", "nothing to merge, nothing rewritten"],
)
async def test_a_plan_says_how_to_merge(
    parted: ContainerProxy, raw: RawClient, query: str, expected: dict[str, Any], rewritten: str
) -> None:
    plan = plan_of(raw, parted, query, features=ALL_FEATURES if rewritten else "")
    assert {name: plan[name] for name in expected} == expected
    assert plan["rewrittenQuery"] == rewritten


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT DISTINCT COUNT(1) FROM c GROUP BY c.n", "DISTINCT"),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY c.n ORDER BY c.n", "ORDER BY"),
        ("SELECT VALUE COUNT(1) FROM c OFFSET 1 LIMIT 1", "OFFSET"),
        ("SELECT TOP 1 VALUE COUNT(1) FROM c GROUP BY c.n", "TOP"),
        ("SELECT VALUE [COUNT(1)] FROM c", "aggregates"),
        ("SELECT * FROM c GROUP BY c.n", "GROUP BY"),
        ("SELECT * FROM c WHERE", "WHERE"),
    ],
)
async def test_there_is_no_plan_for_what_cannot_be_merged(
    parted: ContainerProxy, raw: RawClient, query: str, named: str
) -> None:
    assert named in plan_of(raw, parted, query)


async def test_a_query_over_a_prefix_of_a_hierarchical_key_finds_all_below_it_in_several_partitions(
    database: DatabaseProxy,
) -> None:
    container = await database.create_container(
        "deep", PartitionKey(["/tenant", "/bucket"], kind="MultiHash"), offer_throughput=30_000
    )
    for tenant in "tuvw":
        for bucket in range(5):
            await container.create_item({"id": f"{tenant}{bucket}", "tenant": tenant, "bucket": bucket})
    for tenant in "tuvw":
        found = await results(container, "SELECT VALUE c.id FROM c", partition_key=[tenant])
        assert sorted(found) == [f"{tenant}{bucket}" for bucket in range(5)]
        assert await results(container, "SELECT VALUE c.id FROM c", partition_key=[tenant, 3]) == [f"{tenant}3"]
