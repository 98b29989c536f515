"""Cosmos DB: the account as the library verifies it, containers as entities declare them, nothing indexed in vain."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, LIBRARY_PATH
from local_cosmos.query.parser import parse_query
from local_cosmos.query.tree import Call, Path, Query, Subquery, parts
from tests.infra.bicep import deployment, one
from tests.infra.conftest import Recorded, settings_of

NARROWS_NOTHING = {"/_ledger/?", "/_ledger/type/?", "/_ledger/deleted/?", "/ended/?", "/blobs/[]/?"}
"""Asked for beside something that does, and the same in most documents of a container; or, of blobs, only by clean-up."""


def account(**parameters: Any) -> dict[str, Any]:
    return one(deployment(**parameters), "document-db/database-account")


def containers(**parameters: Any) -> dict[str, dict[str, Any]]:
    (database,) = account(**parameters)["sqlDatabases"]
    assert database["name"] == settings_of()["COSMOS__database"]
    return {container["name"]: container for container in database["containers"]}


def indexed(container: dict[str, Any]) -> set[str]:
    policy = container["indexingPolicy"]
    assert (policy["indexingMode"], policy["excludedPaths"]) == ("consistent", [{"path": "/*"}])
    return {path["path"] for path in policy["includedPaths"]}


def test_containers_are_those_of_the_entities_and_the_librarys(app: ModuleType) -> None:
    declared = {entity.container: list(entity.paths) for entity in app.once.entities}
    assert set(declared) == {"games", "boards"}
    wanted = {**declared, LIBRARY_CONTAINER: [LIBRARY_PATH]}
    assert {name: container["paths"] for name, container in containers().items()} == wanted
    assert settings_of()["EXACTLYONCE__container"] == LIBRARY_CONTAINER


def test_nothing_expires_by_itself_and_only_the_librarys_documents_may() -> None:
    assert {name: container.get("defaultTtl") for name, container in containers().items()} == {
        "games": None,
        "boards": None,
        LIBRARY_CONTAINER: -1,
    }


def test_long_partition_keys_are_hashed_whole_and_no_key_has_to_be_unique() -> None:
    for container in containers().values():
        assert container["version"] == 2
        assert "uniqueKeyPolicyKeys" not in container


def test_there_is_one_region_that_writes_and_no_weaker_consistency() -> None:
    params = account()
    assert params["enableMultipleWriteLocations"] is False
    assert [place["failoverPriority"] for place in params["failoverLocations"]] == [0]
    assert params["defaultConsistencyLevel"] == "Session"


def test_the_account_takes_no_keys() -> None:
    assert account()["disableLocalAuthentication"] is True


@pytest.mark.parametrize(
    ("capacity", "capabilities", "most"), [("serverless", ["EnableServerless"], None), ("autoscale", [], 4000)]
)
def test_throughput_is_paid_for_as_chosen(capacity: str, capabilities: list[str], most: int | None) -> None:
    chosen = {"cosmosCapacity": capacity, "autoscaleMaxThroughput": 4000}
    assert account(**chosen)["capabilitiesToAdd"] == capabilities
    assert {container["autoscaleSettingsMaxThroughput"] for container in containers(**chosen).values()} == {most}


def test_paths_that_queries_filter_by_are_indexed_and_no_others(recorded: Recorded) -> None:
    found = containers()
    library = filters(recorded.queries[LIBRARY_CONTAINER])
    entities = filters(
        {text for name, texts in recorded.queries.items() if name != LIBRARY_CONTAINER for text in texts}
    )
    assert library | entities >= NARROWS_NOTHING | {"/_ledger/outbox/[]/tx/?", "/_ledger/kept/[]/due/?"}
    for name, container in found.items():
        asked = (library if name == LIBRARY_CONTAINER else entities) - NARROWS_NOTHING
        wanted, given = asked | {f"{path}/?" for path in container["paths"]}, indexed(container)
        assert {path for path in wanted if not any(covers(item, path) for item in given)} == set()
        assert {item for item in given if not any(covers(item, path) for path in wanted)} == set()


def covers(index: str, path: str) -> bool:
    """Whether an index path, which may end with `*`, is good for this one."""
    return path.startswith(index[:-1]) if index.endswith("/*") else path == index


def filters(queries: set[str]) -> set[str]:
    """Index paths of all that queries select rows by, but `id` and `_ts`, which are always indexed."""
    found = {f"{path}/?" for text in queries for path in _selecting(parse_query(text), {})}
    return found - {"/id/?", "/_ts/?"}


def _selecting(query: Query, outer: dict[str, str]) -> Iterator[str]:
    """Paths in the condition of a query, and in those of its subqueries.

    Args:
        query: parsed.
        outer: paths of the names that the query around it has.
    """
    item = query.sources[0]
    roots = dict(outer) if outer else {item.alias: ""}
    arrays: set[Path] = set()
    for source in query.sources if outer else query.sources[1:]:
        assert isinstance(source.of, Path)
        roots[source.alias] = _index_path(roots, source.of) + "/[]"
    for expression in () if query.where is None else parts(query.where):
        match expression:
            case Subquery(query=inner):
                yield from _selecting(inner, roots)
            case Call("ARRAY_CONTAINS", (Path() as array, _)):
                arrays.add(array)
                yield _index_path(roots, array) + "/[]"
            case Path() if expression not in arrays:
                yield _index_path(roots, expression)


def _index_path(roots: dict[str, str], path: Path) -> str:
    return "/".join((roots[path.alias], *(step if isinstance(step, str) else "[]" for step in path.steps)))


def test_a_filter_is_found_wherever_it_stands() -> None:
    query = 'SELECT c.a FROM c JOIN o IN c.outputs WHERE c.b = @b AND (IS_STRING(c.d.e) OR NOT o["f"]["g"][0] BETWEEN 1 AND 2)'
    assert filters({query, "SELECT * FROM c WHERE c.id IN (@x)"}) == {"/b/?", "/d/e/?", "/outputs/[]/f/g/[]/?"}
    nested = "SELECT * FROM c WHERE EXISTS(SELECT VALUE o FROM o IN c.outputs WHERE o.f = c.e)"
    assert filters({nested}) == {"/outputs/[]/f/?", "/e/?"}
    assert filters({"SELECT * FROM c WHERE ARRAY_CONTAINS(c.hashes, @x)"}) == {"/hashes/[]/?"}
