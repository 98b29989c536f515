"""JSON values as Cosmos DB knows them: the six JSON types, IEEE-754 numbers, and `undefined` for what is not there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

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
        MalformedJsonError: The text is not JSON (`NaN` and `Infinity` are not).
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_double, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedJsonError(str(error)) from error


def serialise(value: Any) -> bytes:
    """The compact JSON text of a value, in UTF-8: what the service's limits count."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # Half a surrogate pair can only be written escaped.
        return json.dumps(value, separators=(",", ":")).encode()


def follow(document: Any, path: Sequence[str]) -> Any:
    """The value at a path of property names, `UNDEFINED` when there is none."""
    value = document
    for name in path:
        if not isinstance(value, dict):
            return UNDEFINED
        value = value.get(name, UNDEFINED)
    return value


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_EXACT_INTEGER else int(float(digits))


def _double(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a double")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
