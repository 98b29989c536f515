"""The reads of a clean-up: entities and old documents, whole documents for an archive, and the names of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.source.port import Query
from spark_jobs.spark.frames import kept
from spark_jobs.transforms.documents import documents
from spark_jobs.transforms.facts import before
from spark_jobs.transforms.schemas import LIBRARY, OF_ENTITIES, OF_THE_LIBRARY, Asked, selection
from spark_jobs.work import Work

_NAMES: Final = "id string, _etag string, kind string, entity string, pk string"


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads for a clean-up.

    Attributes:
        work: the source, the job, and the time by which every read judges ages.
    """

    work: Work

    def old(self) -> Iterator[tuple[str, DataFrame]]:
        """By container all entities, and all documents that may be old: `schemas.DOCUMENT` and a column `container`."""
        for place in self.work.job.places:
            entities = selection("entities", place.partition_key)
            all_of_them = Query(place.container, entities.columns, entities.where)
            raw = self.work.source.read(all_of_them, *self._old(place.container, ("companions",)))
            yield place.container, self._documents(raw, place.container, place.type)
        old = self.work.source.read(*self._old(self.work.job.library, OF_THE_LIBRARY))
        yield self.work.job.library, self._documents(old, self.work.job.library, LIBRARY)

    def whole(self, container: str) -> DataFrame:
        """All documents in a container that may be old: `entity, id, etag, document`, the JSON text."""
        asked = OF_THE_LIBRARY if container == self.work.job.library else ("companions",)
        return self._named(self.work.source.read(*self._old(container, asked, ("*",)))).select(
            "entity", "id", "etag", F.col("raw").alias("document")
        )

    def there(self) -> DataFrame:
        """All documents of the library that are there now: `container, kind, entity, id, etag`.

        This read costs about a fifth of deleting as many documents as are added.
        """
        return reduce(DataFrame.unionByName, self._there())

    def _there(self) -> Iterator[DataFrame]:
        names = ('c["id"]', 'c["_etag"]', 'c["entity"]')
        for place in self.work.job.places:
            yield self._listed(Query(place.container, (*names, 'c["_kind"] AS kind'), selection("companions").where))
        yield self._listed(Query(self.work.job.library, (*names, 'c["kind"]', 'c["pk"]'), OF_ENTITIES))

    def _listed(self, query: Query) -> DataFrame:
        named = kept(self._named(self.work.source.read(query)))  # Now: a rate holds for each read by itself.
        return named.select(F.lit(query.container).alias("container"), "kind", "entity", "id", "etag")

    @staticmethod
    def _named(raw: DataFrame) -> DataFrame:
        """Rows with their names. A document that was read twice, since its partition split meanwhile, counts once."""
        named = raw.withColumn("row", F.from_json("raw", _NAMES)).select("raw", "row.*")
        found = named.withColumns({"etag": F.col("_etag"), "entity": F.coalesce("entity", "pk")})
        return found.dropDuplicates(["entity", "id"])

    def _old(self, container: str, asked: tuple[Asked, ...], columns: tuple[str, ...] = ()) -> Iterator[Query]:
        for one in asked:
            age = self.work.job.horizon if one == "staged" else self.work.beginning.kept
            wanted, is_old = selection(one), f'c["_ts"] < {before(self.work.beginning.now, age)}'
            yield Query.of(container, columns or wanted.columns, wanted.where, is_old)

    @staticmethod
    def _documents(raw: DataFrame, container: str, place: str) -> DataFrame:
        return documents(raw, place).withColumn("container", F.lit(container))
