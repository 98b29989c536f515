"""Unique keys: values that no two items of one logical partition may share.

Documented behaviour ("Unique key constraints in Azure Cosmos DB"): a container has them from its creation and for ever; at most
10 keys, with 16 paths in all and 60 bytes of paths in one; what is missing counts as null, and null as a value like any other;
letters of different case differ. An array or an object at the end of a path, or an array on its way, is refused with 400 here,
since nobody says what it would equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.query.demands import Demands
from local_cosmos.semantics.errors import bad_request, unique_key_taken
from local_cosmos.semantics.partition_keys import canonical, property_names
from local_cosmos.storage.index import key_of
from local_cosmos.storage.items import Range
from local_cosmos.values import UNDEFINED, JsonObject, follow, serialise

MOST_KEYS: Final = 10
MOST_PATHS: Final = 16
MOST_BYTES: Final = 60
_WILDCARDS: Final = frozenset({"*", "?", "[]"})

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The unique keys of a container.

    Attributes:
        keys: The property paths of each.
    """

    keys: tuple[tuple[_Path, ...], ...] = ()

    @classmethod
    def parse(cls, policy: object) -> UniqueKeys:
        """Read `uniqueKeyPolicy` of a container: `{"uniqueKeys": [{"paths": ["/a", "/b/c"]}]}`.

        Raises:
            RefusedError: 400; not valid, or more than there may be.
        """
        if policy in (None, {}, {"uniqueKeys": None}):
            return cls()
        given = policy.get("uniqueKeys") if isinstance(policy, dict) else None
        if not isinstance(given, list) or len(given) > MOST_KEYS:
            raise bad_request(f"The unique keys of a container are a list of at most {MOST_KEYS}.")
        keys = tuple(_paths(key) for key in given)
        if sum(len(paths) for paths in keys) > MOST_PATHS:
            raise bad_request(f"The unique keys of a container may have {MOST_PATHS} paths in all.")
        return cls(keys)

    def require_free(self, document: JsonObject, others: Callable[[Demands], Iterable[JsonObject]]) -> None:
        """Refuse a document that shares the values of a key with another one of its logical partition.

        Args:
            others: Gives at least those others that meet some demands.

        Raises:
            RefusedError: 409, or 400 if nobody says what a value would equal.
        """
        wanted = [_values(document, paths) for paths in self.keys]
        for paths, mine in zip(self.keys, wanted, strict=True):
            if any(_values(other, paths) == mine for other in others(_demands(document, paths))):
                raise unique_key_taken()


def _values(document: JsonObject, paths: Iterable[_Path]) -> bytes:
    """The values of a key; equal texts are equal values."""
    return serialise([_value(document, path) for path in paths])


def _demands(document: JsonObject, paths: Iterable[_Path]) -> Demands:
    """What those have in common that share the values of a key: where one is null, others may lack it."""
    keys = {path: key_of(follow(document, path)) for path in paths if _value(document, path) is not None}
    return {path: [Range(key[0], key[1], key[1])] for path, key in keys.items() if key is not None}


def _paths(key: object) -> tuple[_Path, ...]:
    given = key.get("paths") if isinstance(key, dict) else None
    if not isinstance(given, list) or not given or not all(isinstance(path, str) for path in given):
        raise bad_request("Every unique key has a list of paths.")
    paths = tuple(property_names(path, "unique key") for path in given)
    if any(not _WILDCARDS.isdisjoint(path) for path in paths) or len(set(paths)) < len(paths):
        raise bad_request("The paths of a unique key have no wildcards, and each is there once.")
    if sum(len(path.encode("utf-8", "replace")) for path in given) > MOST_BYTES:
        raise bad_request(f"The paths of a unique key may have {MOST_BYTES} bytes together.")
    return paths


def _value(document: JsonObject, path: _Path) -> Any:
    steps = [follow(document, path[:length]) for length in range(1, len(path) + 1)]
    if any(isinstance(step, list) for step in steps) or isinstance(steps[-1], dict):
        raise bad_request(
            f"What an item has at the unique key path /{'/'.join(path)} is an array, an object, or in an array."
        )
    return None if steps[-1] is UNDEFINED else canonical(steps[-1])
