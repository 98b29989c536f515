"""What WHERE demands of an item's properties: values for which an index can be asked.

Only demands that hold for every row count, so what an index finds is never too little; WHERE is evaluated all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from local_cosmos.query.comparing import is_primitive
from local_cosmos.query.tree import And, Call, Compare, Constant, Expression, In, Parameter, Path, Query
from local_cosmos.storage.index import key_of
from local_cosmos.storage.items import PropertyPath, Range
from local_cosmos.values import UNDEFINED

_ENDS: Final[Mapping[int, tuple[Any, Any]]] = {1: (0, 0), 2: (0, 1), 3: (-math.inf, math.inf), 4: (b"", b"\xff")}
"""The least and the greatest value of each type, by rank."""

_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST: Final = 100
"""Values in a list that an index is asked for."""

Demands = dict[PropertyPath, list[Range]]
"""By path, the ranges one of which has the value."""


def demands(query: Query, parameters: Mapping[str, Any]) -> Demands:
    """What WHERE demands of the items' properties."""
    found: Demands = {}
    if [source.alias for source in query.sources].count(query.item or "") == 1:
        for path, ranges in _all(query.where, parameters):
            names = tuple(step for step in path.steps if isinstance(step, str))
            if path.alias == query.item and names == path.steps and names:
                found[names] = _both(found[names], ranges) if names in found else ranges
    return found


def _all(where: Expression | None, parameters: Mapping[str, Any]) -> Iterator[tuple[Path, list[Range]]]:
    """The demands of all parts that must be true."""

    def value(expression: Expression) -> Any:
        """Of a constant; undefined, which no index knows, for any other expression."""
        match expression:
            case Constant(known):
                return known
            case Parameter(name):
                return parameters.get(name, UNDEFINED)
        return UNDEFINED

    match where:
        case And(parts):
            for part in parts:
                yield from _all(part, parameters)
        case Compare(operator, Path() as path, other) if is_primitive(value(other)) and operator in _TURNED:
            yield path, [_range(operator, value(other))]
        case Compare(operator, other, Path() as path) if is_primitive(value(other)) and operator in _TURNED:
            yield path, [_range(_TURNED[operator], value(other))]
        case In(Path() as path, hay) if len(hay) <= _MOST and all(is_primitive(value(item)) for item in hay):
            yield path, list(dict.fromkeys(_range("=", value(item)) for item in hay))
        case Call("STARTSWITH", (Path() as path, beginning)) if isinstance(value(beginning), str):
            (start,) = [_range("=", value(beginning))]
            yield path, [start._replace(high=start.low + b"\xff")]


def _range(operator: str, value: Any) -> Range:
    """The range of values for which a comparison with this one may be true."""
    kind, key = key_of(value) or (0, None)
    least, greatest = _ENDS[kind]
    return Range(kind, least if operator in ("<", "<=") else key, greatest if operator in (">", ">=") else key)


def _both(some: list[Range], others: list[Range]) -> list[Range]:
    """The values that are in a range of either list."""
    common = (
        Range(item.rank, max(item.low, other.low), min(item.high, other.high))
        for item in some
        for other in others
        if item.rank == other.rank
    )
    return [item for item in common if item.low <= item.high]


def partition_key_of(query: Query, parameters: Mapping[str, Any], paths: Sequence[tuple[str, ...]]) -> list[Any] | None:
    """The values of the partition key that WHERE names; None where it does not name all of them.

    Args:
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
