"""Roles in Cosmos DB: exactly what the library's requests take, on one database, for the identities that make them.

Source of the permissions: Microsoft's pages "Azure Cosmos DB for NoSQL data plane actions reference" and "Configure role-based
access control for your Azure Cosmos DB account". The second says that queries through an SDK take both executeQuery and
readChangeFeed. Neither speaks of batches: here one takes what its operations take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.port import AsyncListing
from tests.contract.cosmos_requests import REQUESTS
from tests.infra.bicep import deployment, one
from tests.infra.conftest import LISTINGS, Recorded

ACCOUNT: Final = "Microsoft.DocumentDB/databaseAccounts"
_CONTAINERS: Final = f"{ACCOUNT}/sqlDatabases/containers"

READ_METADATA: Final = f"{ACCOUNT}/readMetadata"
"""Properties of account, database and containers, and physical partitions: what the SDK and the check at start-up read."""

ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    **{
        operation: frozenset({f"{_CONTAINERS}/items/{operation}"})
        for operation in ("create", "read", "replace", "upsert", "delete")
    },
    "query": frozenset({f"{_CONTAINERS}/executeQuery", f"{_CONTAINERS}/readChangeFeed"}),
    "change_feed": frozenset({f"{_CONTAINERS}/readChangeFeed"}),
}
"""By the words of the local Cosmos' request log."""

JOBS: Final = frozenset({"create", "read", "replace", "delete", "query", "change_feed"})
"""What Spark jobs do: they read, save entities unchanged as fences (or a tombstone, which is created), and delete."""


def needed(operations: frozenset[str]) -> set[str]:
    """The data actions that these operations take."""
    return {READ_METADATA}.union(*(ACTIONS[operation] for operation in operations))


def definitions() -> dict[str, dict[str, Any]]:
    roles = one(deployment(), "document-db/database-account")["sqlRoleDefinitions"]
    return {role["roleName"]: role for role in roles}


def test_every_method_of_the_ports_is_among_the_requests() -> None:
    performed = {method.__name__ for method in CosmosStore.operations.values()}
    assert {name.split(" ")[0] for name in REQUESTS} == performed
    assert set(LISTINGS) == methods(AsyncListing)


def methods(port: type) -> set[str]:
    return {name for name in vars(port) if not name.startswith("_")}


def test_the_application_may_do_what_its_requests_take_and_nothing_else(recorded: Recorded) -> None:
    assert recorded.operations == {"create", "read", "replace", "upsert", "delete", "query"}
    given = definitions()["exactlyonce-application"]["dataActions"]
    assert set(given) == needed(frozenset(recorded.operations))
    assert len(set(given)) == len(given)


def test_jobs_may_read_fence_and_delete_and_nothing_else() -> None:
    assert set(definitions()["exactlyonce-spark"]["dataActions"]) == needed(JOBS)


def test_no_role_has_a_wildcard_or_may_change_what_is_not_data() -> None:
    for role in definitions().values():
        for action in role["dataActions"]:
            assert "*" not in action
            assert action in needed(frozenset(ACTIONS))


def test_roles_hold_on_the_database_and_nowhere_else() -> None:
    modules = deployment(deploySpark=True)
    assignments = one(modules, "document-db/database-account")["sqlRoleAssignments"]
    places = {assignment["scope"] for assignment in assignments}
    assert [place.rpartition("/dbs/")[2] for place in places] == ["shooting-range"]
    assert all(set(role["assignableScopes"]) == places for role in definitions().values())


def test_the_apps_identity_has_the_apps_role_and_the_workspace_the_jobs() -> None:
    names = {role["name"]: role["roleName"] for role in definitions().values()}
    app, jobs = (
        ("exactlyonce-application", "identity.outputs.principalId"),
        ("exactlyonce-spark", "synapse!.outputs.principalId"),
    )
    for spark, wanted in ((False, [app]), (True, [app, jobs])):
        given = one(deployment(deploySpark=spark), "document-db/database-account")["sqlRoleAssignments"]
        assert [(names[role["roleDefinitionId"]], role["principalId"]) for role in given] == wanted


@pytest.mark.parametrize("workspace", [False, True])
def test_jobs_that_sign_in_as_a_service_principal_get_its_role_and_the_workspace_gets_none(workspace: bool) -> None:
    modules = deployment(deploySpark=workspace, sparkPrincipalId="jobs")
    given = one(modules, "document-db/database-account")["sqlRoleAssignments"]
    assert [role["principalId"] for role in given] == ["identity.outputs.principalId", "jobs"]
