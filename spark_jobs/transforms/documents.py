"""From the rows of a source to documents, each with its problem if it is unreadable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import ArrayType, StructType

from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import DIGITS, KINDS, OUTBOX, SEPARATOR
from exactlyonce.records.library import BOOKS
from exactlyonce.values.frozen_json import SCHEMA
from spark_jobs.transforms.names import entity_key, plain_key
from spark_jobs.transforms.schemas import DOCUMENT, LEDGER_READ, LIBRARY, PLACE, ROW, row_of

_COMMIT: Final = ("entity", "message", "tx", "at")
_COMMITTED: Final = (*_COMMIT, "version", "outputs", "digest")
_IN_LIBRARY: Final = {
    "page": ("entity", "number", "version", "begin", "until", "marks"),
    "book": ("used", "open"),
    "staged": _COMMIT,
    "parked": ("entity", "message", "at"),
    "unparked": ("entity", "message"),
    "request": ("entity", "at"),
}
_COMPANIONS: Final = {
    "processed": _COMMITTED,
    "entry": _COMMITTED,
    "numbered": ("entity", "order.channel", "order.number", "source", "at"),
}
_LEDGER: Final = ("version", "type")
_RECEPTION: Final = ("channel", "source", "next", "held")
_KEPT: Final = ("id", "due", "tx")
_OWING: Final = ("cause", "tx", "at")
_PARTS: Final = "struct<type: string, partition: string, id: string>"
_EMPTY: Final = {"protocol": f"'{OUTBOX}'", "marks": "''", "left": "0", "cut": "0", "complete": "-1"}
"""Properties of a ledger that are left out where they are empty, and no lists."""
_MARK: Final = (
    rf"[{DIGITS.removeprefix('-')}-]{{7}}[A-Za-z0-9+/]{{16}}[{KINDS}{KINDS.upper()}][A-Za-z0-9+/=]{{4}}[^.]*+"
)
_MARKS: Final = rf"\A(?:{_MARK}(?:\.{_MARK})*+)?\z"


def unnamed(raw: DataFrame, place: str, *, repeated: bool = True) -> DataFrame:
    """The documents of rows, without the keys of entities that are not plain. Unknown properties are ignored.

    Args:
        raw: `port.RAW`: rows of any `schemas.Selection` of this place.
        place: `schemas.LIBRARY`, or the name of the entity type whose container was read.
        repeated: whether rows may repeat a document, since its partition split meanwhile: then each counts once, for the price
            of an exchange of all rows.

    Returns:
        `schemas.DOCUMENT`, and `parts`: null, or what `named` makes the key of. See `names`.
    """
    schema = row_of(place)
    row = raw.select(F.from_json("raw", schema).alias("row")).select("row.*", *_absent(schema))
    known = row.withColumns({"kind": _kind(place), "schema": F.coalesce("schema", "ledger.schema")})
    known = known.withColumns(_name(place))
    found = known.select(*_columns(place), "parts")
    if not repeated:
        return found
    # By the ETag where a document names no entity: two rows are one document only with the same ETag.
    whose = F.coalesce("entity", F.to_json("parts"), "etag")
    return found.withColumn("whose", whose).dropDuplicates(["id", "kind", "whose"]).drop("whose")


def named(found: DataFrame) -> DataFrame:
    """What `unnamed` returns, with all keys: `schemas.DOCUMENT`."""
    key = entity_key("parts.type", "parts.partition", "parts.id")
    return found.withColumn("entity", F.coalesce("entity", key)).drop("parts")


def _absent(schema: StructType) -> Iterable[Column]:
    """The columns that no row of a place has. As constants they cost nothing, and what depends on them is not computed."""
    names = {*schema.fieldNames()}
    return [F.lit(None).cast(field.dataType).alias(field.name) for field in ROW.fields if field.name not in names]


def _kind(place: str) -> Column:
    if place == LIBRARY:
        return F.col("kind")
    return F.when(F.col("has_ledger").isNotNull(), "entity").otherwise(F.col(KIND))


def _name(place: str) -> dict[str, Column]:
    """Key of the entity, of what it is made; where a damaged document lacks it, the key of its partition."""
    none = F.lit(None).cast(_PARTS)
    if place == LIBRARY:
        return {"entity": F.coalesce("entity", "pk"), "parts": none}
    type = F.when(F.length("ledger.type") > 0, F.col("ledger.type")).otherwise(place)
    key = plain_key(type, F.col("partition"), F.col("id"))
    is_entity = F.col("kind") == "entity"
    parts = F.struct(type.alias("type"), "partition", "id")
    has_parts = key.isNull() & F.col("partition").isNotNull() & F.col("id").isNotNull()
    return {
        "entity": F.when(is_entity, key).otherwise(F.col("entity")),
        "parts": F.when(is_entity & has_parts, parts),
    }


def _columns(place: str) -> Iterable[Column]:
    """The columns of `schemas.DOCUMENT`. As text: Python takes ten times as long to build the same from functions."""
    computed: Mapping[str, str] = {
        "id": "coalesce(id, '')",
        "etag": "coalesce(_etag, '')",
        "ts": "coalesce(_ts, 0)",
        "answer": "if(answer.asked IS NULL, NULL, answer)",
        "held": "holds",
        "ledger": f"if(has_ledger, {_ledger()}, NULL)",
        "problem": _problem(place),
    }
    for name in DOCUMENT.fieldNames():
        column = F.lit(place) if name == "place" else F.expr(computed.get(name, f"`{name}`"))
        yield column.alias(name)


def _ledger() -> str:
    """The ledger, with what is empty in it."""
    fields = {}
    for field in LEDGER_READ.fields:
        empty = f"cast(array() AS {field.dataType.simpleString()})" if isinstance(field.dataType, ArrayType) else None
        otherwise = _EMPTY.get(field.name, empty)
        name = f"ledger.`{field.name}`"
        fields[field.name] = name if otherwise is None else f"coalesce({name}, {otherwise})"
    return _struct(fields)


def _problem(place: str) -> str:
    """Null, or the first reason why a document is unreadable."""
    shapes = _IN_LIBRARY if place == LIBRARY else _COMPANIONS
    kinds = tuple(shapes) if place == LIBRARY else (*shapes, "entity")
    reasons = [
        _when("id IS NULL OR _etag IS NULL OR _ts IS NULL", "it is no document of the store"),
        f"if(schema > {SCHEMA}, format_string('it has schema version %d; these jobs read up to {SCHEMA}', schema), NULL)",
        *(_lacking(kind, fields) for kind, fields in shapes.items()),
        *(_about_partition() if place == LIBRARY else (*_about_companions(), *_about_ledger())),
        _when(f"kind IS NULL OR kind NOT IN {kinds}", "its kind is not known"),
    ]
    return _first(reasons)


def _lacking(kind: str, fields: tuple[str, ...]) -> str:
    reasons = [_unread({name: name for name in ("schema", *fields)})]
    if "outputs" in fields:
        reasons.append(_when(_bad("outputs"), "its outputs cannot be read"))
    return f"if(kind = '{kind}', {_first(reasons)}, NULL)"


def _about_partition() -> Iterable[str]:
    yield _when(f"pk != if(kind = 'book', '{BOOKS}', entity)", "it lies in the partition of another entity")
    yield _when(f"kind = 'page' AND NOT marks RLIKE r'{_MARKS}'", "its marks cannot be read")
    yield _when("kind = 'page' AND exists(answers, one -> one.cause IS NULL)", "an answer of it cannot be read")


def _about_companions() -> Iterable[str]:
    yield _when("kind = 'processed' AND NOT (owes OR owes_none)", "it has no owed that can be read")
    yield _when("kind = 'numbered' AND NOT (holds OR holds_none)", "it has no held that can be read")


def _about_ledger() -> Iterable[str]:
    """Problems of an entity's document. One without a ledger has none: it was not adopted yet."""
    marks = "coalesce(ledger.marks, '')"
    number = f"if({marks} = '', 0, length({marks}) - length(replace({marks}, '{SEPARATOR}', '')) + 1)"
    reasons = [
        _when("entity IS NULL AND parts IS NULL", "its partition key cannot be read"),
        f"if(has_ledger, {_unread({name: f'ledger.{name}' for name in ('schema', *_LEDGER)})}, NULL)",
        _when("nullif(ledger.entity, '') != entity", "its ledger is a copy of the ledger of another entity"),
        _when(f"NOT {marks} RLIKE r'{_MARKS}'", "the marks of its ledger cannot be read"),
        _when(
            f"coalesce(ledger.protocol, '{OUTBOX}') = '{OUTBOX}' AND {number} + coalesce(ledger.left, 0) != ledger.version",
            "its marks and those that have left are not its version",
        ),
        _when("ledger.left < 0 OR ledger.cut > ledger.version", "more marks have left than there were"),
        _when(_lacks("ledger.outbox", _OWING), "an entry of its ledger cannot be read"),
        _when(_lacks("ledger.answers", ("cause",)), "an answer of its ledger cannot be read"),
        _when(_lacks("ledger.receptions", _RECEPTION), "a reception of its ledger cannot be read"),
        _when(_lacks("ledger.kept", _KEPT), "a kept message of its ledger cannot be read"),
    ]
    yield f"if(kind = 'entity', {_first(reasons)}, NULL)"


def _unread(fields: Mapping[str, str]) -> str:
    """The fields that are absent or of another type; null if there is none."""
    names = ", ".join(f"if({field} IS NULL, '{name}', NULL)" for name, field in fields.items())
    return f"concat('it has no ', nullif(concat_ws(', ', {names}), ''), ' that can be read')"


def _lacks(parts: str, fields: tuple[str, ...]) -> str:
    """Whether a part lacks a field."""
    return f"coalesce(exists({parts}, part -> {' OR '.join(f'part.{name} IS NULL' for name in fields)}), false)"


def _bad(outputs: str) -> str:
    """Whether an output lacks its id or destination, or a part of its place."""
    unplaced = " OR ".join(f"output.place.{name} IS NULL" for name in PLACE.fieldNames())
    lacks = f"output.id IS NULL OR output.destination IS NULL OR (output.place IS NOT NULL AND ({unplaced}))"
    return f"exists({outputs}, output -> {lacks})"


def _struct(fields: Mapping[str, str]) -> str:
    named = ", ".join(f"'{name}', {field}" for name, field in fields.items())
    return f"named_struct({named})"


def _when(condition: str, reason: str) -> str:
    return f"if({condition}, '{reason}', NULL)"


def _first(reasons: Iterable[str]) -> str:
    return f"coalesce({', '.join(reasons)})"
