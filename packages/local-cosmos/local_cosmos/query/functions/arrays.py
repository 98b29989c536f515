"""Functions on arrays, sets and objects, and those that choose one of several values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any, Final

from local_cosmos.query.aggregates import AGGREGATES
from local_cosmos.query.calculating import is_number, number
from local_cosmos.query.comparing import distinct, equal, identity
from local_cosmos.query.functions.signature import (
    Function,
    any_number_of,
    anything,
    function,
    is_array,
    is_boolean,
    is_defined,
    is_integer,
    is_object,
    is_string,
)
from local_cosmos.values import UNDEFINED


def _contains(hay: list[Any], needle: Any, partial: bool = False) -> bool:
    """Whether an array holds a value; with `partial`, an object of which the needle is a part."""
    same = _is_part_of if partial else equal
    return any(same(needle, value) for value in hay)


def _is_part_of(needle: Any, value: Any) -> bool:
    if not isinstance(needle, dict):
        return equal(needle, value)
    return isinstance(value, dict) and all(name in value and equal(needle[name], value[name]) for name in needle)


def _contains_those(of: Callable[[Iterable[bool]], bool]) -> Function:
    """Whether an array holds all, or any, of the further arguments."""

    def call(hay: Any, *needles: Any) -> Any:
        return of(_contains(hay, needle) for needle in needles) if is_array(hay) else UNDEFINED

    return any_number_of(call, is_defined, 2)


def _slice(array: list[Any], start: float, length: float | None = None) -> list[Any]:
    """From a place, counted from the end if it is negative; so many elements, or all."""
    first = int(start) if start >= 0 else max(0, len(array) + int(start))
    return array[first:] if length is None else array[first : first + max(0, int(length))]


def _of_numbers(calculate: Callable[[list[Any]], Any]) -> Function:
    return function(lambda array: calculate(array) if array and all(map(is_number, array)) else UNDEFINED, is_array)


def _intersection(item: list[Any], other: list[Any]) -> list[Any]:
    known = set(map(identity, item))
    return distinct(value for value in other if identity(value) in known)


def _difference(item: list[Any], other: list[Any]) -> list[Any]:
    gone = set(map(identity, other))
    return distinct(value for value in item if identity(value) not in gone)


def _pairs(value: dict[str, Any], key: str = "k", content: str = "v") -> list[dict[str, Any]]:
    return [{key: name, content: inner} for name, inner in value.items()]


def _choose(place: float, *values: Any) -> Any:
    """The value at a place, counted from 1."""
    return values[int(place) - 1] if is_integer(place) and 1 <= place <= len(values) else UNDEFINED


def _either(condition: Any, then: Any, otherwise: Any) -> Any:
    return then if condition is True else otherwise


FUNCTIONS: Final[Mapping[str, Function]] = {
    "ARRAY_AVG": _of_numbers(AGGREGATES["AVG"]),
    "ARRAY_CONCAT": any_number_of(lambda *arrays: [value for array in arrays for value in array], is_array, 2),
    "ARRAY_CONTAINS": function(_contains, is_array, is_defined, is_boolean, optional=1),
    "ARRAY_CONTAINS_ALL": _contains_those(all),
    "ARRAY_CONTAINS_ANY": _contains_those(any),
    "ARRAY_LENGTH": function(len, is_array),
    "ARRAY_MAX": _of_numbers(AGGREGATES["MAX"]),
    "ARRAY_MEDIAN": _of_numbers(lambda array: number(median(array))),
    "ARRAY_MIN": _of_numbers(AGGREGATES["MIN"]),
    "ARRAY_SLICE": function(_slice, is_array, is_integer, is_integer, optional=1),
    "ARRAY_SUM": _of_numbers(AGGREGATES["SUM"]),
    "CHOOSE": any_number_of(_choose, anything, 2),
    "IIF": function(_either, anything, anything, anything),
    "OBJECTTOARRAY": function(_pairs, is_object, is_string, is_string, optional=2),
    "SETDIFFERENCE": function(_difference, is_array, is_array),
    "SETEQUAL": function(lambda item, other: {*map(identity, item)} == {*map(identity, other)}, is_array, is_array),
    "SETINTERSECT": function(_intersection, is_array, is_array),
    "SETUNION": function(lambda item, other: distinct([*item, *other]), is_array, is_array),
}
