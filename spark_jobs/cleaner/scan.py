"""The reads of a clean-up: entities and old documents, whole documents for an archive, and the names of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.source.port import Made, Query, shown_units
from spark_jobs.spark.frames import PARSED_OF_A_TASK, packed
from spark_jobs.transforms.documents import documents
from spark_jobs.transforms.facts import before
from spark_jobs.transforms.schemas import LIBRARY, OF_ENTITIES, OF_THE_LIBRARY, Asked, selection
from spark_jobs.work import Work

_NAMES: Final = "id string, _etag string, kind string, entity string, pk string"


class Old(NamedTuple):
    """Documents of one container.

    Attributes:
        documents: `schemas.DOCUMENT` and a column `container`.
        number: number of rows that were read.
    """

    documents: DataFrame
    number: int


@dataclass
class Scan:
    """Reads for a clean-up.

    Attributes:
        work: the source, the job, and the time by which every read judges ages.
    """

    work: Work
    _read: list[Made] = field(default_factory=list)

    def old(self) -> Iterator[Old]:
        """By container all entities, and all documents that may be old. Each is read when it is asked for."""
        for place in self.work.job.places:
            entities = selection("entities", place.partition_key)
            all_of_them = Query(place.container, entities.columns, entities.where)
            companions = self._old(place.container, ("companions",))
            yield self._documents(place.container, place.type, all_of_them, *companions)
        library = self.work.job.library
        yield self._documents(library, LIBRARY, *self._old(library, OF_THE_LIBRARY))

    def whole(self, container: str) -> DataFrame:
        """All documents in a container that may be old: `entity, id, etag, document`, the JSON text."""
        asked = OF_THE_LIBRARY if container == self.work.job.library else ("companions",)
        return self._named(*self._old(container, asked, ("*",))).select(
            "entity", "id", "etag", F.col("raw").alias("document")
        )

    def there(self) -> tuple[DataFrame, int]:
        """All documents of the library that are there now, `container, kind, entity, id, etag`, and about how many.

        This read costs about a fifth of deleting as many documents as are added.
        """
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
            yield self._listed(Query(place.container, (*names, 'c["_kind"] AS kind'), selection("companions").where))
        yield self._listed(Query(self.work.job.library, (*names, 'c["kind"]', 'c["pk"]'), OF_ENTITIES))

    def _listed(self, query: Query) -> DataFrame:
        named = self._named(query)
        return named.select(F.lit(query.container).alias("container"), "kind", "entity", "id", "etag")

    def _named(self, *queries: Query) -> DataFrame:
        """Rows with their names. A document that was read twice, since its partition split meanwhile, counts once."""
        named = self._made(*queries).rows.withColumn("row", F.from_json("raw", _NAMES)).select("raw", "row.*")
        found = named.withColumns({"etag": F.col("_etag"), "entity": F.coalesce("entity", "pk")})
        return found.dropDuplicates(["entity", "id"])

    def _old(self, container: str, asked: tuple[Asked, ...], columns: tuple[str, ...] = ()) -> Iterator[Query]:
        for one in asked:
            age = self.work.job.horizon if one == "staged" else self.work.beginning.kept
            wanted, is_old = selection(one), f'c["_ts"] < {before(self.work.beginning.now, age)}'
            yield Query.of(container, columns or wanted.columns, wanted.where, is_old)

    def _documents(self, container: str, place: str, *queries: Query) -> Old:
        self.work.progress.begin(f"old documents, {container}")
        made = self._made(*queries)
        found = documents(packed(made.rows, made.number, PARSED_OF_A_TASK), place)
        self.work.progress.done(f"{made.number:,} documents, {shown_units(self.work.source.spent.units)} in all")
        return Old(found.withColumn("container", F.lit(container)), made.number)

    def _made(self, *queries: Query) -> Made:
        made = self.work.source.read(*queries)
        self._read.append(made)
        return made
