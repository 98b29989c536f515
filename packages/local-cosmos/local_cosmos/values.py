"""JSON values as Cosmos DB knows them: the six JSON types, IEEE-754 numbers, and `undefined` for what is not there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

DEEPEST: Final = 128
"""Levels of objects and arrays that the service documents as its limit."""

_LONGEST_EXACT_INTEGER = 15
"""Decimal digits that a double always keeps."""


class Undefined:
    """The value of a property that is absent. There is one, `UNDEFINED`; compare with `is`."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()


class MalformedJsonError(ValueError):
    """The text is not JSON."""


def parse(text: str | bytes) -> Any:
    """Parse JSON; numbers keep what a double keeps, as in the service.

    Raises:
        MalformedJsonError: The text is not JSON (`NaN` and `Infinity` are not), or nested too deeply.
    """
    try:
        value = _DECODER.decode(_decoded(text))
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedJsonError(str(error)) from error
    if is_too_deep(value, text):
        raise MalformedJsonError(f"it is nested more than {DEEPEST} levels deep")
    return value


def serialise(value: Any) -> bytes:
    """The compact JSON text of a value, in UTF-8: what the service's limits count.

    Raises:
        OverflowError: A number is beyond what a double holds.
    """
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:  # Half a surrogate pair can only be written escaped.
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise OverflowError(str(error)) from error


def parse_own(text: bytes) -> Any:
    """Parse what `serialise` has written of a parsed value, which needs no checks."""
    return json.loads(text)


def is_too_deep(value: Any, text: str | bytes) -> bool:
    """Whether a value has more levels than the service allows; `text` is its JSON, which mostly tells at once."""
    brackets = text.count("{") + text.count("[") if isinstance(text, str) else text.count(b"{") + text.count(b"[")
    if brackets <= DEEPEST:
        return False
    depth, level = 0, [value]
    while level := [value for value in level if isinstance(value, dict | list)]:
        depth += 1
        if depth > DEEPEST:
            return True
        level = [inner for value in level for inner in (value.values() if isinstance(value, dict) else value)]
    return False


def follow(document: Any, path: Sequence[str]) -> Any:
    """The value at a path of property names, `UNDEFINED` when there is none."""
    value = document
    for name in path:
        if not isinstance(value, dict):
            return UNDEFINED
        value = value.get(name, UNDEFINED)
    return value


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_EXACT_INTEGER else int(float(digits))


def _double(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a double")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Made once: `json.loads` and `json.dumps` make new ones for every call with such options.
_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_double, parse_constant=_refuse_constant)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
