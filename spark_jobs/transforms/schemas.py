"""Schemas of what the jobs read and write: the columns of queries, the frames made of them, and the findings.

Each column of a `Selection` has the type that parses it, so the query and the frame are one definition. No query selects a
body: states, envelopes, ways back and events stay in the store, and of owed outputs and held messages the jobs learn only
that there are some. The exceptions are entries and channels of a ledger, which the store gives only whole: owed outputs,
bodies of answers and marks in them are dropped when they are parsed.

All times are in UTC; `_ts` counts seconds.
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
from exactlyonce.records.channels import Channel
from exactlyonce.records.companions import KIND, ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.kept import Kept
from exactlyonce.records.ledger import LEDGER, Entry, Ledger
from exactlyonce.records.library import (
    ChannelDocument,
    ParkedMessage,
    ProcessedRecord,
    RequestDocument,
    Seal,
    StagedOutputs,
)
from exactlyonce.records.outputs import OutputRef

LIBRARY: Final = "library"
"""`place` of documents in the library's container; the `place` of others is the name of an entity type."""

Asked = Literal["records", "staged", "entities", "companions"]
"""Documents that one query selects: the first two in the library's container, the others in one of entities."""
OF_THE_LIBRARY: Final[tuple[Asked, ...]] = ("records", "staged")
OF_ENTITY_CONTAINERS: Final[tuple[Asked, ...]] = ("entities", "companions")


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type) for name, type in fields.items()])


_TEXT, _NUMBER, _FLAG, _TIME = StringType(), LongType(), BooleanType(), TimestampType()

PLACE: Final = _struct(channel=_TEXT, receiver=_TEXT, number=_NUMBER)
OUTPUTS: Final = ArrayType(_struct(id=_TEXT, destination=_TEXT, place=PLACE))
ANSWER: Final = _struct(status=_NUMBER, asked=_TEXT)
"""Of an answer to a request, without its headers and its body."""
RANGES: Final = ArrayType(ArrayType(_NUMBER))
CHANNEL: Final = _struct(id=_TEXT, source=_TEXT, received=RANGES)
APART: Final = _struct(records=_FLAG, channels=_FLAG, sealed=_FLAG, forgotten=_struct(mark=_NUMBER, turn=_TEXT))
SEQUENCES: Final = ArrayType(_struct(destination=_TEXT, receiver=_TEXT, channel=_TEXT, last=_NUMBER, ordered=_FLAG))
RECEPTIONS: Final = ArrayType(
    _struct(
        channel=_TEXT,
        source=_TEXT,
        next=_NUMBER,
        held=RANGES,
        gap_since=_TIME,
        failing=_TEXT,
        passed=_TIME,
    )
)

KEPT: Final = ArrayType(_struct(id=_TEXT, due=_TIME, tx=_TEXT))


def _entry(**owed: DataType) -> StructType:
    return _struct(
        message=_TEXT,
        tx=_TEXT,
        version=_NUMBER,
        at=_TIME,
        outputs=OUTPUTS,
        digest=_TEXT,
        staged=_FLAG,
        recorded=_FLAG,
        seen=_NUMBER,
        answer=ANSWER,
        request=_TEXT,
        **owed,
    )


def _ledger(entry: StructType) -> StructType:
    return _struct(
        version=_NUMBER,
        entries=ArrayType(entry),
        channels=ArrayType(CHANNEL),
        apart=APART,
        deleted=_FLAG,
        schema=_NUMBER,
        type=_TEXT,
        protocol=_TEXT,
        sequences=SEQUENCES,
        snapshot_every=_NUMBER,
        event_sourced=_FLAG,
        receptions=RECEPTIONS,
        calls=ArrayType(_TEXT),
        kept=KEPT,
        unrecorded=_NUMBER,
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
        StructField("answer", ANSWER),
        StructField("owes", _TEXT),
        StructField("owing_since", _TIME),
        StructField("whole", _FLAG),
        StructField("channel", CHANNEL),
        StructField("turn", _TEXT),
        StructField("order", PLACE),
        StructField("source", _TEXT),
        StructField("late", _FLAG),
        StructField("held", _FLAG),
        StructField("ledger", LEDGER_READ),
        StructField("problem", _TEXT),
    ]
)
"""A document of the library, or of an entity, as the rules see it.

    place: "library", or the name of the entity type of its container.
    id, etag, ts: the service's; `ts` in seconds.
    kind: "entity", "processed", "staged", "parked", "channel", "seal", "request", "entry" or "numbered"; else as stored, null
        if it has none.
    entity: key of the entity that it is, or is about: `EntityRef.key`.
    answer: to the request that its message came by; null if it has none.
    owes: null if it owes nothing, else "inline".
    held: whether it holds a message.
    problem: null, or why the document is unreadable. Its other columns are unreliable then.
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
"""A finding. Its identity is rule, entity, message, versions and subject.

    subject: id of an output or a document, a transaction, or a channel and number.
    detail, advice: sentences on what was found, and on what to do.
    since: time from which on it is so, as far as the documents show.
"""

IDENTITY: Final = ("rule", "entity", "message", "versions", "subject")


@dataclass(frozen=True, slots=True)
class Selection:
    """Columns and condition of a query.

    Attributes:
        columns: expressions of the query language, over the document `c`.
        where: condition; None for all.
    """

    columns: tuple[str, ...]
    where: str | None


def _property(name: str) -> str:
    return f'c["{name}"]'  # In brackets: some names are words of the query language.


OF_ENTITIES: Final = f'(NOT IS_DEFINED({_property("pk")}) OR {_property("pk")} != "{APPLICATION}")'
"""Condition for documents of entities: all in the library's container but the application's own."""

_FROM_SERVICE: Final = {"id": _TEXT, "_etag": _TEXT, "_ts": _NUMBER}
_COMMIT: Final = {"schema": _NUMBER, "entity": _TEXT, "message": _TEXT, "tx": _TEXT, "at": _TIME}
_CONTENT: Final = {"version": _NUMBER, "outputs": OUTPUTS, "digest": _TEXT}
_ANSWERED: Final = '{"status": c["answer"]["status"], "asked": c["answer"]["asked"]} AS answer'
_FLAGS: Final = {
    "owes_inline": 'IS_ARRAY(c["owed"])',
    "owes_none": 'IS_NULL(c["owed"])',
    "holds": 'IS_STRING(c["held"])',
    "holds_none": 'IS_NULL(c["held"])',
}
_RECORDS: Final[Mapping[str, DataType]] = {
    **_FROM_SERVICE,
    "pk": _TEXT,
    "kind": _TEXT,
    **_COMMIT,
    **_CONTENT,
    "channel": CHANNEL,
    "turn": _TEXT,
}
_STAGED: Final[Mapping[str, DataType]] = {**_FROM_SERVICE, "pk": _TEXT, "kind": _TEXT, **_COMMIT}
_COMPANIONS: Final[Mapping[str, DataType]] = {
    **_FROM_SERVICE,
    KIND: _TEXT,
    **_COMMIT,
    **_CONTENT,
    "owing_since": _TIME,
    "whole": _FLAG,
    "order": PLACE,
    "source": _TEXT,
    "late": _FLAG,
}

_OF_ENTITIES: Final[Mapping[str, DataType]] = {"has_ledger": _FLAG, "ledger": _STORED_LEDGER, "partition": _TEXT}
_OF_LIBRARY: Final[Mapping[str, DataType]] = {**_RECORDS, "answer": ANSWER}
_OF_ENTITY_CONTAINERS: Final[Mapping[str, DataType]] = {
    **_COMPANIONS,
    **dict.fromkeys(_FLAGS, _FLAG),
    "answer": ANSWER,
    **_OF_ENTITIES,
}
ROW: Final = _struct(**{**_OF_LIBRARY, **_OF_ENTITY_CONTAINERS})
"""The columns of rows of all selections."""


def row_of(place: str) -> StructType:
    """Parses the rows of the selections of a place. Columns of one selection are null in rows of the other."""
    return _struct(**(_OF_LIBRARY if place == LIBRARY else _OF_ENTITY_CONTAINERS))


def selection(asked: Asked, partition_key: tuple[str, ...] = ()) -> Selection:
    """Columns and condition of a query. The two selections of a container together select all its documents of entities.

    Args:
        asked: the documents to select.
        partition_key: paths of the container's partition key, such as ("/tenant", "/customer/id"); only for entities.
    """
    match asked:
        case "records":
            kind = _property("kind")
            not_staged = f'(NOT IS_DEFINED({kind}) OR {kind} != "staged")'
            return Selection((*map(_property, _RECORDS), _ANSWERED), f"{not_staged} AND {OF_ENTITIES}")
        case "staged":
            return Selection(tuple(map(_property, _STAGED)), f'{_property("kind")} = "staged"')
        case "companions":
            flags = tuple(f"{expression} AS {name}" for name, expression in _FLAGS.items())
            return Selection((*map(_property, _COMPANIONS), _ANSWERED, *flags), f"IS_DEFINED({_property(KIND)})")
        case "entities":
            return Selection(_of_entities(partition_key), f"NOT IS_DEFINED({_property(KIND)})")


def _of_entities(partition_key: tuple[str, ...]) -> tuple[str, ...]:
    kept = ", ".join(f'"{name}": {_property(LEDGER)}["{name}"]' for name in _STORED_LEDGER.fieldNames())
    return (
        *map(_property, _FROM_SERVICE),
        f"IS_DEFINED({_property(LEDGER)}) AS has_ledger",
        f"{{{kept}}} AS ledger",
        f"{partition_of(partition_key)} AS partition",
    )


def partition_of(paths: tuple[str, ...]) -> str:
    """The expression of the query language for the values of a document's partition key, as an array."""
    values = ("c" + "".join(f'["{step}"]' for step in path.split("/")[1:]) for path in paths)
    return f"[{', '.join(values)}]"


LEFT_OUT: Final[Mapping[type[Any], frozenset[str]]] = {
    OutputRef: frozenset(),
    Entry: frozenset({"content"}),
    Channel: frozenset({"marks"}),
    Ledger: frozenset({"token"}),
    ProcessedRecord: frozenset(),
    StagedOutputs: frozenset({"outputs"}),
    ParkedMessage: frozenset({"reason", "envelope", "destination", "renewed", "place"}),
    ChannelDocument: frozenset(),
    Kept: frozenset(),
    Seal: frozenset(),
    RequestDocument: frozenset({"request", "envelope"}),
    ColocatedRecord: frozenset({"content"}),
    StreamEntry: frozenset({"envelope", "before", "events"}),
    NumberedMessage: frozenset(),
}
"""Fields of each shape that the jobs do not read: bodies, and fields that no rule needs."""
