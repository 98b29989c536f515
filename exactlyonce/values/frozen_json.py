"""JSON as an immutable, hashable value, and the parser of foreign JSON.

Effects and replies must be frozen and hashable, since the model checker compares and shares them, and they carry documents. A
text is both: no code can change a string.

A number keeps its digits. Parsers make doubles of fractions, and 99999999999999.99 is no double: the amount would change
without an error. So a number that a double would change is a `Decimal` here, and is written with the same digits.
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
"""Most levels of lists and objects in each other that are read. Near the interpreter's own limit, a reader might fail where
another reader did not."""
MAX_NUMBER_LENGTH: Final = 1_000
"""Longest fraction that is read, in characters. A longer fraction costs more than it can mean."""

_WRITER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""A shared encoder: `json.dumps` with these settings would make an encoder at every call, for more than the writing costs."""
_SURE_DIGITS: Final = 15
"""Significant digits that every double keeps, with every parser."""
_LONG: Final = re.compile(r"[0-9.]{16}|[eE]-")
"""The mark of a number that a double may change: more than 15 digits, or next to nothing."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a surrogate pair; its other half may follow."""


def is_json(media_type: str) -> bool:
    """Whether a body of this `Content-Type` is JSON, as far as its sender says."""
    name = media_type.partition(";")[0].strip().lower()
    return name in ("application/json", "text/json") or name.endswith("+json")


def read_json(body: bytes | str, *, nesting: int = MAX_NESTING) -> Any:
    """Read foreign JSON: a request's body, a message, a file.

    `json.loads` and pydantic's `model_validate_json` change numbers that have more digits than a double keeps. Here such a
    number is a `Decimal`, or an `int` where it is whole. A model converts it to the type of its field: exactly for a `Decimal`
    field, to the nearest double for a `float` field.

    Args:
        body: JSON in UTF-8, with a byte order mark or without.
        nesting: most levels of lists and objects in each other.

    Returns:
        dicts, lists, strings, numbers, booleans and None.

    Raises:
        ValueError: the body is not JSON that every parser reads alike. Besides wrong syntax: a foreign encoding, half a
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
    except ValueError as error:  # A new error, since the parser's carries the whole text.
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
    """A value in a single form of several equal forms in JSON: properties sorted, and 1 for 1.0."""
    if isinstance(value, dict):
        return {name: canonical(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [canonical(part) for part in value]
    return int(Decimal(repr(value))) if isinstance(value, float) and value.is_integer() else value


def changed_by_doubles(body: bytes | str) -> str | None:
    """The place of a number that would change as a double, such as `lines.0.price`, in JSON that `read_json` has read; None
    without such a number."""
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
    """A number with a fraction or an exponent: a double where the double is equal."""
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
    """An object. Of two properties with the same name some parsers take the first, some the last: the meaning would be open."""
    value = dict(properties)
    if len(value) != len(properties):
        raise ValueError("An object has a property twice.")
    return value


_FOREIGN: Final = json.JSONDecoder(parse_float=_number, parse_constant=_no_number, object_pairs_hook=_no_name_twice)
_OWN: Final = json.JSONDecoder(parse_float=_number)


def _written(value: Any) -> str:
    """A value with decimals as JSON: the encoder does not write decimals as numbers."""
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_WRITER.encode({name: 0})[1:-3]}:{_written(part)}" for name, part in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, Decimal) and value.is_finite() else _WRITER.encode(value)


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value, held as compact text in the order of its properties.

    Make it with `Json.of`; `text` is not checked.
    """

    text: str

    @classmethod
    def of(cls, value: Any) -> Json:
        """Freeze a value made of dicts, lists, strings, numbers, booleans and None.

        Raises:
            TypeError: a value has no form in JSON.
            ValueError: the value holds NaN, an infinity or half a surrogate pair, which UTF-8 does not have; or refers to
                itself.
        """
        try:
            text = _WRITER.encode(value)
        except TypeError:
            text = _written(value)
        text.encode()
        return cls(text)

    @property
    def value(self) -> Any:
        """A fresh copy for the caller to change. A number that a double would change is a `Decimal`."""
        return _OWN.decode(self.text)

    def plus(self, name: str, value: Json) -> Json:
        """An object with a further property at its end, which it must not have yet. Cheaper than parsing."""
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
        """In records a `Json` is a string of JSON: the store keeps its text to the letter.

        As JSON inside a document its numbers could change: the service knows doubles only.
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


# Validation with pydantic, and errors that do not quote the input.


_MOST_MISFITS: Final = 5
_LONGEST_NAME: Final = 40
_FORBIDDEN: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""Errors whose place ends with a name that a model forbids: the sender chose the name."""
_NAME: Final = re.compile(rf"[A-Za-z0-9_$-]{{1,{_LONGEST_NAME}}}")


def adapter(model: Any) -> TypeAdapter[Any]:
    """The validator of a model; built on first use, when all names in its annotations exist."""
    return _adapter(model)


def problems(error: ValidationError, model: Any = None, *, is_quoted: bool = True) -> str:
    """The misfits and their places, without the values: they may be unfit for a log.

    Args:
        error: the validation's error.
        model: the model. Only the names of its properties are quoted: keys of mappings are values. None where all names are the
            library's own, or only their sender reads the text.
        is_quoted: whether the words of a model's own validators are quoted, where `model` is None: they may hold a value.
    """
    names = None if model is None else _names(model)
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"{_path(item['loc'], names, forbidden=item['type'] in _FORBIDDEN)}: "
        f"{_said(item, is_quoted=is_quoted and model is None)}"
        for item in errors
    )


def raised_in(error: ValidationError) -> BaseException | None:
    """The first exception with which the model's own validator refused a value; None if there is none."""
    errors = error.errors(include_input=False, include_url=False)
    raised = (item.get("ctx", {}).get("error") for item in errors)
    return next((item for item in raised if isinstance(item, BaseException)), None)


def _said(details: ErrorDetails, *, is_quoted: bool) -> str:
    """Pydantic's message; for a validator of the model, whose words may quote a value, only the refusal."""
    is_own = details["type"] in ("value_error", "assertion_error")
    return "a validator of the model refused it" if is_own and not is_quoted else details["msg"]


def _path(location: tuple[int | str, ...], names: frozenset[str] | None, *, forbidden: bool) -> str:
    parts = [str(part) if names is None or isinstance(part, int) or part in names else "…" for part in location]
    if location:
        parts[0] = shown(location[0])
    if forbidden:
        parts[-1] = shown(location[-1])
    return ".".join(parts) or "the whole"


@cache
def _names(model: Any) -> frozenset[str]:
    """Names of all properties of a model, at any depth."""
    try:
        waiting: list[Any] = [adapter(model).json_schema()]
    except PydanticUserError:  # No JSON schema describes a type in the model.
        return frozenset()
    names: set[str] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            names.update(part.get("properties", ()))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return frozenset(names)


def misfits(error: ValidationError, model: type) -> str:
    """The misfits without any value of the input, so that the text can be stored.

    Places name only the model's own fields, since names inside of a mapping are values; and forbidden properties, as `shown`.
    Only pydantic's constant messages are quoted: further messages have parts of the input, or the words of a validator.
    """
    fields = getattr(model, "model_fields", {})
    own = {info.validation_alias if isinstance(info.validation_alias, str) else name for name, info in fields.items()}
    own |= {field.name for field in dataclasses.fields(model)} if dataclasses.is_dataclass(model) else set()
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    lines = (
        f"{_place(item['loc'], own, forbidden=item['type'] in _FORBIDDEN)}: {_constant(item['type'])}"
        for item in errors
    )
    return "; ".join(list(dict.fromkeys(lines))[:_MOST_MISFITS])


def _constant(kind: str) -> str:
    """Pydantic's message for a kind of error, if it does not depend on the input."""
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
    """A name from a sender, shortened, without characters that could forge a line of a log."""
    text = str(name)
    return text if _NAME.fullmatch(text) else ascii(text[:_LONGEST_NAME])


def unread(model: type, data: Any) -> frozenset[str]:
    """The properties of data that a model does not read, at any depth where models are: reading would lose them.

    Places name only properties, since keys of mappings are values. The result is empty where a validator gets the data before
    the model does, since it may read anything.
    """
    return frozenset(_unread(adapter(model).core_schema, data, {}) or ())


def _unread(schema: Any, data: Any, definitions: dict[str, Any]) -> set[str] | None:  # noqa: PLR0911  # By kind.
    """The unread properties; None where the schema has no names, as for a number."""
    kind = schema["type"]
    if kind == "definitions":
        return _unread(schema["schema"], data, {item["ref"]: item for item in schema["definitions"]})
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
        choices = [
            _unread(item[0] if isinstance(item, tuple) else item, data, definitions) for item in schema["choices"]
        ]
        named = [choice for choice in choices if choice is not None]
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
    config = schema.get("config", {})
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    read = {part.get("alias") or part["property_name"] for part in schema.get("computed_fields", ())}
    inside: set[str] = set()
    for name, field in named_fields(schema):
        names = names_read(field.get("validation_alias"), name, by_name=bool(by_name))
        read |= names
        for item in names & data.keys():
            inside |= {f"{item}.{rest}" for rest in _unread(field["schema"], data[item], definitions) or ()}
    extra = schema.get("extra_behavior") or config.get("extra_fields_behavior")
    return inside if extra == "allow" else inside | {shown(name) for name in data.keys() - read}


def named_fields(schema: Any) -> Iterable[tuple[str, Any]]:
    """The fields in the schema of a model, a dataclass or a typed dictionary."""
    fields = schema["fields"]
    return fields.items() if isinstance(fields, dict) else ((item["name"], item) for item in fields)


def names_read(alias: Any, name: str, *, by_name: bool) -> set[str]:
    """The properties of a field in JSON: an alias is a name, a path, or a choice of paths."""
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
    return {f"….{rest}" for part, item in pairs if part is not None for rest in _unread(part, item, definitions) or ()}


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


# The library's own documents: read strictly, so that unknown content is refused, never misread.


SCHEMA: Final = 1
EXACT: Final = ConfigDict(extra="forbid")
"""The next save must not drop properties that this version does not understand."""

_TIME: Final = {"type": "str", "strict": True, "min_length": len("2026-01-01T00:00")}
"""Not shorter: a date alone is no time."""
Shape = TypeVar("Shape")


def absent_if(default: object) -> Any:
    """Annotation of a property that is left out where it equals its default, and read as the default where it is absent.

    Only for a default that does no harm if the property was lost.
    """
    return Field(exclude_if=partial(eq, default))


def read_shape(shape: type[Shape], raw: Any, name: str) -> Shape:
    """Read a document of `write_shape`; `name` begins its errors.

    Raises:
        DamagedDocument: the document has a different shape.
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
        raise damaged(name, problems(error)) from None  # The cause would quote its input: bodies stay out of logs.
    return record


def write_shape(record: Any) -> dict[str, Any]:
    """A dataclass as JSON."""
    written: dict[str, Any] = adapter(type(record)).dump_python(record, mode="json")
    return written


def shape_json(record: Any, shape: Any = None) -> Json:
    """A dataclass as JSON, frozen; or any value of the shape, if a shape is given."""
    return Json(adapter(type(record) if shape is None else shape).dump_json(record).decode())


@cache
def _reader(shape: TypeAdapter[Any]) -> SchemaValidator:
    """Accepts only the documents of `write_shape`."""
    return SchemaValidator(_as_written(shape.core_schema))


def _as_written(schema: Any) -> Any:
    """A schema of pydantic's core for values in JSON's form: lists for tuples, texts for times, and no further conversions.

    Strictly, pydantic takes these forms from text only; writing and reading a text takes twice as long (a ledger of 9 entries:
    105 against 50 µs).

    Only properties with `absent_if` may be left out. A default would pass for knowledge: without its entries a ledger knows no
    duplicate, without `owed` it owes nothing.
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
    """The error of a document that cannot be trusted. The text of the damage has no value of the document."""
    return DamagedDocument(
        f"{name} is damaged: {what}. Nothing was changed. Restore the document from a backup; do not just remove the "
        "property, or duplicates will no longer be known."
    )
