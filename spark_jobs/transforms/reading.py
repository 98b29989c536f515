"""From the rows of a source to documents, each with the reason if it cannot be explained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType

from exactlyonce.companions import KIND
from exactlyonce.identity import EntityRef
from exactlyonce.shapes import SCHEMA
from spark_jobs.schemas import DOCUMENT, LEDGER_READ, LIBRARY, ROW

_COMMIT: Final = ("entity", "message", "tx", "at")
_TOLD: Final = (*_COMMIT, "version", "outputs", "digest")
_IN_LIBRARY: Final = {"processed": _TOLD, "staged": _COMMIT, "parked": ("entity", "message", "at")}
_BESIDE: Final = {
    "processed": _TOLD,
    "entry": (*_TOLD, "whole"),
    "numbered": ("entity", "source", "order.key", "order.number", "at", "late"),
}
_LEDGER: Final = ("version", "entries", "deleted", "type", "protocol", "sequences", "event_sourced", "receptions")
_ENTRY: Final = ("message", "tx", "version", "at", "outputs", "digest", "staged")


def documents(raw: DataFrame, place: str) -> DataFrame:
    """The documents that these rows are.

    A document that was read twice, since its partition was split meanwhile, counts once. Properties that nobody knows do not
    matter, whatever they hold.

    Args:
        raw: `schemas.RAW`: rows of any selection of this place.
        place: `schemas.LIBRARY`, or the name of the entity type whose container was read.

    Returns:
        `schemas.DOCUMENT`.
    """
    row = raw.select(F.from_json("raw", ROW).alias("row")).select("row.*")
    known = row.withColumns({"kind": _kind(place), "schema": F.coalesce("schema", "ledger.schema")})
    known = known.withColumn("entity", _entity(place))
    found = known.select(*_columns(place))
    # By the ETag where nothing says whose it is: then two are one only if they are the same version.
    return found.withColumn("whose", F.coalesce("entity", "etag")).dropDuplicates(["id", "kind", "whose"]).drop("whose")


def _kind(place: str) -> Column:
    if place == LIBRARY:
        return F.col("kind")
    return F.when(F.col("has_ledger").isNotNull(), "entity").otherwise(F.col(KIND))


def _entity(place: str) -> Column:
    """Key of the entity; where a damaged document does not say it, that of the partition it lies in."""
    if place == LIBRARY:
        return F.coalesce("entity", "pk")
    type = F.when(F.length("ledger.type") > 0, F.col("ledger.type")).otherwise(place)
    return F.when(F.col("kind") == "entity", _key(type, "partition", "id")).otherwise(F.col("entity"))


@F.udf(StringType())
def _key(type: str, partition: str | None, id: str | None) -> str | None:
    """`EntityRef.key`: JSON text has more than one form, and this is the library's own."""
    if partition is None or id is None:
        return None
    return EntityRef(type, tuple(json.loads(partition)), id).key


def _columns(place: str) -> Iterable[Column]:
    computed: Mapping[str, Column] = {
        "place": F.lit(place),
        "id": F.coalesce("id", F.lit("")),
        "etag": F.coalesce("_etag", F.lit("")),
        "ts": F.coalesce("_ts", F.lit(0)),
        "owes": F.when(F.col("owes_inline"), "inline"),
        "held": F.col("holds"),
        "ledger": F.when(F.col("has_ledger"), _ledger()),
        "problem": _problem(place),
    }
    return (computed.get(name, F.col(name)).alias(name) for name in DOCUMENT.fieldNames())


def _ledger() -> Column:
    """The ledger without what its entries owe."""
    kept = {name: F.col(f"ledger.{name}") for name in LEDGER_READ.fieldNames()}
    entries = F.transform("ledger.entries", lambda entry: entry.withField("owes", _owes(entry)).dropFields("owed"))
    return F.struct(*(column.alias(name) for name, column in {**kept, "entries": entries}.items()))


def _owes(entry: Column) -> Column:
    owed = entry.getField("owed")
    return F.when(owed == "staged", "staged").when(owed.isNotNull(), "inline")


def _problem(place: str) -> Column:
    """Null, or why a document cannot be explained: the first reason there is."""
    shapes = _IN_LIBRARY if place == LIBRARY else _BESIDE
    newer = F.col("schema") > SCHEMA
    reasons = [
        F.when(
            F.col("id").isNull() | F.col("_etag").isNull() | F.col("_ts").isNull(), "it is no document of the store"
        ),
        F.when(newer, F.format_string(f"it has schema version %d; these jobs read up to {SCHEMA}", "schema")),
        *(_lacking(kind, fields) for kind, fields in shapes.items()),
        _about_partition() if place == LIBRARY else F.coalesce(_about_beside(), _about_ledger()),
        F.when(_is_none_of([*shapes, *([] if place == LIBRARY else ["entity"])]), "its kind is not known"),
    ]
    return F.coalesce(*reasons)


def _lacking(kind: str, fields: tuple[str, ...]) -> Column:
    names = _unread({name: F.col(name) for name in ("schema", *fields)})
    outputs = F.col("outputs") if "outputs" in fields else F.array().cast(DOCUMENT["outputs"].dataType)
    return F.when(F.col("kind") == kind, F.coalesce(_told(names), F.when(_bad(outputs), "its outputs cannot be read")))


def _about_partition() -> Column:
    return F.when(F.col("pk") != F.col("entity"), "it lies in the partition of another entity")


def _about_beside() -> Column:
    kind = F.col("kind")
    neither = {
        "owed": (kind == "processed") & ~(F.col("owes_inline") | F.col("owes_none")),
        "held": (kind == "numbered") & ~(F.col("holds") | F.col("holds_none")),
    }
    return F.coalesce(*(F.when(unread, f"it has no {name} that can be read") for name, unread in neither.items()))


def _about_ledger() -> Column:
    """An entity without a ledger is explained: it was not adopted yet."""
    entries = F.col("ledger.entries")
    reasons = [
        F.when(F.col("entity").isNull(), "its partition key cannot be read"),
        F.when(F.col("has_ledger"), _told(_unread({name: F.col(f"ledger.{name}") for name in ("schema", *_LEDGER)}))),
        F.when(
            F.exists(
                entries,
                lambda one: (
                    F.exists(F.array(*(one.getField(name).isNull() for name in _ENTRY)), lambda lacks: lacks)
                    | _bad(one.getField("outputs"))
                ),
            ),
            "an entry of its ledger cannot be read",
        ),
        F.when(
            F.exists(
                "ledger.receptions",
                lambda one: (
                    one.getField("source").isNull() | one.getField("next").isNull() | one.getField("held").isNull()
                ),
            ),
            "a reception of its ledger cannot be read",
        ),
    ]
    return F.when(F.col("kind") == "entity", F.coalesce(*reasons))


def _unread(fields: Mapping[str, Column]) -> Column:
    """Names of the fields that are null."""
    return F.filter(
        F.array(*(F.when(field.isNull(), name) for name, field in fields.items())), lambda one: one.isNotNull()
    )


def _told(names: Column) -> Column:
    return F.when(
        F.size(names) > 0, F.concat(F.lit("it has no "), F.concat_ws(", ", names), F.lit(" that can be read"))
    )


def _bad(outputs: Column) -> Column:
    """Whether one of the outputs lacks its id or destination, or has an order without key or number."""

    def lacks(one: Column) -> Column:
        order = one.getField("order")
        unplaced = order.isNotNull() & (order.getField("key").isNull() | order.getField("number").isNull())
        return one.getField("id").isNull() | one.getField("destination").isNull() | unplaced

    return F.exists(outputs, lacks)


def _is_none_of(kinds: list[str]) -> Column:
    return F.col("kind").isNull() | ~F.col("kind").isin(kinds)
