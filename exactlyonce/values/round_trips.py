"""Round trips: values of models as JSON, the check that reading gives the written value again, and what either raises."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache, cached_property
from itertools import chain
from types import TracebackType
from typing import Any, Final, cast

from pydantic import BaseModel, RootModel, ValidationError

from exactlyonce.errors import ExactlyOnceError, HandlerFailed
from exactlyonce.values.frozen_json import (
    Json,
    adapter,
    changed_by_doubles,
    has_digits_in_doubt,
    named_fields,
    names_read,
    problems,
)

# The application's code: reading and writing a model runs it, too.
#
# A handler is a plain function: no caller outside can cancel or end it. So every exception raised by a handler is the handler's
# own failure, including `SystemExit`, `CancelledError` and the panics of Rust extensions. Let through, these would end the
# event loop, or fail the messages waiting for the same entity.


class ApplicationsCode:
    """A context for the application's code: an exception raised inside becomes the cause of an error of the library.

    `KeyboardInterrupt` passes: the developer's key press is no failure of a handler.

    Args:
        failed: makes the error from the exception.
        passing: further classes that pass.
    """

    __slots__ = ("_failed", "_passing")

    def __init__(self, failed: Callable[[BaseException], ExactlyOnceError], *passing: type[BaseException]) -> None:
        self._failed = failed
        self._passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, *passing)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or error is None or issubclass(kind, self._passing):
            return
        raise self._failed(error) from error


# Places of a model: the declared properties at each place of its JSON, under any name.


STRUCTURES: Final = ("model-fields", "dataclass-args", "typed-dict")
ANY: Final = "*"
"""Stands for every key of a mapping, and for every item of a list, in the pattern of a path."""


@dataclass(frozen=True)
class Place:
    """A place of a model's JSON: the parts of the model's schema for it."""

    nodes: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, model: Any) -> Place:
        """The top of a model."""
        return _top(model)

    def declares(self, name: str) -> bool:
        """Whether the model declares a property of this name, whatever it writes there. A mapping declares all names."""
        return name in self.names or self.is_mapping

    @cached_property
    def names(self) -> frozenset[str]:
        """All names under which fields are read or written here; a field with an alias may not be read by its own name."""
        return frozenset(name for names, _ in self._fields for name in names)

    def lacks(self, content: dict[str, Any]) -> bool:
        """Whether a field is absent under each of its names."""
        return any(names.isdisjoint(content) for names, _ in self._fields)

    @cached_property
    def computed(self) -> frozenset[str]:
        """Names of computed fields."""
        parts = (part for node in self.nodes for part in node.get("computed_fields", ()))
        return frozenset(part.get("alias") or part["property_name"] for part in parts)

    @cached_property
    def is_mapping(self) -> bool:
        """Whether names here are keys, and so values."""
        return any(node["type"] == "dict" for node in self.nodes)

    @cached_property
    def is_set(self) -> bool:
        """Whether the items here have no order of their own."""
        return any(node["type"] in ("set", "frozenset") for node in self.nodes)

    def step(self, name: str) -> str:
        """A name in its form for a pattern."""
        return name if name in self.names or not self.is_mapping else ANY

    def at(self, name: str) -> Place:
        """The place of a property."""
        key = name if name in self.names else ANY
        if key not in self._inside:
            inner = [schema for names, schema in self._fields if name in names]
            inner += [
                node["values_schema"] for node in self.nodes if node["type"] == "dict" and "values_schema" in node
            ]
            self._inside[key] = self._of(inner)
        return self._inside[key]

    @cached_property
    def _inside(self) -> dict[str, Place]:
        """The places of requested properties: as many as the model has, however many keys a mapping has."""
        return {}

    @cached_property
    def items(self) -> Place:
        """The place of the items of a list."""
        inner: list[Any] = []
        for node in self.nodes:
            schema = node.get("items_schema")
            inner += schema if isinstance(schema, list) else [] if schema is None else [schema]
        return self._of(inner)

    @cached_property
    def _fields(self) -> tuple[tuple[frozenset[str], Any], ...]:
        """The names and the schema of each field."""
        fields: list[tuple[frozenset[str], Any]] = []
        for node in self.nodes:
            if node["type"] in STRUCTURES:
                by_name = bool(node["config"].get("validate_by_name"))
                for name, field in named_fields(node):
                    fields.append((_names(name, field, by_name=by_name), field["schema"]))
        return tuple(fields)

    def _of(self, schemas: list[Any]) -> Place:
        definitions = self.nodes[0].get("__definitions__", {}) if self.nodes else {}
        return Place(tuple(node for schema in schemas for node in unwrapped(schema, definitions)))


def ignores_more(model: Any) -> bool:
    """Whether a model ignores undeclared properties: no validator sees or refuses them."""
    schema: Any = adapter(model).core_schema
    if schema["type"] == "definitions":
        schema = schema["schema"]
    behaviour: set[Any] = set()
    while schema["type"] in ("model", "dataclass"):
        behaviour |= {schema.get("config", {}).get("extra_fields_behavior"), schema.get("custom_init") or None}
        schema = schema["schema"]
    behaviour.add(schema.get("extra_behavior"))
    return schema["type"] in STRUCTURES and behaviour <= {None, "ignore"}


@cache
def _top(model: Any) -> Place:
    return Place(tuple(unwrapped(adapter(model).core_schema)))


def _names(name: str, field: Any, *, by_name: bool) -> frozenset[str]:
    written = field.get("serialization_alias") or name
    return frozenset({written, *names_read(field.get("validation_alias"), name, by_name=by_name)})


_INSIDE: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "union": lambda part: [item[0] if isinstance(item, tuple) else item for item in part["choices"]],
    "tagged-union": lambda part: [item for item in part["choices"].values() if isinstance(item, dict)],
    "chain": lambda part: part["steps"],
    "lax-or-strict": lambda part: [part["lax_schema"]],
    "json-or-python": lambda part: [part["json_schema"]],
    "json": lambda _: [],  # Its text holds nothing that a document names.
}


def unwrapped(schema: Any, definitions: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The parts of a schema that describe its place: through validators, unions, optionals and references."""
    definitions, seen = definitions or {}, set()
    waiting: list[tuple[Any, dict[str, Any]]] = [(schema, {})]
    while waiting:
        part, config = waiting.pop()
        kind, config = part["type"], part.get("config", config)
        inner: list[Any] = []
        if kind == "definitions":
            definitions = {**definitions, **{item["ref"]: item for item in part["definitions"]}}
            inner = [part["schema"]]
        elif kind == "definition-ref":
            inner = [] if part["schema_ref"] in seen else [definitions[part["schema_ref"]]]
            seen.add(part["schema_ref"])
        elif kind in _INSIDE:
            inner = _INSIDE[kind](part)
        elif "schema" in part and kind not in STRUCTURES:
            inner = [part["schema"]]
        else:
            yield {**part, "config": config, "__definitions__": definitions}
        waiting += ((schema, config) for schema in inner)


_MAY_HOLD_SETS: Final = frozenset({"set", "frozenset", "any", "function-plain", "is-instance", "generator"})
_OWN_CODE: Final = frozenset({"function-before", "function-wrap", "function-plain"})
_SEQUENCES: Final = (list, tuple, deque)
_Path = tuple[str, ...]
KEY: Final = "…"
"""Stands for the key of a mapping, which is a value, in the name of a place."""


def read_text(model: Any, text: str) -> Any:
    """Read the text of `written`, or of another program, as JSON: only there a strict model takes a time from a text.

    A number that doubles may change keeps its digits. Pydantic's parser changes the number, so such a text is not read as
    JSON.

    Raises:
        ValidationError: the text does not fit.
    """
    traits = _traits(model)
    if traits.drops:
        text = Json.of(_without_computed(Json(text).value, Place.of(model))).text
    if has_digits_in_doubt(text) if traits.decimals else changed_by_doubles(text) is not None:
        content = Json(text).value
        try:
            return adapter(model).validate_python(content, by_alias=True)
        except ValidationError:  # Perhaps since the model is strict.
            text = Json.of(_with_digits_as_text(content, Place.of(model))).text
            if changed_by_doubles(text) is not None:
                raise
    return adapter(model).validate_json(text, by_alias=True)


def written(model: Any, value: Any) -> Any:
    """A value as JSON that `read_text` reads as an equal value, with computed fields, and with sorted sets.

    Where the value does not fit its model, `lost` says so, and no warning quotes it.
    """
    return json.loads(written_text(model, value))


def written_text(model: Any, value: Any) -> str:
    """As `written`, as text."""
    traits, writer = _traits(model), adapter(model)
    # Text holds the model's choice for NaN; and `Json[...]` as the text for reading again.
    text = writer.dump_json(value, by_alias=True, round_trip=True, warnings="none").decode()
    if not (traits.computes or traits.orders):
        return text
    content = json.loads(text)
    if traits.computes:
        content = _laid_over(content, writer.dump_python(value, mode="json", by_alias=True, warnings="none"))
    return Json.of(_ordered(value, content)).text


def shown(value: Any) -> Any:
    """A model's value as JSON for readers without models, such as clients; with sorted sets.
    Raises `HandlerFailed`: the value holds NaN or an infinity."""
    model: Any = type(value)
    content = adapter(model).dump_python(value, mode="json", by_alias=True, warnings="none")
    try:
        Json.of(content)
    except ValueError:
        raise HandlerFailed(
            f"A {model.__name__} holds NaN, an infinity or half a character, which JSON does not have. Leave it out, or keep "
            "it as a text."
        ) from None  # The cause would quote it.
    return _ordered(value, content) if _traits(model).orders else content


def covers(content: Any, stored: Any) -> bool:
    """Whether content has every stored property, at any depth: then nothing is left to keep or to remove."""
    if isinstance(stored, dict):
        return isinstance(content, dict) and all(
            name in content and covers(content[name], item) for name, item in stored.items()
        )
    if isinstance(stored, list):
        items = content if isinstance(content, list) else ()
        # An item mostly stands where it stood: looking there first keeps this linear.
        return all(
            not isinstance(item, (dict, list)) or any(covers(other, item) for other in chain(items[n : n + 1], items))
            for n, item in enumerate(stored)
        )
    return True


def lost(model: type, value: Any, text: str) -> str | None:
    """The first part that would be read as a different value, by name and without a value; None if there is none.

    Parts differ for a different class, a type that does not fit, an excluded or private value, or names that are written but
    not read. An instant in two time zones is the same value. The model's own validators may raise anything.
    """
    if not isinstance(value, model):
        return f"it is no {model.__name__}"
    try:
        read = read_text(model, text)
    except ValidationError as error:
        return problems(error, model)
    try:
        if _traits(model).compares and value == read:
            return None
    except Exception:  # noqa: S110  # A value's own comparison may raise anything. Then its parts are compared.
        pass
    path = _difference(value, read)
    return None if path is None else f"{'.'.join(path) or 'the whole'} would be another value"


def looks_further(model: Any) -> bool:
    """Whether code of a model's own may look at undeclared properties, anywhere in the model."""
    return _traits(model).looks


@dataclass(frozen=True, slots=True)
class _Traits:
    """The traits of a model's schema that matter for its round trip.

    Attributes:
        compares: `==` compares all parts of its values: no class below has a comparison of its own.
        orders: values may hold sets.
        computes: the model has computed fields.
        drops: computed fields have to be dropped before reading, since the model takes or forbids extra properties.
        looks: as `looks_further`.
        decimals: it has decimals, which tell numbers apart that are one double.
    """

    compares: bool
    orders: bool
    computes: bool
    drops: bool
    looks: bool
    decimals: bool


@cache
def _traits(model: Any) -> _Traits:
    nodes = list(_nodes(adapter(model).core_schema))
    classes = {node["cls"] for node in nodes if node.get("type") in ("model", "dataclass")}
    compares = all(map(_compares_all, classes))
    computes = any(node.get("computed_fields") for node in nodes)
    extra = {node.get("extra_behavior") or node.get("extra_fields_behavior") for node in nodes} & {"allow", "forbid"}
    orders = computes or "allow" in extra or any(node.get("type") in _MAY_HOLD_SETS for node in nodes)
    looks = any(
        node.get("type") in _OWN_CODE or node.get("custom_init") or callable(node.get("discriminator"))
        for node in nodes
    )
    decimals = any(node.get("type") == "decimal" for node in nodes)
    return _Traits(compares, orders, computes, computes and bool(extra), looks, decimals)


def _compares_all(model: Any) -> bool:
    """Whether `==` of a class is pydantic's, or a dataclass's generated comparison of all fields."""
    compares = model.__eq__
    if issubclass(model, BaseModel):
        return bool(compares.__module__.startswith("pydantic."))
    generated = getattr(getattr(compares, "__code__", None), "co_filename", "") == "<string>"
    return generated and all(field.compare for field in dataclasses.fields(model))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += [item for name, item in part.items() if name not in ("metadata", "default", "serialization")]
        elif isinstance(part, (list, tuple)):
            waiting += part


def _laid_over(content: Any, full: Any) -> Any:
    """Content, and the computed fields of its full form."""
    if isinstance(content, dict) and isinstance(full, dict):
        return {**content, **{name: _laid_over(content.get(name, item), item) for name, item in full.items()}}
    if isinstance(content, list) and isinstance(full, list) and len(content) == len(full):
        return [_laid_over(item, other) for item, other in zip(content, full, strict=True)]
    return content


def _without_computed(content: Any, place: Place) -> Any:
    if isinstance(content, dict):
        return {
            name: _without_computed(item, place.at(name))
            for name, item in content.items()
            if name not in place.computed or place.declares(name)
        }
    return [_without_computed(item, place.items) for item in content] if isinstance(content, list) else content


def _with_digits_as_text(content: Any, place: Place) -> Any:
    """Content with numbers as texts where the model has a decimal, and reads texts, strict or not; or as doubles."""
    if isinstance(content, dict):
        return {name: _with_digits_as_text(part, place.at(name)) for name, part in content.items()}
    if isinstance(content, list):
        return [_with_digits_as_text(part, place.items) for part in content]
    kinds = {node["type"] for node in place.nodes} if isinstance(content, (Decimal, float)) else set()
    return str(content) if "decimal" in kinds else float(content) if "float" in kinds else content


def _ordered(value: Any, content: Any) -> Any:
    """Content whose sets have the order of their items' JSON: a set's own order differs from process to process."""
    value = _rootless(value)
    if isinstance(content, dict):
        return {name: _ordered(item, content[name]) for name, item in stored_parts(value, content)}
    if isinstance(content, list):
        inner = list(value) if isinstance(value, (*_SEQUENCES, Set)) else []
        if len(inner) == len(content):
            content = [_ordered(item, other) for item, other in zip(inner, content, strict=True)]
        if isinstance(value, Set):
            return sorted(content, key=lambda item: Json.of(item).text)
    return content


def _rootless(value: Any) -> Any:
    return _rootless(value.root) if isinstance(value, RootModel) else value


def stored_parts(value: Any, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of a value by their names in its content; None for a missing part."""
    value = _rootless(value)
    if isinstance(value, Mapping):
        parts = dict(zip(content, value.values(), strict=False)) if len(value) == len(content) else dict(value)
    elif (names := _stored_names(cast("Any", type(value)))) is not None:
        extra = getattr(value, "__pydantic_extra__", None) or {}
        parts = {**extra, **{name: getattr(value, own, None) for own, name in names.items() if name in content}}
    else:
        parts = {}
    return ((name, parts.get(name)) for name in content)


@cache
def _stored_names(model: type) -> dict[str, str] | None:
    """The name of each field of a class in its JSON, with computed fields; None if the class is no model."""
    if not (issubclass(model, BaseModel) or dataclasses.is_dataclass(model)):
        return None
    try:
        schemas = [node for node in unwrapped(adapter(model).core_schema) if node["type"] in STRUCTURES]
    except Exception:  # The class has no schema; then it stands where a model has Any.
        return (
            {field.name: field.name for field in dataclasses.fields(model)} if dataclasses.is_dataclass(model) else {}
        )
    names: dict[str, str] = {}
    for schema in schemas:
        names.update({name: item.get("serialization_alias") or name for name, item in named_fields(schema)})
        for item in schema.get("computed_fields", ()):
            names[item["property_name"]] = item.get("alias") or item["property_name"]
    return names


def _difference(value: Any, read: Any) -> _Path | None:
    """The path to the first difference; None if equal. A model's own comparison may skip fields, so it is not used."""
    held, other = _held(value), _held(read)
    if held is not None and other is not None and type(read) is type(value):
        differing = sorted(held.keys() ^ other.keys())
        return (differing[0],) if differing else _first(((name,), item, other[name]) for name, item in held.items())
    if held is not None:
        return ()
    pairs = _pairs(value, read)
    if pairs is not None:
        return _first(pairs)
    if isinstance(value, Set) and isinstance(read, Set) and len(value) == len(read):
        alike = value == read or all(any(_difference(item, two) is None for two in read) for item in value)
        return None if alike else ()
    return None if _same(value, read) else ()


def _pairs(value: Any, read: Any) -> Iterator[tuple[_Path, Any, Any]] | None:
    """The parts of two mappings or of two sequences that have to be alike; None for values of other kinds."""
    if isinstance(value, Mapping) and isinstance(read, Mapping) and len(value) == len(read):
        if value.keys() == read.keys():
            return (((KEY,), item, read[key]) for key, item in value.items())
        # Keys that are equal as instants only, in their order.
        pairs = chain(zip(value, read, strict=True), zip(value.values(), read.values(), strict=True))
        return (((KEY,), item, other) for item, other in pairs)
    related = isinstance(value, type(read)) or isinstance(read, type(value))
    if related and isinstance(value, _SEQUENCES) and len(value) == len(read):
        return (((str(index),), item, read[index]) for index, item in enumerate(value))
    return None


def _first(parts: Iterator[tuple[_Path, Any, Any]]) -> _Path | None:
    for path, value, read in parts:
        if (inner := _difference(value, read)) is not None:
            return (*path, *inner)
    return None


def _held(value: Any) -> dict[str, Any] | None:
    """All parts of a model's value, by name, with excluded and private parts; None if it is no model's."""
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        extra, private = value.__pydantic_extra__ or {}, value.__pydantic_private__ or {}
        return {**{name: getattr(value, name, None) for name in names}, **extra, **private}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    compares: Any = type(value).__eq__
    if compares is object.__eq__ and hasattr(value, "__dict__"):
        return dict(vars(value))
    return None


def _same(value: Any, read: Any) -> bool:
    try:
        if value == read:
            return True
        if type(value) is not type(read):
            return False
        if isinstance(value, datetime) and value.tzinfo and read.tzinfo:
            # In an hour that the clock repeats or skips, a time with a zone equals no time of another zone (PEP 495).
            return (value.replace(tzinfo=None), value.utcoffset()) == (read.replace(tzinfo=None), read.utcoffset())
        return bool(value != value and read != read)  # NaN, where the model writes it.  # noqa: PLR0124
    except Exception:  # A value's own comparison may raise anything.
        return False
