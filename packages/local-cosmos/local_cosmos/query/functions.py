"""The built-in functions. One that gets an argument of a type it does not expect is undefined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.query.calculating import is_number
from local_cosmos.query.comparing import equal, is_primitive
from local_cosmos.values import UNDEFINED


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in function.

    Attributes:
        call: Gets the arguments' values.
        fewest, most: How many arguments it takes.
    """

    call: Callable[..., Any]
    fewest: int
    most: int


def _on_strings(test: Callable[[str, str], bool]) -> Function:
    """A test of two strings, with an optional third argument: true to ignore case."""

    def call(text: Any, part: Any, ignore_case: Any = False) -> Any:
        if not isinstance(text, str) or not isinstance(part, str) or not isinstance(ignore_case, bool):
            return UNDEFINED
        return test(text.lower(), part.lower()) if ignore_case else test(text, part)

    return Function(call, 2, 3)


def _is(test: Callable[[Any], bool]) -> Function:
    return Function(test, 1, 1)


def _array_contains(hay: Any, needle: Any, partial: Any = False) -> Any:
    """Whether an array holds a value; with `partial`, an object of which the needle is a part."""
    if not isinstance(hay, list) or needle is UNDEFINED or not isinstance(partial, bool):
        return UNDEFINED
    same = _is_part_of if partial else equal
    return any(same(needle, value) for value in hay)


def _is_part_of(needle: Any, value: Any) -> bool:
    if not isinstance(needle, dict):
        return equal(needle, value)
    return isinstance(value, dict) and all(name in value and equal(needle[name], value[name]) for name in needle)


def _array_length(array: Any) -> Any:
    return len(array) if isinstance(array, list) else UNDEFINED


FUNCTIONS: Final[Mapping[str, Function]] = {
    "ARRAY_CONTAINS": Function(_array_contains, 2, 3),
    "ARRAY_LENGTH": Function(_array_length, 1, 1),
    "CONTAINS": _on_strings(lambda text, part: part in text),
    "ENDSWITH": _on_strings(str.endswith),
    "STARTSWITH": _on_strings(str.startswith),
    "STRINGEQUALS": _on_strings(lambda text, other: text == other),
    "IS_DEFINED": _is(lambda value: value is not UNDEFINED),
    "IS_NULL": _is(lambda value: value is None),
    "IS_BOOL": _is(lambda value: isinstance(value, bool)),
    "IS_BOOLEAN": _is(lambda value: isinstance(value, bool)),  # As azure-cosmos for Java writes it.
    "IS_NUMBER": _is(is_number),
    "IS_STRING": _is(lambda value: isinstance(value, str)),
    "IS_ARRAY": _is(lambda value: isinstance(value, list)),
    "IS_OBJECT": _is(lambda value: isinstance(value, dict)),
    "IS_PRIMITIVE": _is(is_primitive),
}
"""Functions of one row, by name."""
