"""Which permission of Cosmos DB's data plane each operation takes.

Source: Microsoft's pages "Azure Cosmos DB for NoSQL data plane actions reference" and "Configure role-based access control for
your Azure Cosmos DB account". The second says that queries through an SDK take both executeQuery and readChangeFeed. Neither
speaks of batches: here one takes what its operations take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
