"""What the jobs read and write: the columns asked of the store, the frames made of them, and the findings.

A `Selection` is what a query asks for. Each of its columns carries the type that reads it, so that the query and the frame
are one definition. Nothing selects a body: states, envelopes, ways back and events stay in the store, and of what is owed
or held the jobs learn only that it is. The one exception are entries of a ledger, which the store can give only whole:
what they owe is dropped when they are parsed, and never kept.

All times are the service's or the processes' instants, in UTC; `_ts` counts seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from exactlyonce.records.application import KIND as APPLICATION
from exactlyonce.records.companions import KIND, ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import LEDGER, Entry, Ledger
from exactlyonce.records.library import ParkedMessage, ProcessedRecord, StagedOutputs
from exactlyonce.records.outputs import OutputRef

LIBRARY: Final = "library"
"""`place` of what lies in the library's container; else it is the name of an entity type."""

Asked = Literal["records", "staged", "entities", "companions"]
"""What one query asks for: the first two of the library's container, the others of one that holds entities."""


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type) for name, type in fields.items()])


_TEXT, _NUMBER, _FLAG, _TIME = StringType(), LongType(), BooleanType(), TimestampType()

RAW: Final = _struct(raw=_TEXT)
"""What a source gives: the JSON text of each row of a query."""

ORDER: Final = _struct(key=_TEXT, number=_NUMBER)
OUTPUTS: Final = ArrayType(_struct(id=_TEXT, destination=_TEXT, order=ORDER))
SEQUENCES: Final = ArrayType(_struct(destination=_TEXT, key=_TEXT, last=_NUMBER))
RECEPTIONS: Final = ArrayType(
    _struct(
        source=_TEXT,
        next=_NUMBER,
        held=ArrayType(ArrayType(_NUMBER)),
        gap_since=_TIME,
        failing=_TEXT,
        passed=_TIME,
    )
)


def _entry(**owed: DataType) -> StructType:
    return _struct(
        message=_TEXT,
        tx=_TEXT,
        version=_NUMBER,
        at=_TIME,
        outputs=OUTPUTS,
        digest=_TEXT,
        staged=_FLAG,
        seen=_NUMBER,
        **owed,
    )


def _ledger(entry: StructType) -> StructType:
    return _struct(
        version=_NUMBER,
        entries=ArrayType(entry),
        deleted=_FLAG,
        schema=_NUMBER,
        type=_TEXT,
        protocol=_TEXT,
        sequences=SEQUENCES,
        snapshot_every=_NUMBER,
        event_sourced=_FLAG,
        receptions=RECEPTIONS,
        owing_since=_TIME,
    )


_STORED_LEDGER: Final = _ledger(_entry(owed=_TEXT))
LEDGER_READ: Final = _ledger(_entry(owes=_TEXT))
"""A ledger; `owes` of an entry is null, "inline" or "staged"."""

DOCUMENT: Final = StructType(
    [
        StructField("place", _TEXT, nullable=False),
        StructField("id", _TEXT, nullable=False),
        StructField("etag", _TEXT, nullable=False),
        StructField("ts", _NUMBER, nullable=False),
        StructField("kind", _TEXT),
        StructField("schema", _NUMBER),
        StructField("entity", _TEXT),
        StructField("message", _TEXT),
        StructField("tx", _TEXT),
        StructField("version", _NUMBER),
        StructField("at", _TIME),
        StructField("digest", _TEXT),
        StructField("outputs", OUTPUTS),
        StructField("owes", _TEXT),
        StructField("owing_since", _TIME),
        StructField("whole", _FLAG),
        StructField("source", _TEXT),
        StructField("order", ORDER),
        StructField("late", _FLAG),
        StructField("held", _FLAG),
        StructField("ledger", LEDGER_READ),
        StructField("problem", _TEXT),
    ]
)
"""One document of the library, or of an entity, as the rules see it.

    place: "library", or the name of the entity type in whose container it lies.
    id, etag, ts: as the service has them; `ts` in seconds.
    kind: "entity", "processed", "staged", "parked", "entry" or "numbered"; else as it stands, null if it has none.
    entity: key of the entity that it is, or is about: `EntityRef.key`.
    owes: null if it owes nothing, else "inline".
    held: whether it holds a message that waits.
    problem: null, or why the document is not explained. What else it says is not to be relied on then.
"""

FINDING: Final = StructType(
    [
        StructField("rule", _TEXT, nullable=False),
        StructField("entity", _TEXT),
        StructField("message", _TEXT),
        StructField("versions", ArrayType(_NUMBER)),
        StructField("subject", _TEXT),
        StructField("detail", _TEXT),
        StructField("advice", _TEXT),
        StructField("since", _TIME),
    ]
)
"""What a rule found. Its identity is rule, entity, message, versions and subject.

    subject: what else names it: id of an output or a document, a transaction, a source and number.
    detail, advice: a sentence on what is so, and one on what to do.
    since: since when it is so, as far as the documents tell.
"""

IDENTITY: Final = ("rule", "entity", "message", "versions", "subject")


@dataclass(frozen=True, slots=True)
class Selection:
    """What one query asks for.

    Attributes:
        columns: expressions of the query language, over the document `c`.
        where: condition; None for all.
    """

    columns: tuple[str, ...]
    where: str | None


def _property(name: str) -> str:
    return f'c["{name}"]'  # In brackets: some names are words of the query language.


OF_ENTITIES: Final = f'(NOT IS_DEFINED({_property("pk")}) OR {_property("pk")} != "{APPLICATION}")'
"""All documents of the library's container are of some entity, but the one that says whose the container is."""

_FROM_SERVICE: Final = {"id": _TEXT, "_etag": _TEXT, "_ts": _NUMBER}
_COMMIT: Final = {"schema": _NUMBER, "entity": _TEXT, "message": _TEXT, "tx": _TEXT, "at": _TIME}
_TOLD: Final = {"version": _NUMBER, "outputs": OUTPUTS, "digest": _TEXT}
_FLAGS: Final = {
    "owes_inline": 'IS_ARRAY(c["owed"])',
    "owes_none": 'IS_NULL(c["owed"])',
    "holds": 'IS_STRING(c["held"])',
    "holds_none": 'IS_NULL(c["held"])',
}
_RECORDS: Final[Mapping[str, DataType]] = {**_FROM_SERVICE, "pk": _TEXT, "kind": _TEXT, **_COMMIT, **_TOLD}
_STAGED: Final[Mapping[str, DataType]] = {**_FROM_SERVICE, "pk": _TEXT, "kind": _TEXT, **_COMMIT}
_COMPANIONS: Final[Mapping[str, DataType]] = {
    **_FROM_SERVICE,
    KIND: _TEXT,
    **_COMMIT,
    **_TOLD,
    "owing_since": _TIME,
    "whole": _FLAG,
    "source": _TEXT,
    "order": ORDER,
    "late": _FLAG,
}

ROW: Final = StructType(
    [
        *_struct(**{**_RECORDS, **_COMPANIONS, **dict.fromkeys(_FLAGS, _FLAG)}).fields,
        StructField("has_ledger", _FLAG),
        StructField("ledger", _STORED_LEDGER),
        StructField("partition", _TEXT),
    ]
)
"""Reads the rows of every selection; a row has null for what its selection does not ask."""


def selection(asked: Asked, partition_key: tuple[str, ...] = ()) -> Selection:
    """What a query asks for, and of which documents. Together the two of a container ask for all its documents of
    entities.

    Args:
        asked: which documents.
        partition_key: paths of the container's partition key, such as ("/tenant", "/customer/id"); only for entities.
    """
    match asked:
        case "records":
            kind = _property("kind")
            not_staged = f'(NOT IS_DEFINED({kind}) OR {kind} != "staged")'
            return Selection(tuple(map(_property, _RECORDS)), f"{not_staged} AND {OF_ENTITIES}")
        case "staged":
            return Selection(tuple(map(_property, _STAGED)), f'{_property("kind")} = "staged"')
        case "companions":
            flags = tuple(f"{expression} AS {name}" for name, expression in _FLAGS.items())
            return Selection((*map(_property, _COMPANIONS), *flags), f"IS_DEFINED({_property(KIND)})")
        case "entities":
            return Selection(_of_entities(partition_key), f"NOT IS_DEFINED({_property(KIND)})")


def _of_entities(partition_key: tuple[str, ...]) -> tuple[str, ...]:
    kept = ", ".join(f'"{name}": {_property(LEDGER)}["{name}"]' for name in _STORED_LEDGER.fieldNames())
    values = ", ".join("c" + "".join(f'["{step}"]' for step in path.split("/")[1:]) for path in partition_key)
    return (
        *map(_property, _FROM_SERVICE),
        f"IS_DEFINED({_property(LEDGER)}) AS has_ledger",
        f"{{{kept}}} AS ledger",
        f"[{values}] AS partition",
    )


LEFT_OUT: Final[Mapping[type[Any], frozenset[str]]] = {
    OutputRef: frozenset(),
    Entry: frozenset(),
    Ledger: frozenset({"token"}),
    ProcessedRecord: frozenset(),
    StagedOutputs: frozenset({"outputs"}),
    ParkedMessage: frozenset({"reason", "envelope", "destination", "renewed"}),
    ColocatedRecord: frozenset(),
    StreamEntry: frozenset({"envelope", "before", "events"}),
    NumberedMessage: frozenset(),
}
"""By shape what the jobs do not read of it: bodies, and what no rule needs."""
