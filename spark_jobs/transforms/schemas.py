"""Schemas of the jobs: the columns of queries, the frames made of the rows, and the findings.

Each column of a `Selection` has a type to parse, so the query and the frame are one definition. No query selects a body:
states, envelopes, ways back and events stay in the store, and the jobs learn only whether a companion owes or holds anything.
The exceptions are the outputs and answers in a ledger, which the store gives only whole: parsing drops the bodies.

All times are in UTC; `_ts` counts seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

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
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER

LIBRARY: Final = "library"
"""`place` of documents in the library's container; the `place` of others is the name of an entity type."""

Asked = Literal["library", "entities", "companions"]
"""Documents that one query selects: in the library's container, or in one of entities."""
OF_THE_LIBRARY: Final[tuple[Asked, ...]] = ("library",)
OF_ENTITY_CONTAINERS: Final[tuple[Asked, ...]] = ("entities", "companions")


def struct(**fields: DataType) -> StructType:
    """A structure of fields that may be null."""
    return StructType([StructField(name, type) for name, type in fields.items()])


_TEXT, _NUMBER, _FLAG, _TIME = StringType(), LongType(), BooleanType(), TimestampType()

PLACE: Final = struct(channel=_TEXT, receiver=_TEXT, number=_NUMBER)
OUTPUTS: Final = ArrayType(struct(id=_TEXT, destination=_TEXT, place=PLACE))
ANSWER: Final = struct(status=_NUMBER, asked=_TEXT)
"""Of an answer to a request, without its headers and its body."""
ANSWERS: Final = ArrayType(struct(cause=_TEXT, answer=ANSWER))
"""Of ledgers and pages: each with the hash of its message."""
TO: Final = ArrayType(_TEXT)
"""Destinations that marks name."""
NUMBERS: Final = ArrayType(_NUMBER)
RANGES: Final = ArrayType(ArrayType(_NUMBER))
RECEPTIONS: Final = ArrayType(
    struct(
        channel=_TEXT,
        source=_TEXT,
        next=_NUMBER,
        held=RANGES,
        gap_since=_TIME,
        failing=_TEXT,
        passed=_TIME,
    )
)

KEPT: Final = ArrayType(struct(id=_TEXT, due=_TIME, tx=_TEXT))


LEDGER_READ: Final = struct(
    version=_NUMBER,
    type=_TEXT,
    protocol=_TEXT,
    entity=_TEXT,
    marks=_TEXT,
    to=TO,
    left=_NUMBER,
    cut=_NUMBER,
    complete=_NUMBER,
    answers=ANSWERS,
    outbox=ArrayType(struct(cause=_TEXT, tx=_TEXT, at=_NUMBER, outputs=ArrayType(struct(index=_NUMBER)))),
    receptions=RECEPTIONS,
    calls=ArrayType(_TEXT),
    kept=KEPT,
    schema=_NUMBER,
)
"""A ledger. What is empty is absent in the store, and empty in the documents that are made of it."""

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
        StructField("owes", _FLAG),
        StructField("order", PLACE),
        StructField("source", _TEXT),
        StructField("held", _FLAG),
        StructField("renewed", _TIME),
        StructField("sent", _TEXT),
        StructField("number", _NUMBER),
        StructField("before", _NUMBER),
        StructField("begin", _NUMBER),
        StructField("until", _NUMBER),
        StructField("marks", _TEXT),
        StructField("to", TO),
        StructField("answers", ANSWERS),
        StructField("used", _NUMBER),
        StructField("open", NUMBERS),
        StructField("stuck", NUMBERS),
        StructField("ledger", LEDGER_READ),
        StructField("problem", _TEXT),
    ]
)
"""A document of the library, or of an entity, as the rules see it.

    place: "library", or the name of the entity type of its container.
    id, etag, ts: the service's; `ts` in seconds.
    kind: "entity", "page", "book", "staged", "parked", "unparked", "request", "processed", "entry" or "numbered"; else as
        stored, null if it has none.
    entity: key of the entity that it is, or is about: `EntityRef.key`; `books.BOOKS` of a book.
    answer: to the request that its message came by; null if it has none.
    owes: whether it owes outputs.
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


def property_of(*path: str) -> str:
    """The expression of the query language for a property. In brackets: some names are words of the language."""
    return "c" + "".join(f'["{name}"]' for name in path)


OF_ENTITIES: Final = f'(NOT IS_DEFINED({property_of("pk")}) OR {property_of("pk")} != "{APPLICATION}")'
"""Condition for all documents in the library's container but the application's own."""

_FROM_SERVICE: Final = {"id": _TEXT, "_etag": _TEXT, "_ts": _NUMBER}
_COMMIT: Final = {"schema": _NUMBER, "entity": _TEXT, "message": _TEXT, "tx": _TEXT, "at": _TIME}
_ANSWERED: Final = '{"status": c["answer"]["status"], "asked": c["answer"]["asked"]} AS answer'
_FLAGS: Final = {
    "owes": 'IS_ARRAY(c["owed"])',
    "owes_none": 'IS_NULL(c["owed"])',
    "holds": 'IS_STRING(c["held"])',
    "holds_none": 'IS_NULL(c["held"])',
}
_IN_LIBRARY: Final[Mapping[str, DataType]] = {
    **_FROM_SERVICE,
    "pk": _TEXT,
    "kind": _TEXT,
    **_COMMIT,
    "renewed": _TIME,
    "sent": _TEXT,
    "version": _NUMBER,
    "number": _NUMBER,
    "before": _NUMBER,
    "begin": _NUMBER,
    "until": _NUMBER,
    "marks": _TEXT,
    "to": TO,
    "answers": ANSWERS,
    "used": _NUMBER,
    "open": NUMBERS,
    "stuck": NUMBERS,
}
_COMPANIONS: Final[Mapping[str, DataType]] = {
    **_FROM_SERVICE,
    KIND: _TEXT,
    **_COMMIT,
    "version": _NUMBER,
    "outputs": OUTPUTS,
    "digest": _TEXT,
    "order": PLACE,
    "source": _TEXT,
}

_OF_ENTITIES: Final[Mapping[str, DataType]] = {"has_ledger": _FLAG, "ledger": LEDGER_READ, "partition": _TEXT}
_OF_LIBRARY: Final[Mapping[str, DataType]] = {**_IN_LIBRARY, "answer": ANSWER}
_OF_ENTITY_CONTAINERS: Final[Mapping[str, DataType]] = {
    **_COMPANIONS,
    **dict.fromkeys(_FLAGS, _FLAG),
    "answer": ANSWER,
    **_OF_ENTITIES,
}
ROW: Final = struct(**{**_OF_LIBRARY, **_OF_ENTITY_CONTAINERS})
"""The columns of rows of all selections."""


def row_of(place: str) -> StructType:
    """Parses the rows of the selections of a place. Columns of one selection are null in rows of the other."""
    return struct(**(_OF_LIBRARY if place == LIBRARY else _OF_ENTITY_CONTAINERS))


def selection(asked: Asked, partition_key: tuple[str, ...] = ()) -> Selection:
    """Columns and condition of a query. The selections of a container together select all its documents.

    Args:
        asked: the documents to select.
        partition_key: paths of the container's partition key, such as ("/tenant", "/customer/id"); only for entities.
    """
    match asked:
        case "library":
            return Selection((*map(property_of, _IN_LIBRARY), _ANSWERED), OF_ENTITIES)
        case "companions":
            flags = tuple(f"{expression} AS {name}" for name, expression in _FLAGS.items())
            return Selection((*map(property_of, _COMPANIONS), _ANSWERED, *flags), f"IS_DEFINED({property_of(KIND)})")
        case "entities":
            return Selection(_of_entities(partition_key), f"NOT IS_DEFINED({property_of(KIND)})")


def _of_entities(partition_key: tuple[str, ...]) -> tuple[str, ...]:
    kept = ", ".join(f'"{name}": {property_of(LEDGER)}["{name}"]' for name in LEDGER_READ.fieldNames())
    return (
        *map(property_of, _FROM_SERVICE),
        f"IS_DEFINED({property_of(LEDGER)}) AS has_ledger",
        f"{{{kept}}} AS ledger",
        f"{partition_of(partition_key)} AS partition",
    )


def partition_of(paths: tuple[str, ...]) -> str:
    """The expression of the query language for the values of a document's partition key, as an array."""
    values = (property_of(*path.split("/")[1:]) for path in paths)
    return f"[{', '.join(values)}]"


LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    "Ledger": frozenset({"token", "deleted", "lost", "sequences", "snapshot_every", "event_sourced", "blobs"}),
    "OutboxEntry": frozenset({"since", "request", "answer"}),
    "Pending": frozenset({"to", "envelope", "delay", "id", "place"}),
    "Page": frozenset({"hashes", "blobs"}),
    "Book": frozenset({"ended", "within", "searched", "written"}),
    "StagedOutputs": frozenset({"outputs"}),
    "ParkedMessage": frozenset({"reason", "envelope", "destination", "place"}),
    "RequestDocument": frozenset({"request", "envelope"}),
    "ColocatedRecord": frozenset({"content", "owing_since"}),
    "StreamEntry": frozenset({"envelope", "before", "whole", "events", "owing_since", "since"}),
    "NumberedMessage": frozenset({"late"}),
}
"""Properties of each shape that the jobs do not read: bodies, and what no rule needs."""
