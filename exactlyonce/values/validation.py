"""Validating with pydantic, and telling what is wrong without quoting what was read."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, Final

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticKnownError

_MOST_MISFITS: Final = 5


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
        f"{_path(one['loc'], names)}: {_said(one, is_quoted=is_quoted and model is None)}" for one in found
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


def _path(location: tuple[int | str, ...], names: frozenset[str] | None) -> str:
    shown = [str(part) if names is None or isinstance(part, int) or part in names else "…" for part in location[1:]]
    return ".".join([*map(str, location[:1]), *shown]) or "the whole"


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

    Of places only the model's own fields are named, since names inside of a mapping are values. Of messages only the constant
    ones of pydantic are quoted: others have parts of the input in them, or the words of a validator.
    """
    fields = getattr(model, "model_fields", {})
    own = {info.validation_alias if isinstance(info.validation_alias, str) else name for name, info in fields.items()}
    own |= {field.name for field in dataclasses.fields(model)} if dataclasses.is_dataclass(model) else set()
    found = error.errors(include_input=False, include_url=False, include_context=False)
    lines = (f"{_place(one['loc'], own)}: {_constant(one['type'])}" for one in found)
    return "; ".join(list(dict.fromkeys(lines))[:_MOST_MISFITS])


def _constant(kind: str) -> str:
    """What pydantic says of a kind of error, if that is the same whatever was read."""
    try:
        return PydanticKnownError(kind).message()  # type: ignore[arg-type]  # A validator's own kind is not among these.
    except (KeyError, TypeError):
        return "does not fit"


def _place(location: tuple[int | str, ...], own: set[str]) -> str:
    first = location[0] if location else None
    if first not in own:
        return "the whole"
    return str(first) if len(location) == 1 else f"{first}, inside"


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)
