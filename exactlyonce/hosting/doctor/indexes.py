"""Indexes: which paths the library's searches select by, and whether a container's policy indexes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from exactlyonce.attempt import Strategy
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream

LIBRARY: Final = ("/pk/?", "/kind/?", "/begin/?", "/until/?", "/number/?", "/hashes/[]/?")
_OWING: Final = "/_ledger/outbox/[]/tx/?"
_COMPANIONS: Final = ("/_kind/?", "/owing_since/?", "/entity/?")
_BY_STRATEGY: Final[Mapping[type, tuple[str, ...]]] = {
    Outbox: (_OWING, "/_ledger/kept/[]/due/?"),
    Colocated: _COMPANIONS,
    VersionStream: _COMPANIONS,
    Resequencer: (_OWING, "/_ledger/receptions/[]/held/*", "/_ledger/receptions/[]/gap_since/?"),
}


def searched(strategy: Strategy) -> tuple[str, ...]:
    """The paths by which the sweeper searches the container of a strategy's entities; none for strategies of others."""
    return next((paths for kind, paths in _BY_STRATEGY.items() if isinstance(strategy, kind)), ())


def unindexed(policy: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """The paths that a container's indexing policy does not index.

    Args:
        policy: of the container's properties; an empty one is the service's default, which indexes everything.
        paths: each ends with `/?`, for one value, or `/*`, for everything below.
    """
    if policy.get("indexingMode", "consistent").lower() == "none":
        return list(paths)
    included = [one["path"] for one in policy.get("includedPaths", [{"path": "/*"}])]
    excluded = [one["path"] for one in policy.get("excludedPaths", [])]
    return [path for path in paths if _closeness(included, path) <= _closeness(excluded, path)]


def _closeness(entries: Sequence[str], path: str) -> int:
    """How closely the nearest of the entries names a path; 0 for none of them. The service takes the closer of two."""
    return max(
        (len(one) for one in entries if one == path or (one.endswith("*") and path.startswith(one[:-1]))), default=0
    )
