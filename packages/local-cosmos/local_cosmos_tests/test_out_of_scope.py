"""What the emulator does not do is refused by name, and never taken and dropped. `docs/faithful.md` lists these rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
from azure.cosmos.aio import ContainerProxy

from local_cosmos_tests.raw import KEY, QUERY, RawClient

ITEM: Final = {"id": "1", "pk": "p"}


class Missing(NamedTuple):
    """Something that the service has, and a request that asks for it.

    Attributes:
        name: For the page.
        refusal: The status, and what the message names.
        verb, path: Of the request; the path begins at the container.
        body: Of the request.
        headers: More of them.
    """

    name: str
    refusal: tuple[int, str]
    verb: str = "POST"
    path: str = "docs"
    body: Any = ITEM
    headers: dict[str, str] = {}  # noqa: RUF012  # Nobody changes it.


def container(name: str, **settings: Any) -> Missing:
    """A container with a setting that is the last one named."""
    (setting,) = settings
    body = {"id": "other", "partitionKey": KEY, **settings}
    return Missing(name, (400, setting), path="..", body=body)


def query(name: str, text: str, named: str) -> Missing:
    return Missing(name, (400, named), body={"query": text}, headers=QUERY)


MISSING: Final = (
    Missing("stored procedures", (404, "sprocs"), path="sprocs", body={"id": "s", "body": "function () {}"}),
    Missing("triggers", (404, "triggers"), path="triggers", body={"id": "t", "body": "function () {}"}),
    Missing("triggers before a write", (400, "pre-trigger"), headers={"x-ms-documentdb-pre-trigger-include": "t"}),
    Missing("triggers after a write", (400, "post-trigger"), headers={"x-ms-documentdb-post-trigger-include": "t"}),
    Missing("user-defined functions", (404, "udfs"), path="udfs", body={"id": "u", "body": "function () {}"}),
    query("user-defined functions in queries", "SELECT VALUE udf.tax(c.n) FROM c", "user-defined"),
    Missing("users and permissions", (404, "users"), path="../../users", body={"id": "u"}),
    Missing("keys of client encryption", (404, "clientencryptionkeys"), path="../../clientencryptionkeys"),
    container("policies of client encryption", clientEncryptionPolicy={"includedPaths": [{}]}),
    Missing("items left out of the index", (400, "indexing-directive"), headers={"x-ms-indexing-directive": "Exclude"}),
    Missing(
        "all versions and deletes in the change feed",
        (400, "incremental"),
        "GET",
        headers={"A-IM": "Full-Fidelity Feed"},
    ),
    container("materialised views", materializedViewDefinition={"sourceCollectionId": "c"}),
    container("the analytical store", analyticalStorageTtl=-1),
    container("a change feed policy", changeFeedPolicy={"retentionDuration": "PT10M"}),
    Missing(
        "containers without a partition key",
        (400, "systemKey"),
        path="..",
        body={"id": "other", "partitionKey": {"paths": ["/_pk"], "kind": "Hash", "systemKey": True}},
    ),
    container("vector search", vectorEmbeddingPolicy={"vectorEmbeddings": [{}]}),
    query("vector search in queries", "SELECT VALUE VectorDistance(c.v, [1]) FROM c", "VECTORDISTANCE"),
    container("full-text search", fullTextPolicy={"defaultLanguage": "en-US"}),
    query("full-text search in queries", "SELECT * FROM c WHERE FullTextContains(c.t, 'a')", "FULLTEXTCONTAINS"),
    query("ranking by text or vectors", "SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", "RANK"),
    query("spatial search", "SELECT * FROM c WHERE ST_DISTANCE(c.a, c.b) < 1", "ST_DISTANCE"),
    query("`NaN` and `Infinity`", "SELECT VALUE NaN FROM c", "NaN"),
    query("ORDER BY of a calculation", "SELECT * FROM c ORDER BY c.n + 1", "ORDER BY"),
    query(
        "ORDER BY together with GROUP BY, as in the service", "SELECT c.n FROM c GROUP BY c.n ORDER BY c.n", "GROUP BY"
    ),
)


@pytest.mark.parametrize("missing", MISSING, ids=lambda missing: missing.name)
async def test_what_is_missing_is_refused_by_name(container: ContainerProxy, raw: RawClient, missing: Missing) -> None:
    whole = container.container_link.split("/")
    path = missing.path
    while path.startswith(".."):
        whole, path = whole[:-1], path[2:].removeprefix("/")
    link = "/".join([*whole, path]).strip("/")
    key = "p" if link.endswith("/docs") and missing.verb == "POST" else None
    reply = raw.send(missing.verb, link, missing.body, key=key, headers=missing.headers)
    status, named = missing.refusal
    assert (reply.status, named.lower() in reply.body["message"].lower()) == (status, True), reply.body
    assert [item async for item in container.read_all_items()] == []
