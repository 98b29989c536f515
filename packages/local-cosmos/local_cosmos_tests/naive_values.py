"""What the service's documentation says of values and operators, as plainly as it can be written.

It shares nothing with the emulator, which is compared with it. `MISSING` is undefined.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

MISSING: Final = "undefined", object()
TYPES: Final = ("null", "boolean", "number", "string", "array", "object")
"""In the order of ORDER BY."""


def type_of(value: Any) -> str:
    """One of `TYPES`, or `undefined`."""
    if value is MISSING:
        return "undefined"
    if isinstance(value, bool):
        return "boolean"
    kinds: dict[type, str] = {type(None): "null", int: "number", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def have_types(kind: str, *values: Any) -> bool:
    return all(type_of(value) == kind for value in values)


def same(item: Any, other: Any) -> bool:
    """Whether two values are equal; numbers are doubles."""
    if type_of(item) != type_of(other):
        return False
    match type_of(item):
        case "number":
            return float(item) == float(other)
        case "array":
            return len(item) == len(other) and all(same(a, b) for a, b in zip(item, other, strict=True))
        case "object":
            return set(item) == set(other) and all(same(item[name], other[name]) for name in item)
    return bool(item == other)


def is_in(needle: Any, hay: Iterable[Any]) -> bool:
    return any(same(needle, value) for value in hay)


def without_repetitions(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not is_in(value, found):
            found.append(value)
    return found


def compared(operator: str, item: Any, other: Any) -> Any:
    """The result of `=`, `!=`, `<`, `<=`, `>` or `>=`."""
    if MISSING in (item, other):
        return MISSING
    if operator in ("=", "!="):
        return same(item, other) is (operator == "=")
    kind = type_of(item)
    if kind != type_of(other) or kind in ("array", "object"):
        return MISSING
    order = place(item, other)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]


def place(item: Any, other: Any) -> int:
    """Negative if the first of two primitive values comes first in ORDER BY, positive if the other does."""
    kinds = TYPES.index(type_of(item)), TYPES.index(type_of(other))
    if kinds[0] != kinds[1]:
        return kinds[0] - kinds[1]
    if item is None:
        return 0
    if isinstance(item, str):
        item, other = item.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    return int(item > other) - int(item < other)


def in_order(values: Iterable[Any], key: Callable[[Any], Any], *, descending: bool) -> list[Any]:
    """Values whose keys are primitive and differ."""
    return sorted(values, key=cmp_to_key(lambda item, other: place(key(item), key(other))), reverse=descending)


def double(calculate: Callable[..., float], *numbers: Any) -> Any:
    """A result that is finite, from numbers only."""
    if not have_types("number", *numbers):
        return MISSING
    try:
        result = float(calculate(*map(float, numbers)))
    except (ArithmeticError, ValueError):
        return MISSING
    return result if math.isfinite(result) else MISSING


def bits(calculate: Callable[[int, int], int], number: float, other: float) -> int:
    """As JavaScript does it, with signed integers of 32 bits."""
    return ctypes.c_int32(calculate(ctypes.c_int32(int(number)).value, ctypes.c_int32(int(other)).value)).value


CALCULATIONS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda item, other: item + other,
    "-": lambda item, other: item - other,
    "*": lambda item, other: item * other,
    "/": lambda item, other: item / other,
    "%": math.fmod,
    "&": lambda item, other: bits(lambda a, b: a & b, item, other),
    "|": lambda item, other: bits(lambda a, b: a | b, item, other),
    "^": lambda item, other: bits(lambda a, b: a ^ b, item, other),
    "<<": lambda item, other: bits(lambda a, b: a << (b & 31), item, other),
    ">>": lambda item, other: bits(lambda a, b: a >> (b & 31), item, other),
}


def is_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[first:], pattern[1:]) for first in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and is_like(text[1:], pattern[1:])


def both(item: Any, other: Any) -> Any:
    """The documented table of AND."""
    if item is False or other is False:
        return False
    return True if item is True and other is True else MISSING


def either(item: Any, other: Any) -> Any:
    """The documented table of OR."""
    if item is True or other is True:
        return True
    return False if item is False and other is False else MISSING


def negated(value: Any) -> Any:
    return not value if isinstance(value, bool) else MISSING


def aggregated(name: str, values: Sequence[Any]) -> Any:
    """An aggregate of the values of all rows of a group."""
    there = [value for value in values if value is not MISSING]
    if name == "COUNT":
        return len(there)
    if name in ("SUM", "AVG"):
        total = double(lambda *numbers: sum(numbers), *there)
        return total if name == "SUM" or total is MISSING else double(lambda: total / len(there))
    if not there or any(type_of(value) in ("array", "object") for value in there):
        return MISSING
    first, *rest = there
    for value in rest:
        if (place(value, first) < 0) is (name == "MIN"):
            first = value
    return first


def trimmed_slice(values: Any, start: float, length: float) -> Any:
    """So many elements or characters from a place on; places are not negative."""
    return [value for number, value in enumerate(values) if start <= number < start + max(0, length)]


def is_integer(*values: Any) -> bool:
    return all(have_types("number", value) and float(value).is_integer() for value in values)


def rounded(value: float) -> float:
    """Halves go away from zero."""
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


def _strings(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: call(*values) if have_types("string", *values) else MISSING


def _arrays(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: call(*values) if have_types("array", *values) else MISSING


def _numbers(call: Callable[..., float]) -> Callable[..., Any]:
    return lambda *values: double(call, *values)


def _substring(text: Any, start: Any, length: Any) -> Any:
    if not have_types("string", text) or not is_integer(start, length):
        return MISSING
    return "".join(trimmed_slice(text, max(0, start), length))


def _left(text: Any, length: Any) -> Any:
    return _substring(text, 0, length)


def _contains(hay: Any, needle: Any) -> Any:
    return is_in(needle, hay) if have_types("array", hay) and needle is not MISSING else MISSING


def _has_part(text: Any, part: Any) -> Any:
    return part in text if have_types("string", text, part) else MISSING


def _lowered(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: call(*(value.lower() if have_types("string", value) else value for value in values))


def _places(text: str, part: str) -> list[int]:
    """Where a part stands in a text."""
    return [place for place in range(len(text) + 1) if text[place : place + len(part)] == part]


def _after(text: str, delimiter: str) -> Any:
    places = _places(text, delimiter) if delimiter else []
    return text[places[0] + len(delimiter) :] if places else MISSING


def _before_the_last(text: str, delimiter: str) -> Any:
    places = _places(text, delimiter) if delimiter else []
    return text[: places[-1]] if places else MISSING


FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., Any]]]] = {
    "ABS": (1, _numbers(abs)),
    "ARRAY_CONCAT": (2, _arrays(lambda item, other: [*item, *other])),
    "ARRAY_CONTAINS": (2, _contains),
    "ARRAY_LENGTH": (1, _arrays(len)),
    "CEILING": (1, _numbers(math.ceil)),
    "CONCAT": (2, _strings(lambda item, other: item + other)),
    "CONTAINS": (2, _strings(lambda text, part: part in text)),
    "CONTAINS_ALL_CI": (3, _lowered(lambda text, a, b: both(_has_part(text, a), _has_part(text, b)))),
    "CONTAINS_ANY_CS": (3, lambda text, a, b: either(_has_part(text, a), _has_part(text, b))),
    "ENDSWITH": (2, _strings(lambda text, part: text[len(text) - len(part) :] == part and len(part) <= len(text))),
    "FLOOR": (1, _numbers(math.floor)),
    "IIF": (3, lambda condition, then, otherwise: then if condition is True else otherwise),
    "INDEX_OF": (2, _strings(lambda text, part: text.find(part))),
    "IS_ARRAY": (1, lambda value: have_types("array", value)),
    "IS_BOOL": (1, lambda value: have_types("boolean", value)),
    "IS_DEFINED": (1, lambda value: value is not MISSING),
    "IS_INTEGER": (1, lambda value: is_integer(value) and abs(value) < 2**63),
    "IS_NULL": (1, lambda value: value is None),
    "IS_NUMBER": (1, lambda value: have_types("number", value)),
    "IS_OBJECT": (1, lambda value: have_types("object", value)),
    "IS_PRIMITIVE": (1, lambda value: type_of(value) not in ("undefined", "array", "object")),
    "IS_STRING": (1, lambda value: have_types("string", value)),
    "LASTINDEXOF": (2, _strings(lambda text, part: max(_places(text, part), default=-1))),
    "LASTSUBSTRINGBEFORE": (2, _strings(_before_the_last)),
    "LEFT": (2, _left),
    "LENGTH": (1, _strings(len)),
    "LOWER": (1, _strings(str.lower)),
    "POWER": (2, _numbers(math.pow)),
    "REPLACE": (3, _strings(lambda text, old, new: new.join(text.split(old)) if old else text)),
    "REVERSE": (1, _strings(lambda text: "".join(reversed(text)))),
    "ROUND": (1, _numbers(rounded)),
    "SETINTERSECT": (2, _arrays(lambda a, b: without_repetitions(value for value in b if is_in(value, a)))),
    "SETUNION": (2, _arrays(lambda item, other: without_repetitions([*item, *other]))),
    "SIGN": (1, _numbers(lambda value: int(value > 0) - int(value < 0))),
    "SQUARE": (1, _numbers(lambda value: value * value)),
    "STARTSWITH": (2, _strings(lambda text, part: text[: len(part)] == part)),
    "STRINGEQUALS": (2, _strings(lambda item, other: item == other)),
    "SUBSTRING": (3, _substring),
    "SUBSTRINGAFTER": (2, _strings(_after)),
    "TRUNC": (1, _numbers(math.trunc)),
    "UPPER": (1, _strings(str.upper)),
}
"""By name, how many arguments a function takes, and what it does."""
