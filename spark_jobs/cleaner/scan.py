"""The reads of a clean-up: old documents and the ledgers that decide about them, whole documents for an archive, and the names
of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.cleaner.candidates import (
    COMPANIONS,
    ENTITIES,
    OF_COMPANIONS,
    OF_LIBRARY,
    candidates,
    of_ledgers,
    selected,
)
from spark_jobs.cleaner.verdicts import oldest_page
from spark_jobs.source.port import Made, Query, shown_units
from spark_jobs.spark.frames import PARSED_OF_A_TASK, packed
from spark_jobs.transforms.schemas import OF_ENTITIES
from spark_jobs.work import Work

_NAMES: Final = "id string, _etag string, kind string, entity string, pk string"
_LASTING: Final = OF_LIBRARY["lasting"][0]


class Old(NamedTuple):
    """Documents of one container.

    Attributes:
        documents: `candidates.candidates`.
        number: number of rows that were read.
    """

    documents: DataFrame
    number: int


@dataclass
class Scan:
    """Reads for a clean-up.

    Attributes:
        work: the source, the job, and the time by which every read judges ages.
        pages: whether it reads pages.
    """

    work: Work
    pages: bool = True
    _read: list[Made] = field(default_factory=list)

    def old(self) -> Iterator[Old]:
        """By container all documents that may be old, and the ledgers that decide about them. Each is read when asked for."""
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
        """Let go of what was read. What is made of it has to be made by then."""
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
        """Rows with their names. A document that was read twice, since its partition split meanwhile, counts once."""
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

    def _documents(self, container: str, *queries: Query) -> Old:
        self.work.progress.begin(f"old documents, {container}")
        made = self._made(*queries)
        found = candidates(packed(made.rows, made.number, PARSED_OF_A_TASK), container, self.work.job.library)
        self.work.progress.done(f"{made.number:,} documents, {shown_units(self.work.source.spent.units)} in all")
        return Old(found, made.number)

    def _made(self, *queries: Query) -> Made:
        made = self.work.source.read(*queries)
        self._read.append(made)
        return made
