"""Reading and writing the library's own documents: strictly, so that what is not understood is refused, never misread."""

from __future__ import annotations

from functools import cache, partial
from operator import eq
from typing import Any, Final, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from exactlyonce.errors import DamagedDocument, NewerSchema
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.validation import adapter, problems

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
