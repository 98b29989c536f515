"""The reads of a clean-up: old documents, ledgers that decide about them, whole documents for an archive, and names of
remaining documents.

Each column has a selecting expression and a type to parse, so the query and the frame are one definition. No query selects a
body, a mark or an envelope: the clean-up learns only whether a document owes or holds anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType

from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.library import BOOKS
from exactlyonce.values.frozen_json import SCHEMA
from spark_jobs.cleaner.verdicts import oldest_page
from spark_jobs.source.port import Made, Query
from spark_jobs.spark.frames import PARSED_OF_A_TASK, packed
from spark_jobs.transforms.names import entity_key, plain_key
from spark_jobs.transforms.schemas import OF_ENTITIES, partition_of, property_of, struct
from spark_jobs.work import Work

_NAMES: Final = "id string, _etag string, kind string, entity string, pk string"
_TEXT, _NUMBER, _FLAG = StringType(), LongType(), BooleanType()
_Columns = Mapping[str, tuple[str, DataType]]


def _properties(**types: DataType) -> _Columns:
    return {name: (property_of(name), type) for name, type in types.items()}


_EVERY: Final[_Columns] = _properties(
    id=_TEXT, _etag=_TEXT, _ts=_NUMBER, schema=_NUMBER, entity=_TEXT, message=_TEXT, tx=_TEXT
)
_LASTING: Final = f"(IS_DEFINED({property_of('answers')}) OR IS_DEFINED({property_of('blobs')}))"
OF_LIBRARY: Final[_Columns] = {
    **_EVERY,
    **_properties(kind=_TEXT, pk=_TEXT, until=_NUMBER),
    "lasting": (_LASTING, _FLAG),
    "answered": (f"IS_OBJECT({property_of('answer')})", _FLAG),
}
"""Columns of documents in the library's container."""
_NEEDED: Final = {
    "schema": _NUMBER,
    "type": _TEXT,
    "snapshot_every": _NUMBER,
    "event_sourced": _FLAG,
    "receptions": ArrayType(struct(channel=_TEXT, next=_NUMBER)),
    "kept": ArrayType(struct(tx=_TEXT)),
}
_LEDGER: Final = ", ".join(f'"{name}": {property_of(LEDGER, name)}' for name in _NEEDED)
OF_COMPANIONS: Final[_Columns] = {
    **_EVERY,
    **_properties(version=_NUMBER),
    "kind": (property_of(KIND), _TEXT),
    "channel": (property_of("order", "channel"), _TEXT),
    "number": (property_of("order", "number"), _NUMBER),
    "owes": (f"(IS_DEFINED({property_of('owed')}) AND NOT IS_NULL({property_of('owed')}))", _FLAG),
    "says": (f"IS_DEFINED({property_of('owed')})", _FLAG),
    "holds": (f"IS_STRING({property_of('held')})", _FLAG),
    "holds_none": (f"IS_NULL({property_of('held')})", _FLAG),
}
"""Columns of companions."""

ENTITIES: Final = (
    f"NOT IS_DEFINED({property_of(KIND)}) AND (IS_DEFINED({property_of(LEDGER, 'kept')}) "
    f'OR {property_of(LEDGER, "protocol")} IN ("stream", "resequencer"))'
)
"""Condition for the entities whose ledgers decide about other documents."""
COMPANIONS: Final = f"IS_DEFINED({property_of(KIND)})"


def of_ledgers(paths: tuple[str, ...]) -> _Columns:
    """Columns of entities, in a container with these paths of the partition key."""
    return {
        **_properties(id=_TEXT, _etag=_TEXT, _ts=_NUMBER),
        "partition": (partition_of(paths), _TEXT),
        "ledger": (f"{{{_LEDGER}}}", struct(**_NEEDED)),
    }


def selected(columns: _Columns) -> tuple[str, ...]:
    """The expressions of a query."""
    return tuple(
        expression if expression == property_of(name) else f"{expression} AS {name}"
        for name, (expression, _) in columns.items()
    )


_ROW: Final = {
    name: type for columns in (OF_LIBRARY, of_ledgers(("/id",)), OF_COMPANIONS) for name, (_, type) in columns.items()
}


def candidates(raw: DataFrame, container: str, library: str) -> DataFrame:
    """The documents of rows of any selection. A document that was read twice, since the partition split, counts once.

    Returns:
        The selected columns, null where a document was not asked for them; `container`; `entity`, which books lack; and
        `unreadable`.
    """
    row = raw.select(F.from_json("raw", struct(**_ROW)).alias("row")).select("row.*")
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
    kind, says_held = F.col("kind"), F.col("holds") | F.col("holds_none")
    return (
        F.when(kind.isNull(), F.col("ledger").isNull())
        .when(F.col("entity").isNull(), True)
        .when(kind == "processed", ~F.col("says"))
        .when(kind == "entry", F.col("version").isNull())
        .when(kind == "numbered", F.col("channel").isNull() | F.col("number").isNull() | ~says_held)
        .otherwise(True)
    )


@dataclass
class Scan:
    """Reads for a clean-up.

    Attributes:
        pages: whether it reads pages.
    """

    work: Work
    pages: bool = True
    _read: list[Made] = field(default_factory=list)

    def old(self) -> Iterator[tuple[DataFrame, int]]:
        """By container the documents that may be old, and the ledgers that decide about them, with the number of rows
        read. Each is read when asked for.
        """
        for place in self.work.job.places:
            ledgers = Query(place.container, selected(of_ledgers(place.partition_key)), ENTITIES)
            yield self._documents(place.container, ledgers, *self._old(place.container))
        library = self.work.job.library
        yield self._documents(library, *self._old(library))

    def whole(self, container: str) -> DataFrame:
        """All documents in a container that may be old: `entity, id, etag, document`, the JSON text."""
        named = self._named(*self._old(container, ("*",)))
        return named.select("entity", "id", "etag", F.col("raw").alias("document"))

    def there(self) -> tuple[DataFrame, int]:
        """All documents of the library that are there now, `container, kind, entity, id, etag`, and about how many."""
        before = len(self._read)
        found = reduce(DataFrame.unionByName, self._there())
        return found, sum(made.number for made in self._read[before:])

    def release(self) -> None:
        """Let go of the rows that were read. Frames of them have to be made by then."""
        for made in self._read:
            made.release()
        self._read.clear()

    def _there(self) -> Iterator[DataFrame]:
        names = ('c["id"]', 'c["_etag"]', 'c["entity"]')
        for place in self.work.job.places:
            yield self._listed(Query(place.container, (*names, 'c["_kind"] AS kind'), COMPANIONS))
        yield self._listed(Query(self.work.job.library, (*names, 'c["kind"]', 'c["pk"]'), OF_ENTITIES))

    def _listed(self, query: Query) -> DataFrame:
        named = self._named(query)
        return named.select(F.lit(query.container).alias("container"), "kind", "entity", "id", "etag")

    def _named(self, *queries: Query) -> DataFrame:
        """Rows with names. A document that was read twice, since the partition split, counts once."""
        named = self._made(*queries).rows.withColumn("row", F.from_json("raw", _NAMES)).select("raw", "row.*")
        found = named.withColumns({"etag": F.col("_etag"), "entity": F.coalesce("entity", "pk")})
        return found.dropDuplicates(["entity", "id"])

    def _old(self, container: str, columns: tuple[str, ...] = ()) -> Iterator[Query]:
        """Queries of all documents of the library in a container that may be old."""
        kept = self._before(self.work.beginning.kept)
        if container != self.work.job.library:
            yield Query.of(container, columns or selected(OF_COMPANIONS), COMPANIONS, kept)
            return
        columns = columns or selected(OF_LIBRARY)
        others = '(NOT IS_DEFINED(c["kind"]) OR c["kind"] NOT IN ("page", "staged"))'
        yield Query.of(container, columns, others, OF_ENTITIES, kept)
        yield Query.of(container, columns, 'c["kind"] = "staged"', self._before(self.work.job.horizon))
        if self.pages:
            until = f'c["until"] < {oldest_page(self.work.beginning)}'
            yield Query.of(container, columns, 'c["kind"] = "page"', until, f"NOT {_LASTING} OR {kept}")

    def _before(self, age: timedelta) -> str:
        return f'c["_ts"] < {self.work.beginning.now - int(age.total_seconds())}'

    def _documents(self, container: str, *queries: Query) -> tuple[DataFrame, int]:
        self.work.progress.begin(f"old documents, {container}")
        made = self._made(*queries)
        found = candidates(packed(made.rows, made.number, PARSED_OF_A_TASK), container, self.work.job.library)
        self.work.done(f"{made.number:,} documents")
        return found, made.number

    def _made(self, *queries: Query) -> Made:
        made = self.work.source.read(*queries)
        self._read.append(made)
        return made
