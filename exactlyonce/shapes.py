"""Reading and writing the library's own documents: strictly, so that what is not understood is refused, never misread."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import ConfigDict, ValidationError

from exactlyonce.errors import DamagedDocument, NewerSchema
from exactlyonce.frozen_json import Json
from exactlyonce.validation import adapter, missing, problems

SCHEMA: Final = 1
EXACT: Final = ConfigDict(extra="forbid")
"""What is not understood must not be dropped by the next save."""

Shape = TypeVar("Shape")


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
        record: Shape = adapter(shape).validate_json(Json.of(raw).text, strict=True)
    except ValidationError as error:
        raise _damaged(name, problems(error)) from None  # The cause would quote what it read: bodies stay out of logs.
    # A default would pass for knowledge: without its entries a ledger knows no duplicate, without `owed` it owes nothing.
    if lacking := next(missing(write_shape(record), raw), None):
        raise _damaged(name, f"{lacking}: Field required")
    return record


def write_shape(record: Any) -> dict[str, Any]:
    """A dataclass as JSON."""
    written: dict[str, Any] = adapter(type(record)).dump_python(record, mode="json")
    return written


def _damaged(name: str, what: str) -> DamagedDocument:
    return DamagedDocument(
        f"{name} is damaged: {what}. Nothing was changed. Restore the document from a backup; do not just remove the "
        "property, or duplicates will no longer be known."
    )
