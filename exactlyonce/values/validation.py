"""Validating with pydantic, and telling what is wrong without quoting what was read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from functools import cache
from itertools import chain, repeat
from typing import Any, Final

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticKnownError

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
