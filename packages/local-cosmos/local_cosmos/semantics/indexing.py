"""The indexing policy of a container, as far as it decides what ORDER BY gives. Queries look at every item all the same.

Documented behaviour ("ORDER BY clause", "Indexing policies in Azure Cosmos DB"): ORDER BY needs an index on its path, and on
several paths a composite one. By the default policy, which includes `/*`, items that lack the property are left out; where a
policy names the path, and with a composite index, they are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.semantics.errors import bad_request
from local_cosmos.values import JsonObject

DEFAULT: Final[Mapping[str, Any]] = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}
"""The policy of a container that states none."""

_PARTS: Final = frozenset({*DEFAULT, "compositeIndexes", "spatialIndexes"})
_STEP: Final = re.compile(r'/(?:"((?:[^"\\]|\\.)*)"|([^/"]+))')
ALWAYS: Final = frozenset({("id",), ("_ts",)})
"""Paths that every item has."""
_ORDERS: Final = {"ascending": False, "descending": True}
_FEWEST: Final = 2
"""Paths of a composite index."""

_ROOT: Final = "/"
"""Includes or excludes everything, as `/*` does."""

_Path = tuple[str, ...]
Sorted = tuple[_Path, bool]
"""A path, and whether it is descending."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """An indexing policy.

    Attributes:
        included, excluded: Paths that end with `?` (this value) or `*` (all below).
        composite: The parts of each composite index.
        is_on: Whether there are indexes at all.
    """

    included: tuple[_Path, ...]
    excluded: tuple[_Path, ...]
    composite: tuple[tuple[Sorted, ...], ...] = ()
    is_on: bool = True

    @classmethod
    def parse(cls, policy: Mapping[str, Any]) -> Indexing:
        """Read a policy that is `completed`.

        Raises:
            RefusedError: 400; not valid, or it has indexes of a kind that is not supported.
        """
        if unknown := sorted(name for name, value in policy.items() if value and name not in _PARTS):
            raise bad_request(f"This emulator does not support {unknown[0]!r} of an indexing policy.")
        mode = str(policy.get("indexingMode", "consistent")).lower()
        if mode not in ("consistent", "lazy", "none"):
            raise bad_request(f"The indexing mode is consistent, lazy or none, not {mode!r}.")
        paths = {name: _listed(policy, name) for name in ("includedPaths", "excludedPaths", "compositeIndexes")}
        return cls(
            tuple(map(_steps, paths["includedPaths"])),
            tuple(map(_steps, paths["excludedPaths"])),
            tuple(map(_composite, paths["compositeIndexes"])),
            is_on=mode != "none",
        )

    def leaves_out(self, order: Sequence[Sorted]) -> bool:
        """Whether ORDER BY leaves out items that lack its property.

        Raises:
            RefusedError: 400; there is no index for this order.
        """
        if len(order) > 1:
            turned = tuple((path, not descending) for path, descending in order)
            if not {tuple(order), turned} & set(self.composite):
                raise bad_request(
                    "The order by query does not have a corresponding composite index that it can be served from."
                )
            return False
        ((path, _),) = order
        if path in ALWAYS:
            return False
        if not self.has(path):
            raise bad_request("The index path corresponding to the specified order-by item is excluded.")
        return _closest(self.included, path) == 0

    def require_named(self, path: _Path) -> None:
        """Refuse to sort by a computed property that no path of the policy, or part of a composite index, names.

        Raises:
            RefusedError: 400.
        """
        is_composed = any(path == part for parts in self.composite for part, _ in parts)
        if not is_composed and _closest(self.included, path) <= 0:
            raise bad_request("The index path corresponding to the specified order-by item is excluded.")

    def has(self, path: _Path) -> bool:
        """Whether values at a path are indexed."""
        return path in ALWAYS or (self.is_on and _closest(self.included, path) > _closest(self.excluded, path))


def completed(policy: object) -> JsonObject:
    """A policy as the service stores it: with defaults for the parts that are not given, and without an index of ETags.

    Raises:
        RefusedError: 400; it is no object, or its paths are no lists.
    """
    if not isinstance(policy, Mapping):
        raise bad_request("An indexing policy is an object.")
    included, excluded = _listed(policy, "includedPaths"), _listed(policy, "excludedPaths")
    if str(policy.get("indexingMode", "")).lower() == "none":
        return dict(policy)
    if not included and not excluded:
        included = DEFAULT["includedPaths"]
    excluded = [*excluded, *(item for item in DEFAULT["excludedPaths"] if item not in excluded)]
    included = [_without_kinds(item) for item in included]
    return {**DEFAULT, **policy, "includedPaths": included, "excludedPaths": excluded}


def _without_kinds(given: object) -> object:
    """An included path without the kinds of indexes that older clients state: the service keeps none of them."""
    return {name: value for name, value in given.items() if name != "indexes"} if isinstance(given, dict) else given


def _closest(patterns: Sequence[_Path], path: _Path) -> int:
    """How many steps of a path the closest pattern names; one more where it names the value itself; -1 if none covers it."""
    exact = len(path) + 1 if (*path, "?") in patterns else -1
    above = (
        len(pattern) - 1 for pattern in patterns if pattern[-1] == "*" and path[: len(pattern) - 1] == pattern[:-1]
    )
    return max(exact, *above, -1)


def _listed(policy: Mapping[str, Any], name: str) -> list[Any]:
    given = policy.get(name) or []
    if not isinstance(given, list):
        raise bad_request(f"{name} of an indexing policy is a list.")
    return given


def _steps(given: object) -> _Path:
    """The steps of `{"path": "/a/\\"b c\\"/?"}`."""
    if isinstance(given, dict) and given.get("path") == _ROOT:
        return ("*",)
    steps = _path(given)
    if steps[-1:] not in (("?",), ("*",)):
        raise bad_request(f"A path of an indexing policy ends with /? or /*; this is {given!r}.")
    return steps


def _path(given: object) -> _Path:
    text = given.get("path") if isinstance(given, dict) else None
    if not isinstance(text, str) or not (match := re.fullmatch(f"(?:{_STEP.pattern})+", text)):
        raise bad_request(f"{given!r} is no path of an indexing policy.")
    return tuple(quoted or plain for quoted, plain in _STEP.findall(match[0]))


def _composite(given: object) -> tuple[Sorted, ...]:
    if not isinstance(given, list) or len(given) < _FEWEST:
        raise bad_request("A composite index is a list of at least two paths.")
    return tuple((_path(part), _descending(part)) for part in given)


def _descending(part: JsonObject) -> bool:
    order = str(part.get("order", "ascending")).lower()
    if order not in _ORDERS:
        raise bad_request(f"The order of a path in a composite index is ascending or descending, not {order!r}.")
    return _ORDERS[order]
