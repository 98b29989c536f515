"""Validating with pydantic, and telling what is wrong without quoting what was read."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError


def adapter(model: Any) -> TypeAdapter[Any]:
    """The validator of a model; built on first use, when all names its annotations refer to exist."""
    return _adapter(model)


def written(model: Any, value: Any) -> Any:
    """A value as JSON; where it does not fit its model, `comes_back` tells, and no warning quotes it."""
    return adapter(model).dump_python(value, mode="json", by_alias=True, warnings="none")


def comes_back(model: type, value: Any, content: Any) -> bool:
    """Whether what was written would be read as the same value, so that nothing is lost on the way.

    It is not, if the value has another class, a type that does not fit, fields that are excluded or private, or names under
    which a field is written but not read.
    """
    if not isinstance(value, model):
        return False
    try:
        read = adapter(model).validate_python(content)
    except Exception:  # A validator of the model's own may raise anything.
        return False
    if type(value).__eq__ is object.__eq__:
        return bool(written(model, read) == content)
    return bool(read == value)


def problems(error: ValidationError) -> str:
    """What does not fit and where, without the values: they may hold what a log must not."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(str(part) for part in one['loc']) or 'the whole'}: {one['msg']}" for one in found)


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)
