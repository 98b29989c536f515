"""A printed query parses to the tree that it was printed from."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.parser import parse_query
from local_cosmos.query.printing import text
from local_cosmos_tests import fuzz_queries


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM c",
        "SELECT DISTINCT TOP 5 VALUE c.a[0]['b c'] FROM c WHERE NOT c.x = 'it\\'s \"so\"' ORDER BY c.a DESC, c.b",
        "SELECT c.a AS x, -1.5 AS y FROM c JOIN t IN c.list WHERE t IN (1, @p, null) OR c.s NOT LIKE 'a%'",
        "SELECT VALUE {'a': [1, undefined, true], b: {}} FROM r WHERE r.n BETWEEN 1 AND 2 * 3 - 4 OFFSET 1 LIMIT @n",
        "SELECT VALUE 1",
        "SELECT t FROM t IN c.list JOIN (SELECT VALUE t.x WHERE t.y > 1) AS s JOIN u IN (SELECT VALUE t.z)",
        "SELECT VALUE COUNT(1) FROM c JOIN (SELECT VALUE t FROM t IN c.tags) JOIN (SELECT VALUE 1)",
        "SELECT VALUE n FROM c.a[@p] AS n WHERE EXISTS(SELECT VALUE 1) OR 'a%' LIKE '^%' ESCAPE '^'",
        "SELECT VALUE {a: ARRAY(SELECT * FROM x IN c.l)}.a[0] ?? (1 > 2 ? ~3 : 4 & 5 | 6 ^ 7 << 8 >>> 9) || 'x' FROM c",
        "SELECT c.k AS k, COUNT(1) AS n FROM c WHERE STARTSWITH(c.s, 'é', true) GROUP BY c.k, c.l",
    ],
)
def test_a_printed_query_means_the_same(query: str) -> None:
    tree = parse_query(query)
    assert parse_query(text(tree)) == tree


@settings(max_examples=300, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(fuzz_queries.SOUND)
def test_whatever_can_be_parsed_can_be_printed(sentence: str) -> None:
    try:
        tree = parse_query(sentence)
        printed = text(tree)
    except UnsupportedQueryError:
        return
    if "AS $" not in printed:  # A name that the service gives, and nobody may write.
        assert parse_query(printed) == tree
