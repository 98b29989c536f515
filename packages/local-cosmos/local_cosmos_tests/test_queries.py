"""The query language, through the SDK."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos_tests.raw import QUERY, RawClient

ITEMS: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "kind": "shot", "tags": ["red", "blue"], "in": {"side": "x y"}},
    {"id": "b", "n": 2, "kind": "shot", "tags": [], "flag": True},
    {"id": "c", "n": 3.5, "kind": "Hit", "tags": [{"k": 1, "v": 2}], "flag": False, "gone": None},
    {"id": "d", "n": "4", "kind": "hit", "order": 7, "value": "v"},
    {"id": "e", "kind": "it's"},
]


COMPOSITE = [
    [{"path": "/kind", "order": "descending"}, {"path": "/n"}],
    [{"path": "/flag"}, {"path": "/n", "order": "descending"}],
]


@pytest.fixture
async def filled(database: DatabaseProxy) -> ContainerProxy:
    policy: dict[str, Any] = {"includedPaths": [{"path": "/*"}], "excludedPaths": [], "compositeIndexes": COMPOSITE}
    container = await database.create_container("filled", PartitionKey("/pk"), indexing_policy=policy)
    for item in ITEMS:
        await container.create_item({**item, "pk": "p"})
    return container


async def results(container: ContainerProxy, query: str, **parameters: Any) -> list[Any]:
    given: list[dict[str, object]] = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
    return [row async for row in container.query_items(query, parameters=given, partition_key="p")]


async def ids(container: ContainerProxy, where: str, **parameters: Any) -> str:
    """The ids, joined, of the items for which a condition is true."""
    return "".join(await results(container, "SELECT VALUE c.id FROM c WHERE " + where, **parameters))  # noqa: S608  # Test data.


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c.n = 1", "a"),
        ("c.n != 1", "bcd"),
        ("c.n <> 1", "bcd"),
        ("c.n > 1", "bc"),
        ("c.n >= 2 AND c.n < 3.5", "b"),
        ("c.n = '4'", "d"),
        ("c['n'] = 1.0", "a"),
        ("c['in']['side'] = \"x y\"", "a"),
        ("c['order'] = 7 AND c['value'] = 'v'", "d"),
        ("c.kind = 'it\\'s'", "e"),
        ("c.kind IN ('shot', 'hit')", "abd"),
        ("c.kind NOT IN ('shot', 'hit')", "ce"),
        ("c.n IN (1, 3.5)", "ac"),
        ("c.n NOT IN (1, 2)", "cd"),
        ("c.n BETWEEN 1 AND 2", "ab"),
        ("c.kind LIKE '%h_t'", "abd"),
        ("IS_DEFINED(c.n)", "abcd"),
        ("NOT IS_DEFINED(c.n)", "e"),
        ("IS_NULL(c.gone)", "c"),
        ("c.gone = null", "c"),
        ("c.gone != null", ""),
        ("c.flag", "b"),
        ("NOT c.flag", "c"),
        ("c.flag = true OR c.n = 1", "ab"),
        ("c.flag = false OR IS_DEFINED(c['order']) OR c.id = 'e'", "cde"),
        ("NOT (c.n = 1)", "bcd"),
        ("c.n = 1 AND c.absent = 2", ""),
        ("NOT (c.n = 1 AND c.absent = 2)", "bcd"),
        ("c.n = 1 OR c.absent = 2", "a"),
        ("ARRAY_CONTAINS(c.tags, 'red')", "a"),
        ("ARRAY_CONTAINS(c.tags, @part, true)", "c"),
        ("ARRAY_CONTAINS(@list, c.id)", "bd"),
        ("ARRAY_LENGTH(c.tags) = 0", "b"),
        ("c.tags[1] = 'blue'", "a"),
        ("STARTSWITH(c.kind, 'sh')", "ab"),
        ("STARTSWITH(c.kind, 'H', true)", "cd"),
        ("CONTAINS(c.kind, 'i')", "cde"),
        ("ENDSWITH(c.kind, 'ot')", "ab"),
        ("CONTAINS(c.n, '4')", "d"),
        ("c.n = @n", "b"),
        ("c.tags = []", "b"),
        ("c.n < 'z'", "d"),
        ("c.n + 1 = 2", "a"),
        ("c.n NOT BETWEEN 0.5 + 0.5 AND 2", "c"),
        ("c['in'] = {'side': 'x y'}", "a"),
    ],
)
async def test_a_condition_keeps_the_items_for_which_it_is_true(
    filled: ContainerProxy, where: str, expected: str
) -> None:
    assert await ids(filled, where, n=2, part={"k": 1}, list=["b", "d"]) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT c.id, c.n AS number FROM c WHERE c.id = 'a'", [{"id": "a", "number": 1}]),
        ("SELECT c.id, c.n FROM c WHERE c.id = 'e'", [{"id": "e"}]),
        ("SELECT c.id, c.tags[0], c.n > 1 FROM c WHERE c.id = 'a'", [{"id": "a", "$1": "red", "$2": False}]),
        ("SELECT VALUE c.n FROM c", [1, 2, 3.5, "4"]),
        ("SELECT VALUE c['in'] FROM c", [{"side": "x y"}]),
        ("SELECT r.id FROM root r WHERE r['id'] = 'b'", [{"id": "b"}]),
        ("SELECT TOP 2 VALUE c.id FROM c", ["a", "b"]),
        ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2", ["b", "c"]),
        ("SELECT VALUE c.id FROM c OFFSET @skip LIMIT @limit", ["d", "e"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.n", ["a", "b", "c", "d"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.n DESC", ["d", "c", "b", "a"]),
        ("SELECT TOP 1 VALUE c.id FROM c WHERE IS_NUMBER(c.n) ORDER BY c.n DESC", ["c"]),
        ("SELECT VALUE COUNT(1) FROM c", [5]),
        ("SELECT VALUE COUNT(c.n) FROM c", [4]),
        ("SELECT TOP 1 VALUE COUNT(c.n) FROM c", [4]),
        ("SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.id", [1]),
        ("SELECT VALUE c.kind FROM c GROUP BY c.kind OFFSET 1 LIMIT 2", ["Hit", "hit"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n = 100", [0]),
        ("SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", [6.5]),
        ("SELECT VALUE SUM(c.n) FROM c", []),
        ("SELECT VALUE MIN(c.n) FROM c", [1]),
        ("SELECT VALUE MAX(c.n) FROM c", ["4"]),
        ("SELECT VALUE MAX(c.absent) FROM c", []),
        ("SELECT VALUE AVG(c.n) FROM c WHERE c.n <= 2", [1.5]),
        ("SELECT COUNT(1) AS number, MAX(c.id) AS last FROM c", [{"number": 5, "last": "e"}]),
        ("SELECT VALUE c.id FROM c ORDER BY c.kind DESC, c.n ASC", ["a", "b", "e", "d", "c"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.flag, c.n DESC", ["d", "a", "e", "c", "b"]),
        ("SELECT DISTINCT VALUE c.kind FROM c", ["shot", "Hit", "hit", "it's"]),
        ("SELECT DISTINCT c.flag FROM c", [{}, {"flag": True}, {"flag": False}]),
        ("SELECT DISTINCT VALUE c.kind FROM c OFFSET 1 LIMIT 2", ["Hit", "hit"]),
        ("SELECT DISTINCT TOP 2 VALUE c.kind FROM c ORDER BY c.kind", ["Hit", "hit"]),
        (
            "SELECT c.kind, COUNT(1) AS n, MAX(c.n) AS m FROM c GROUP BY c.kind",
            [
                {"kind": "shot", "n": 2, "m": 2},
                {"kind": "Hit", "n": 1, "m": 3.5},
                {"kind": "hit", "n": 1, "m": "4"},
                {"kind": "it's", "n": 1},
            ],
        ),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY IS_DEFINED(c.flag), c.absent", [3, 2]),
        ("SELECT VALUE COUNT(1) + 1 FROM c", [6]),
        ("SELECT VALUE COUNT(1) > 3 ? 'many' : 'few' FROM c", ["many"]),
        ("SELECT VALUE COUNT(1) FROM c ORDER BY c.n", [4]),
        (
            "SELECT UPPER(c.kind) || '!' AS kind, SUM(1) / COUNT(c.n) AS mean FROM c GROUP BY UPPER(c.kind)",
            [{"kind": "SHOT!", "mean": 1}, {"kind": "HIT!", "mean": 1}, {"kind": "IT'S!"}],
        ),
        ("SELECT c.id, t FROM c JOIN t IN c.tags WHERE t = 'blue'", [{"id": "a", "t": "blue"}]),
        ("SELECT VALUE t.k FROM c JOIN t IN c.tags", [1]),
        ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", [3]),
        (
            "SELECT VALUE [x, y] FROM c JOIN x IN c.tags JOIN y IN c.tags WHERE x != y",
            [["red", "blue"], ["blue", "red"]],
        ),
        ("SELECT VALUE c.n * 2 - 1 FROM c", [1, 3, 6]),
        ("SELECT VALUE 7 / 2 + 7 % 4 - -1 FROM c WHERE c.id = 'a'", [7.5]),
        ("SELECT VALUE -c.n / 0 FROM c", []),
        (
            "SELECT VALUE {'id': c.id, 'none': c.absent, tags: [c.n, c.absent]} FROM c WHERE c.n = 2",
            [{"id": "b", "tags": [2]}],
        ),
        ("select value c.id from c where c.id = 'a' -- keywords have no case", ["a"]),
        ("SELECT 'Adventure', 'Works'", [{"$1": "Adventure", "$2": "Works"}]),
        ("SELECT VALUE 1 WHERE false", []),
        ("SELECT VALUE t FROM t IN c.tags WHERE IS_STRING(t)", ["red", "blue"]),
        ("SELECT * FROM c['in'] AS o", [{"side": "x y"}]),
        ("SELECT VALUE n FROM root.n", [1, 2, 3.5, "4"]),
        ("SELECT VALUE COUNT(1) FROM t IN c.tags", [3]),
        ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'red')", ["a"]),
        (
            "SELECT VALUE ARRAY(SELECT VALUE UPPER(t) FROM t IN c.tags ORDER BY t) FROM c WHERE c.id = 'a'",
            [["BLUE", "RED"]],
        ),
        (
            "SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c WHERE ARRAY_LENGTH(c.tags) > 0",
            [{"id": "a", "n": 2}, {"id": "c", "n": 1}],
        ),
        (
            "SELECT c.id, s.half FROM c JOIN (SELECT c.n / 2 AS half) AS s WHERE s.half >= 1",
            [{"id": "b", "half": 1}, {"id": "c", "half": 1.75}],
        ),
        (
            "SELECT c.id, COUNT(1) AS n FROM c JOIN (SELECT VALUE t FROM t IN c.tags) JOIN (SELECT VALUE 1) GROUP BY c.id",
            [{"id": "a", "n": 2}, {"id": "c", "n": 1}],
        ),
        ('SELECT (SELECT c.kind).kind, {"f": c.flag}.f FROM c WHERE c.flag', [{"kind": "shot", "f": True}]),
        ("SELECT VALUE t FROM c JOIN t IN (SELECT VALUE c.tags) WHERE IS_OBJECT(t)", [{"k": 1, "v": 2}]),
        ("SELECT VALUE ARRAY(SELECT DISTINCT TOP 1 VALUE t FROM t IN c.tags) FROM c WHERE c.id = 'a'", [["red"]]),
    ],
)
async def test_a_query_selects_what_it_says(filled: ContainerProxy, query: str, expected: list[Any]) -> None:
    assert await results(filled, query, skip=3, limit=10) == expected


async def test_select_star_gives_whole_items(filled: ContainerProxy) -> None:
    (found,) = await results(filled, "SELECT * FROM c WHERE c.id = 'a'")
    assert found == await filled.read_item("a", "p")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT * FROM c JOIN t IN c.tags", "JOIN"),
        ("SELECT VALUE 1 FROM c JOIN c IN c.tags", "sources"),
        ("SELECT * FROM c GROUP BY c.kind", "GROUP BY"),
        ("SELECT c.kind FROM c GROUP BY c.kind ORDER BY c.kind", "ORDER BY"),
        ("SELECT VALUE COUNT(1, 2) FROM c", "COUNT"),
        ("SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.id", "GROUP BY"),
        ("SELECT VALUE {'a': 1, 'a': 2} FROM c", "properties"),
        ("SELECT * FROM c ORDER BY c.n + 1", "ORDER BY"),
        ("SELECT * FROM c WHERE COUNT(1) > 1", "COUNT"),
        ("SELECT COUNT(1), c.id FROM c", "aggregates"),
        ("SELECT * FROM c WHERE d.id = 'a'", "'d'"),
        ("SELECT * FROM c WHERE c.id = @missing", "@missing"),
        ("SELECT * FROM c WHERE", "WHERE"),
        ("SELECT * FROM c WHERE c.order = 7", "reserved word"),
        ("SELECT VALUE c.value FROM c", 'c["value"]'),
        ("SELECT * FROM (SELECT VALUE 1) AS s", "first source"),
        ("SELECT *", "FROM"),
        ("SELECT VALUE (SELECT VALUE t FROM t IN c.tags) FROM c", "ARRAY"),
        ("SELECT VALUE udf.tax(c.n) FROM c", "user-defined"),
        ("SELECT * FROM c WHERE c.id = 'a\\q'", "escape"),
        ("SELECT TOP @minus * FROM c", "negative"),
    ],
)
async def test_what_is_not_supported_is_refused_by_name(filled: ContainerProxy, query: str, named: str) -> None:
    with pytest.raises(CosmosHttpResponseError) as refused:
        await results(filled, query, minus=-1)
    assert refused.value.status_code == 400
    assert named in refused.value.message


async def test_the_document_id_is_the_number_in_the_resource_id(container: ContainerProxy) -> None:
    for name in "abc":
        await container.create_item({"id": name, "pk": "p"})
    first, second, third = await results(container, "SELECT VALUE DOCUMENTID(c) FROM c")
    assert await results(container, "SELECT VALUE c.id FROM c WHERE DOCUMENTID(c) > @n", n=first) == ["b", "c"]
    assert first < second < third


@pytest.mark.parametrize("order", ["", "ORDER BY c.n", "ORDER BY c.n DESC", "ORDER BY c.gone"])
async def test_pages_hold_every_row_once_in_order(container: ContainerProxy, order: str) -> None:
    for n in range(25):
        await container.create_item({"id": str(n), "pk": "p", "n": n % 4, "gone": None})
    query = "SELECT VALUE c.id FROM c " + order  # noqa: S608  # Test data.
    whole = await results(container, query)
    pages = container.query_items(query, partition_key="p", max_item_count=4).by_page()
    paged = [[row async for row in page] async for page in pages]
    assert [len(page) for page in paged] == [4, 4, 4, 4, 4, 4, 1]
    assert [row for page in paged for row in page] == whole


async def test_limits_count_over_pages(container: ContainerProxy) -> None:
    for n in range(10):
        await container.create_item({"id": str(n), "pk": "p"})
    query = "SELECT VALUE c.id FROM c OFFSET 3 LIMIT 5"
    pages = container.query_items(query, partition_key="p", max_item_count=2).by_page()
    found: list[list[Any]] = [[row async for row in page] async for page in pages]
    assert found == [["3", "4"], ["5", "6"], ["7"]]


async def test_a_page_begins_after_the_last_row_whatever_was_written_in_between(container: ContainerProxy) -> None:
    for n in range(6):
        await container.create_item({"id": str(n), "pk": "p"})
    pages = container.query_items("SELECT VALUE c.id FROM c", partition_key="p", max_item_count=2).by_page()
    first: list[Any] = [row async for row in await anext(pages)]
    for gone in ("0", "1", "2"):
        await container.delete_item(gone, "p")
    rest: list[Any] = [row async for page in pages for row in [row async for row in page]]
    assert (first, rest) == (["0", "1"], ["3", "4", "5"])


def test_a_foreign_continuation_is_refused(container: ContainerProxy, raw: RawClient) -> None:
    headers = QUERY | {"x-ms-continuation": "bm9uc2Vuc2U="}
    reply = raw.send("POST", f"{container.container_link}/docs", {"query": "SELECT * FROM c"}, key="p", headers=headers)
    assert reply.status == 400


@pytest.mark.simplified(service="each page has items of one physical partition; here it may have those of several")
async def test_a_query_over_partitions_covers_them_all_and_names_all_their_tokens(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
    for n in range(30):
        await container.create_item({"id": str(n), "pk": f"p{n}", "n": n})
    query = container.query_items("SELECT VALUE c.n FROM c", max_item_count=7)
    rows: list[Any] = [row async for row in query]
    assert sorted(rows) == list(range(30))
    token = query.get_response_headers()["x-ms-session-token"]
    assert [segment.split(":")[0] for segment in token.split(",")] == ["0", "1", "2"]


async def test_feed_ranges_share_the_items_out(database: DatabaseProxy) -> None:
    container = await database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
    for n in range(30):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    found: list[Any] = []
    async for feed_range in container.read_feed_ranges():
        found += [row async for row in container.query_items("SELECT VALUE c.id FROM c", feed_range=feed_range)]
    assert sorted(found) == sorted(str(n) for n in range(30))


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("c.pk = 'p'", 200),
        ("c.n > 1 AND @key = c.pk", 200),
        ("true", 400),
        ("c.pk = 'p' OR c.n = 1", 400),
        ("c.pk = @absent", 400),
        ("c.pk > 'p'", 400),
        ("c.pk = c.id", 400),
        ("c.pk = undefined", 400),
    ],
)
def test_a_query_that_may_not_cross_partitions_names_the_partition_key_in_its_condition(
    container: ContainerProxy, raw: RawClient, where: str, status: int
) -> None:
    query = {"query": f"SELECT * FROM c WHERE {where}", "parameters": [{"name": "@key", "value": "p"}]}  # noqa: S608
    assert raw.send("POST", f"{container.container_link}/docs", query, headers=QUERY).status == status


async def test_read_items_and_read_all_items_work(filled: ContainerProxy) -> None:
    assert [item["id"] async for item in filled.read_all_items()] == list("abcde")
    found = await filled.read_items([("a", "p"), ("c", "p"), ("absent", "p")])
    assert sorted(item["id"] for item in found) == ["a", "c"]
