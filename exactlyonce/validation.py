"""Validating with pydantic, and telling what is wrong without quoting what was read."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError


def adapter(model: Any) -> TypeAdapter[Any]:
    """The validator of a model; built on first use, when all names its annotations refer to exist."""
    return _adapter(model)


def problems(error: ValidationError) -> str:
    """What does not fit and where, without the values: they may hold what a log must not."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(str(part) for part in one['loc']) or 'the whole'}: {one['msg']}" for one in found)


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)
