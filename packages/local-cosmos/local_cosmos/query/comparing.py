"""Equality and order of values, as the query language defines them.

A comparison with undefined is undefined. Values of different types are not equal, and neither is less than the other:
that is undefined too. ORDER BY, MIN and MAX order the types: undefined, null, boolean, number, string, array, object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from local_cosmos.values import UNDEFINED, serialise

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_RANKS: Final[Mapping[type, int]] = {type(None): 1, bool: 2, int: 3, float: 3, str: 4, list: 5, dict: 6}
_FIRST_STRUCTURE: Final = 5


def rank(value: object) -> int:
    """The place of a value's type in the order of types."""
    return _RANKS.get(type(value), 0)


def equal(left: Any, right: Any) -> bool:
    """Whether two defined values are the same; unlike in Python, true is not 1."""
    if rank(left) != rank(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
    return bool(left == right)


def compare(operator: str, left: Any, right: Any) -> Any:
    """The result of a comparison: a boolean, or undefined."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    if operator == "=":
        return equal(left, right)
    if operator == "!=":
        return not equal(left, right)
    kind = rank(left)
    if kind != rank(right) or kind >= _FIRST_STRUCTURE:
        return UNDEFINED
    if left is None:
        return operator in {"<=", ">="}
    return _ORDERINGS[operator](left, right)


def sort_key(value: Any) -> tuple[int, Any]:
    """A key that sorts values of all types; structures sort by their text, which the service leaves open."""
    kind = rank(value)
    if value is None or value is UNDEFINED:
        return kind, 0
    return kind, serialise(value) if kind >= _FIRST_STRUCTURE else value


def identity(value: Any) -> bytes:
    """A text that two defined values share exactly if they are equal."""
    return json.dumps(canonical(value), sort_keys=True).encode()


def distinct(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in the order of the first ones."""
    found: dict[bytes, Any] = {}
    for value in values:
        found.setdefault(identity(value), value)
    return list(found.values())


def is_primitive(value: object) -> bool:
    """Whether a value is null, a boolean, a number or a string."""
    return 0 < rank(value) < _FIRST_STRUCTURE


def canonical(value: Any) -> Any:
    """The value with numbers in one form: without a fraction where they have none."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [canonical(element) for element in value]
        case dict():
            return {name: canonical(element) for name, element in value.items()}
    return value
