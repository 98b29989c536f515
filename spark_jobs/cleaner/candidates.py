"""What a clean-up reads of documents: the columns of its queries, and the rows parsed.

Each column has the expression that selects it and the type that parses it, so the query and the frame are one definition. No
query selects a body, a mark or an envelope: of what a document owes or holds the clean-up learns only that there is some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType, StructField, StructType

from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.library import BOOKS
from exactlyonce.values.frozen_json import SCHEMA
from spark_jobs.transforms.names import entity_key, plain_key
from spark_jobs.transforms.schemas import partition_of

_TEXT, _NUMBER, _FLAG = StringType(), LongType(), BooleanType()
_Columns = Mapping[str, tuple[str, DataType]]


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type) for name, type in fields.items()])


def _property(*path: str) -> str:
    return "c" + "".join(f'["{name}"]' for name in path)  # In brackets: some names are words of the query language.


def _properties(**types: DataType) -> _Columns:
    return {name: (_property(name), type) for name, type in types.items()}


_EVERY: Final[_Columns] = _properties(
    id=_TEXT, _etag=_TEXT, _ts=_NUMBER, schema=_NUMBER, entity=_TEXT, message=_TEXT, tx=_TEXT
)
_LASTING: Final = f"(IS_DEFINED({_property('answers')}) OR IS_DEFINED({_property('blobs')}))"
OF_LIBRARY: Final[_Columns] = {
    **_EVERY,
    **_properties(kind=_TEXT, pk=_TEXT, until=_NUMBER),
    "lasting": (_LASTING, _FLAG),
    "answered": (f"IS_OBJECT({_property('answer')})", _FLAG),
}
"""Columns of documents in the library's container."""
_NEEDED: Final = {
    "schema": _NUMBER,
    "type": _TEXT,
    "snapshot_every": _NUMBER,
    "event_sourced": _FLAG,
    "receptions": ArrayType(_struct(channel=_TEXT, next=_NUMBER)),
    "kept": ArrayType(_struct(tx=_TEXT)),
}
_LEDGER: Final = ", ".join(f'"{name}": {_property(LEDGER, name)}' for name in _NEEDED)
OF_COMPANIONS: Final[_Columns] = {
    **_EVERY,
    **_properties(version=_NUMBER),
    "kind": (_property(KIND), _TEXT),
    "channel": (_property("order", "channel"), _TEXT),
    "number": (_property("order", "number"), _NUMBER),
    "owes": (f"(IS_DEFINED({_property('owed')}) AND NOT IS_NULL({_property('owed')}))", _FLAG),
    "says": (f"IS_DEFINED({_property('owed')})", _FLAG),
    "holds": (f"IS_STRING({_property('held')})", _FLAG),
    "holds_none": (f"IS_NULL({_property('held')})", _FLAG),
}
"""Columns of companions."""

ENTITIES: Final = (
    f"NOT IS_DEFINED({_property(KIND)}) AND (IS_DEFINED({_property(LEDGER, 'kept')}) "
    f'OR {_property(LEDGER, "protocol")} IN ("stream", "resequencer"))'
)
"""Condition for the entities whose ledgers decide about other documents."""
COMPANIONS: Final = f"IS_DEFINED({_property(KIND)})"


def of_ledgers(paths: tuple[str, ...]) -> _Columns:
    """Columns of entities, in a container with these paths of the partition key."""
    return {
        **_properties(id=_TEXT, _etag=_TEXT, _ts=_NUMBER),
        "partition": (partition_of(paths), _TEXT),
        "ledger": (f"{{{_LEDGER}}}", _struct(**_NEEDED)),
    }


def selected(columns: _Columns) -> tuple[str, ...]:
    """The expressions of a query."""
    return tuple(
        expression if expression == _property(name) else f"{expression} AS {name}"
        for name, (expression, _) in columns.items()
    )


_ROW: Final = {
    name: type for columns in (OF_LIBRARY, of_ledgers(("/id",)), OF_COMPANIONS) for name, (_, type) in columns.items()
}


def candidates(raw: DataFrame, container: str, library: str) -> DataFrame:
    """The documents of rows of any of these selections. A document that was read twice, since its partition split, counts once.

    Args:
        raw: `port.RAW`.
        container: that was read.
        library: the library's container.

    Returns:
        The selected columns, null where a document was not asked for them; `container`; `entity`, which books lack; and
        `unreadable`.
    """
    row = raw.select(F.from_json("raw", _struct(**_ROW)).alias("row")).select("row.*")
    found = row.withColumns({"etag": F.col("_etag"), "ts": F.col("_ts"), "container": F.lit(container)}).drop(
        "_etag", "_ts"
    )
    unreadable = _in_library() if container == library else _companion()
    with_doubt = found.withColumn("unreadable", F.coalesce(_no_document() | unreadable, F.lit(True)))
    parts = F.col("ledger.type"), F.col("partition"), F.col("id")
    of_ledger = F.when(F.col("ledger").isNotNull(), F.coalesce(plain_key(*parts), entity_key(*parts)))
    named = with_doubt.withColumn("entity", F.coalesce(of_ledger, "entity", "pk"))
    return named.dropDuplicates(["id", "entity", "kind"])


def _no_document() -> Column:
    of_the_service = F.col("id").isNull() | F.col("etag").isNull() | F.col("ts").isNull()
    return of_the_service | (F.coalesce("schema", "ledger.schema", F.lit(SCHEMA + 1)) > SCHEMA)


def _in_library() -> Column:
    """Whether a document of the library lacks what its kind has, or lies in the partition of another entity."""
    kind = F.col("kind")
    return (
        F.when(kind == "book", F.col("pk") != BOOKS)
        .when(F.coalesce("entity", F.lit("")) != F.col("pk"), True)
        .when(kind == "page", F.col("until").isNull())
        .when(kind == "staged", F.col("tx").isNull())
        .otherwise(~kind.isin("parked", "request", "unparked"))
    )


def _companion() -> Column:
    """Whether a companion lacks what its kind has. An entity's document does not."""
    kind = F.col("kind")
    return (
        F.when(kind.isNull(), F.col("ledger").isNull())
        .when(F.col("entity").isNull(), True)
        .when(kind == "processed", ~F.col("says"))
        .when(kind == "entry", F.col("version").isNull())
        .when(kind == "numbered", F.col("channel").isNull() | F.col("number").isNull() | ~_says_held())
        .otherwise(True)
    )


def _says_held() -> Column:
    return F.col("holds") | F.col("holds_none")
