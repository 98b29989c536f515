"""JSON as an immutable, hashable value, and the one parser of JSON that others wrote.

Effects and replies must be frozen and hashable, since the model checker compares and shares them, and documents travel in
them. Holding the text makes both structural: nobody can change a string.

A number keeps its digits. Parsers make doubles of fractions, and 99999999999999.99 is no double: it would become another
amount, without an error. So a number that a double would change is a `Decimal` here, and is written as the same number again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from itertools import chain, repeat
from operator import eq
from typing import Any, Final, TypeVar

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticKnownError, SchemaValidator, core_schema

from exactlyonce.errors import DamagedDocument, NewerSchema

MAX_NESTING: Final = 100
"""Most levels of lists and objects in each other that are read. Near the interpreter's own limit it would depend on the reader
whether it can read what another one has read."""
MAX_NUMBER_LENGTH: Final = 1_000
"""Longest fraction that is read, in characters. A longer one costs more than it can mean."""

_WRITER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""One for all: `json.dumps` with these settings would make a new one at every call, for more than it takes to write."""
_SURE_DIGITS: Final = 15
"""Significant digits that every double keeps, whichever parser reads and writes it."""
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
    return _place_of(body, lambda number: not isinstance(number, float))


def has_digits_in_doubt(text: str) -> bool:
    """Whether JSON has a number whose digits depend on the parser: from 16 significant digits on, two texts may be one double.

    600000000000000.2 and 600000000000000.3 are such texts. Python shows the first, Pydantic reads a `Decimal` as the second.
    """
    return _place_of(text, _is_in_doubt) is not None


def _place_of(body: bytes | str, is_sought: Callable[[Any], bool]) -> str | None:
    """The place of the first long number that is sought."""
    text = body if isinstance(body, str) else body.decode()
    if not _LONG.search(text):
        return None
    sought: list[object] = []

    def number(digits: str) -> object:
        value = _number(digits)
        if not is_sought(value):
            return value
        sought.append(mark := object())
        return mark

    value = json.JSONDecoder(parse_float=number).decode(text.removeprefix("\ufeff"))
    return ".".join(map(str, _way(value, sought[0]))) or "the whole" if sought else None


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


def _is_in_doubt(number: float | int | Decimal) -> bool:
    return not isinstance(number, float) or len(Decimal(repr(number)).as_tuple().digits) > _SURE_DIGITS


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


# Validating with pydantic, and telling what is wrong without quoting what was read.


_MOST_MISFITS: Final = 5
_LONGEST_NAME: Final = 40
_FORBIDDEN: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""Errors whose place ends with a name that a model forbids: it is the sender's."""
_NAME: Final = re.compile(rf"[A-Za-z0-9_$-]{{1,{_LONGEST_NAME}}}")


def adapter(model: Any) -> TypeAdapter[Any]:
    """The validator of a model; built on first use, when all names its annotations refer to exist."""
    return _adapter(model)


def problems(error: ValidationError, model: Any = None, *, is_quoted: bool = True) -> str:
    """What does not fit and where, without the values: they may hold what a log must not.

    Args:
        error: of the validation.
        model: what was read. Of places only the names of its properties are quoted: keys of mappings are values.
            None where all names are the library's own, or only their sender reads them.
        is_quoted: whether the words of a model's own validators are quoted, where `model` is None: they may hold a value.
    """
    names = None if model is None else _names(model)
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"{_path(one['loc'], names, forbidden=one['type'] in _FORBIDDEN)}: "
        f"{_said(one, is_quoted=is_quoted and model is None)}"
        for one in found
    )


def raised_in(error: ValidationError) -> BaseException | None:
    """The exception with which a validator of the model's own refused a value, the first one; None if there is none."""
    found = error.errors(include_input=False, include_url=False)
    raised = (one.get("ctx", {}).get("error") for one in found)
    return next((one for one in raised if isinstance(one, BaseException)), None)


def _said(one: ErrorDetails, *, is_quoted: bool) -> str:
    """What pydantic says; of a validator of the model's own, whose words may quote a value, only that it refused."""
    is_own = one["type"] in ("value_error", "assertion_error")
    return "a validator of the model refused it" if is_own and not is_quoted else one["msg"]


def _path(location: tuple[int | str, ...], names: frozenset[str] | None, *, forbidden: bool) -> str:
    parts = [str(part) if names is None or isinstance(part, int) or part in names else "…" for part in location]
    if location:
        parts[0] = shown(location[0])
    if forbidden:
        parts[-1] = shown(location[-1])
    return ".".join(parts) or "the whole"


@cache
def _names(model: Any) -> frozenset[str]:
    """Names of all properties that a model has, at any depth."""
    try:
        waiting: list[Any] = [adapter(model).json_schema()]
    except PydanticUserError:  # It has a type that no JSON schema describes.
        return frozenset()
    found: set[str] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found.update(part.get("properties", ()))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return frozenset(found)


def misfits(error: ValidationError, model: type) -> str:
    """What does not fit, without any value of what was read, so that it can be stored.

    Of places only the model's own fields are named, since names inside of a mapping are values; and properties that a model
    forbids, as `shown`. Of messages only the constant ones of pydantic are quoted: others have parts of the input in them, or
    the words of a validator.
    """
    fields = getattr(model, "model_fields", {})
    own = {info.validation_alias if isinstance(info.validation_alias, str) else name for name, info in fields.items()}
    own |= {field.name for field in dataclasses.fields(model)} if dataclasses.is_dataclass(model) else set()
    found = error.errors(include_input=False, include_url=False, include_context=False)
    lines = (
        f"{_place(one['loc'], own, forbidden=one['type'] in _FORBIDDEN)}: {_constant(one['type'])}" for one in found
    )
    return "; ".join(list(dict.fromkeys(lines))[:_MOST_MISFITS])


def _constant(kind: str) -> str:
    """What pydantic says of a kind of error, if that is the same whatever was read."""
    try:
        return PydanticKnownError(kind).message()  # type: ignore[arg-type]  # A validator's own kind is not among these.
    except (KeyError, TypeError):
        return "does not fit"


def _place(location: tuple[int | str, ...], own: set[str], *, forbidden: bool) -> str:
    first = location[0] if location else None
    if first not in own:
        return shown(location[-1]) if forbidden and len(location) == 1 else "the whole"
    inside = f"{first}, inside, {shown(location[-1])}" if forbidden else f"{first}, inside"
    return str(first) if len(location) == 1 else inside


def shown(name: object) -> str:
    """A name that its sender chose, shortened, without characters that could forge a line of a log."""
    text = str(name)
    return text if _NAME.fullmatch(text) else ascii(text[:_LONGEST_NAME])


def unread(model: type, data: Any) -> frozenset[str]:
    """The properties of data that a model does not read, at any depth where models are: what reading it would lose.

    Of places only the names of properties are told, since keys of mappings are values. Nothing is said where a validator gets
    the data before the model does, since it may read anything.
    """
    return frozenset(_unread(adapter(model).core_schema, data, {}) or ())


def _unread(schema: Any, data: Any, definitions: dict[str, Any]) -> set[str] | None:  # noqa: PLR0911  # By kind.
    """What is not read; None where the schema has no names, as that of a number."""
    kind = schema["type"]
    if kind == "definitions":
        return _unread(schema["schema"], data, {one["ref"]: one for one in schema["definitions"]})
    if kind == "definition-ref":
        return _unread(definitions[schema["schema_ref"]], data, definitions)
    if kind in ("model", "dataclass"):
        config = schema.get("config", {})
        inner = {**schema["schema"], "config": {**schema["schema"].get("config", {}), **config}}
        return _unread(inner, data, definitions)
    if kind in ("model-fields", "dataclass-args", "typed-dict"):
        return _unread_by_name(schema, data, definitions) if isinstance(data, dict) else None
    if kind in ("list", "set", "frozenset", "dict", "tuple"):
        return _unread_inside(schema, data, definitions)
    if kind == "union":
        found = [_unread(one[0] if isinstance(one, tuple) else one, data, definitions) for one in schema["choices"]]
        named = [one for one in found if one is not None]
        return set.intersection(*named) if named else None
    if kind == "tagged-union":
        tag = (
            data.get(schema["discriminator"])
            if isinstance(data, dict) and isinstance(schema["discriminator"], str)
            else None
        )
        chosen = schema["choices"].get(tag) if isinstance(tag, (str, int)) else None
        return None if chosen is None else _unread(chosen, data, definitions)
    if kind in ("default", "nullable", "function-after"):
        return _unread(schema["schema"], data, definitions)
    return None


def _unread_by_name(schema: Any, data: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    config, fields = schema.get("config", {}), schema["fields"]
    named = fields.items() if isinstance(fields, dict) else ((one["name"], one) for one in fields)
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    read = {part.get("alias") or part["property_name"] for part in schema.get("computed_fields", ())}
    inside: set[str] = set()
    for name, field in named:
        names = names_read(field.get("validation_alias"), name, by_name=bool(by_name))
        read |= names
        for one in names & data.keys():
            inside |= {f"{one}.{rest}" for rest in _unread(field["schema"], data[one], definitions) or ()}
    extra = schema.get("extra_behavior") or config.get("extra_fields_behavior")
    return inside if extra == "allow" else inside | {shown(name) for name in data.keys() - read}


def names_read(alias: Any, name: str, *, by_name: bool) -> set[str]:
    """The properties that a field is read from: an alias is a name, a path, or a choice of paths."""
    if alias is None:
        return {name}
    paths = [[alias]] if isinstance(alias, str) else alias if isinstance(alias[0], list) else [alias]
    return {str(path[0]) for path in paths} | ({name} if by_name else set())


def _unread_inside(schema: Any, data: Any, definitions: dict[str, Any]) -> set[str]:
    values: list[Any] = data if isinstance(data, list) else []
    parts: Iterable[Any] = repeat(schema.get("items_schema"))
    if schema["type"] == "dict":
        values = [*data.values()] if isinstance(data, dict) else []
        parts = repeat(schema.get("values_schema"))
    elif schema["type"] == "tuple":
        items, variadic = schema["items_schema"], schema.get("variadic_item_index")
        parts = items if variadic is None else chain(items[: variadic + 1], repeat(items[variadic]))
    pairs = zip(parts, values, strict=False)
    return {f"….{rest}" for part, one in pairs if part is not None for rest in _unread(part, one, definitions) or ()}


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


# Reading and writing the library's own documents: strictly, so that what is not understood is refused, never misread.


SCHEMA: Final = 1
EXACT: Final = ConfigDict(extra="forbid")
"""What is not understood must not be dropped by the next save."""

_TIME: Final = {"type": "str", "strict": True, "min_length": len("2026-01-01T00:00")}
"""Not shorter: a date alone is no time."""
Shape = TypeVar("Shape")


def absent_if(default: object) -> Any:
    """Annotation of a property that is left out where it has its default, and read as that where it is absent.

    Only for a default that does no harm where the property was lost.
    """
    return Field(exclude_if=partial(eq, default))


def read_shape(shape: type[Shape], raw: Any, name: str) -> Shape:
    """Read what `write_shape` wrote.

    Args:
        shape: the dataclass to make of it.
        raw: as the store has it.
        name: what it is, for errors, as the beginning of a sentence.

    Raises:
        DamagedDocument: it does not have this shape.
        NewerSchema: a newer version of the library wrote it.
    """
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise NewerSchema(
            f"{name} has schema version {schema}; this version of exactlyonce reads up to {SCHEMA}. Upgrade this instance."
        )
    try:
        record: Shape = _reader(adapter(shape)).validate_python(raw)
    except ValidationError as error:
        raise damaged(name, problems(error)) from None  # The cause would quote what it read: bodies stay out of logs.
    return record


def write_shape(record: Any) -> dict[str, Any]:
    """A dataclass as JSON."""
    written: dict[str, Any] = adapter(type(record)).dump_python(record, mode="json")
    return written


def shape_json(record: Any, shape: Any = None) -> Json:
    """A dataclass as JSON, frozen; or, if a shape is given, what else has that shape."""
    return Json(adapter(type(record) if shape is None else shape).dump_json(record).decode())


@cache
def _reader(shape: TypeAdapter[Any]) -> SchemaValidator:
    """Takes what `write_shape` wrote, and nothing else."""
    return SchemaValidator(_as_written(shape.core_schema))


def _as_written(schema: Any) -> Any:
    """A schema of pydantic's core for what is in JSON's form: lists for tuples, texts for times, and nothing else converted.

    Strictly, pydantic takes these forms from text only; to write one and to read it takes twice as long as this (a ledger of 9
    entries: 105 against 50 µs).

    No property may be left out but those of `absent_if`. A default would pass for knowledge: without its entries a ledger
    knows no duplicate, without `owed` it owes nothing.
    """
    if not isinstance(schema, dict):
        return [_as_written(part) for part in schema] if isinstance(schema, list) else schema
    if "serialization_exclude_if" in schema:
        default = schema["schema"]
        return {**schema, "schema": {**default, "schema": _as_written(default["schema"])}}
    match schema.get("type"):
        case "default":
            return _as_written(schema["schema"])
        case "datetime":
            return {"type": "chain", "steps": [_TIME, schema]}
        case "bool" | "float" | "int" | "str":
            return {**schema, "strict": True}
    return {name: _as_written(part) for name, part in schema.items()}


def damaged(name: str, what: str) -> DamagedDocument:
    """The error of a document that cannot be trusted.

    Args:
        name: what it is, as the beginning of a sentence.
        what: what is wrong with it, without a value of it.
    """
    return DamagedDocument(
        f"{name} is damaged: {what}. Nothing was changed. Restore the document from a backup; do not just remove the "
        "property, or duplicates will no longer be known."
    )
