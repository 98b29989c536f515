"""JSON as an immutable, hashable value, and the one parser of JSON that others wrote.

Effects and replies must be frozen and hashable, since the model checker compares and shares them, and documents travel in
them. Holding the text makes both structural: nobody can change a string.

A number keeps its digits. Parsers make doubles of fractions, and 99999999999999.99 is no double: it would become another
amount, without an error. So a number that a double would change is a `Decimal` here, and is written as the same number again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pydantic_core import CoreSchema, core_schema

MAX_NESTING: Final = 100
"""Most levels of lists and objects in each other that are read. Near the interpreter's own limit it would depend on the reader
whether it can read what another one has read."""
MAX_NUMBER_LENGTH: Final = 1_000
"""Longest fraction that is read, in characters. A longer one costs more than it can mean."""

_WRITER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""One for all: `json.dumps` with these settings would make a new one at every call, for more than it takes to write."""
_LONG: Final = re.compile(r"[0-9.]{16}|[eE]-")
"""What a number has that a double may change: more than 15 digits, or next to nothing."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a surrogate pair; its other half may follow."""


def is_json(media_type: str) -> bool:
    """Whether a body of this `Content-Type` is JSON, as far as its sender says."""
    name = media_type.partition(";")[0].strip().lower()
    return name in ("application/json", "text/json") or name.endswith("+json")


def read_json(body: bytes | str, *, nesting: int = MAX_NESTING) -> Any:
    """Read JSON that somebody else wrote: a request's body, a message, a file.

    `json.loads` and pydantic's `model_validate_json` change numbers that have more digits than a double keeps. Here such a
    number is a `Decimal`, or an `int` where it is whole. A model makes of it what its field is declared to be: exactly the
    number of a `Decimal` field, the nearest double of a `float` field.

    Args:
        body: in UTF-8, with a byte order mark or without.
        nesting: most levels of lists and objects in each other.

    Returns:
        dicts, lists, strings, numbers, booleans and None.

    Raises:
        ValueError: it is not JSON that every parser reads alike. Besides wrong syntax that is: another encoding, half a
            surrogate pair, a property that comes twice, NaN and infinities, a number beyond every double, a fraction of more
            than 1,000 characters, deep nesting. The text quotes nothing of the body.
    """
    try:
        text = (body.encode() if isinstance(body, str) else body).decode()
        value = _FOREIGN.decode(text.removeprefix("\ufeff"))
        if text.count("[") + text.count("{") > nesting and _is_deeper(value, nesting):
            raise RecursionError
        if _HALF.search(text):
            Json.of(value)
    except UnicodeError:
        raise ValueError("It is not UTF-8, or has half a surrogate pair.") from None
    except RecursionError:
        raise ValueError(f"It has more than {nesting} levels of lists and objects in each other.") from None
    except ValueError as error:  # Anew: the error of the parser carries the whole text.
        raise ValueError(f"{str(error).removesuffix('.')}.") from None
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for part in level
            for inner in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
        ]
    return any(isinstance(part, dict | list) for part in level)


def canonical(value: Any) -> Any:
    """A value in one form of several that are the same to JSON: properties sorted, and 1 for 1.0."""
    if isinstance(value, dict):
        return {name: canonical(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [canonical(part) for part in value]
    return int(Decimal(repr(value))) if isinstance(value, float) and value.is_integer() else value


def changed_by_doubles(body: bytes | str) -> str | None:
    """The place of a number that a parser which knows doubles only would change, such as `lines.0.price`; None for none.

    Args:
        body: JSON that `read_json` has read.
    """
    text = body if isinstance(body, str) else body.decode()
    if not _LONG.search(text):
        return None
    changed: list[object] = []

    def number(digits: str) -> object:
        value = _number(digits)
        if isinstance(value, float):
            return value
        changed.append(mark := object())
        return mark

    value = json.JSONDecoder(parse_float=number).decode(text.removeprefix("\ufeff"))
    return ".".join(map(str, _way(value, changed[0]))) or "the whole" if changed else None


def _way(value: Any, sought: object) -> tuple[str | int, ...]:
    """The properties and positions that lead to an object inside of a value."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while waiting:
        part, way = waiting.pop()
        if part is sought:
            return way
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        waiting += [(value, (*way, name)) for name, value in inner]
    raise LookupError("It is not in the value.")


def _number(digits: str) -> float | int | Decimal:
    """A number with a fraction or an exponent: a double where that is the same number."""
    if len(digits) > MAX_NUMBER_LENGTH:
        raise ValueError(f"A number has more than {MAX_NUMBER_LENGTH} characters.")
    number = float(digits)
    shortest = repr(number)
    if shortest == digits:
        return number
    if math.isinf(number) or not (number or _is_zero(digits)):
        raise ValueError("A number is beyond every double.")
    if not number or Decimal(digits) == Decimal(shortest):
        return number
    exact = Decimal(digits)
    whole = int(exact)
    return whole if whole == exact else exact


def _is_zero(digits: str) -> bool:
    return not digits.lower().partition("e")[0].strip("-0.")


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON.")


def _no_name_twice(properties: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Of two properties with one name some parsers take the first, others the last: which amount is meant?"""
    value = dict(properties)
    if len(value) != len(properties):
        raise ValueError("An object has a property twice.")
    return value


_FOREIGN: Final = json.JSONDecoder(parse_float=_number, parse_constant=_no_number, object_pairs_hook=_no_name_twice)
_OWN: Final = json.JSONDecoder(parse_float=_number)


def _written(value: Any) -> str:
    """A value that may hold decimals, which the encoder does not write as numbers."""
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_WRITER.encode({name: 0})[1:-3]}:{_written(part)}" for name, part in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, Decimal) and value.is_finite() else _WRITER.encode(value)


@dataclass(frozen=True, slots=True)
class Json:
    """One JSON value, held as compact text in the order of its properties.

    Make one with `Json.of`; `text` is taken as it is.
    """

    text: str

    @classmethod
    def of(cls, value: Any) -> Json:
        """Freeze a value made of dicts, lists, strings, numbers, booleans and None.

        Raises:
            TypeError: it holds something else.
            ValueError: it holds NaN, an infinity or half a surrogate pair, which UTF-8 does not have; or refers to itself.
        """
        try:
            text = _WRITER.encode(value)
        except TypeError:
            text = _written(value)
        text.encode()
        return cls(text)

    @property
    def value(self) -> Any:
        """A fresh copy that the caller may change. A number that a double would change is a `Decimal`."""
        return _OWN.decode(self.text)

    def plus(self, name: str, value: Json) -> Json:
        """An object with one more property at its end, which it must not have yet. Cheaper than to take it apart."""
        comma = "," if len(self.text) > len("{}") else ""
        return Json(f"{self.text[:-1]}{comma}{_WRITER.encode(name)}:{value.text}}}")

    @property
    def size(self) -> int:
        """Length in bytes, as UTF-8."""
        return len(self.text.encode())

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        """In records it is a string that holds JSON: the store keeps its text to the letter.

        As JSON inside a document it would come back with other numbers: the service knows doubles only.
        """
        return core_schema.no_info_after_validator_function(
            cls._checked,
            core_schema.str_schema(strict=True),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda frozen: frozen.text),
        )

    @classmethod
    def _checked(cls, text: str) -> Json:
        json.loads(text)
        return cls(text)
