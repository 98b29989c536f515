"""The one partition key that a query can find items of: what its WHERE demands of the key's paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local_cosmos.query.tree import And, Compare, Constant, Expression, Parameter, Path, Query
from local_cosmos.values import UNDEFINED


def partition_key_of(query: Query, parameters: Mapping[str, Any], paths: Sequence[tuple[str, ...]]) -> list[Any] | None:
    """The values of the partition key that WHERE names; None where it does not name all of them.

    Args:
        query: The parsed query.
        parameters: Values by name, the name with its `@`.
        paths: Of the container's partition key.
    """
    demanded = {path.steps: value for path, value in _equalities(query.where) if path.alias == query.item}
    values = [_value(demanded.get(path), parameters) for path in paths]
    return None if UNDEFINED in values else values


def _value(demanded: Constant | Parameter | None, parameters: Mapping[str, Any]) -> Any:
    """What a path has to be equal to; undefined, to which nothing is equal, where that is not said."""
    match demanded:
        case Constant(value):
            return value
        case Parameter(name):
            return parameters.get(name, UNDEFINED)
    return UNDEFINED


def _equalities(where: Expression | None) -> Iterator[tuple[Path, Constant | Parameter]]:
    """The equalities that hold for every row."""
    match where:
        case And(parts):
            for part in parts:
                yield from _equalities(part)
        case Compare("=", Path() as path, Constant() | Parameter() as value):
            yield path, value
        case Compare("=", Constant() | Parameter() as value, Path() as path):
            yield path, value
