"""What a clean-up reads: entities and what may be old, whole documents for an archive, and at last names of what is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.job.configuration import Job
from spark_jobs.source.application import Beginning
from spark_jobs.source.port import Query, Source
from spark_jobs.transforms.documents import documents
from spark_jobs.transforms.facts import before
from spark_jobs.transforms.schemas import LIBRARY, OF_ENTITIES, Asked, selection

_NAMES: Final = "id string, _etag string, kind string, entity string, pk string"


@dataclass(frozen=True, slots=True)
class Looks:
    """Reads for a clean-up.

    Attributes:
        source: where from.
        job: names containers and limits.
        beginning: of the clean-up: what is old is decided by it in every look.
    """

    source: Source
    job: Job
    beginning: Beginning

    def old(self) -> Iterator[tuple[str, DataFrame]]:
        """By container all entities, and all that may be old: `schemas.DOCUMENT` and a column `container`."""
        for place in {one.container: one for one in reversed(self.job.entities)}.values():
            entities = selection("entities", place.partition_key)
            raw = self.source.read(Query(place.container, entities.columns, entities.where))
            companions = self._old(place.container, "companions")
            yield place.container, self._documents(raw.unionByName(companions), place.container, place.type)
        records, staged = (self._old(self.job.library, asked) for asked in ("records", "staged"))
        yield self.job.library, self._documents(records.unionByName(staged), self.job.library, LIBRARY)

    def whole(self, container: str) -> DataFrame:
        """All documents of the library in a container that may be old: `entity, id, etag, document`, the JSON text."""
        asked: tuple[Asked, ...] = ("records", "staged") if container == self.job.library else ("companions",)
        raw = reduce(DataFrame.unionByName, (self._old(container, one, ("*",)) for one in asked))
        return self._named(raw).select("entity", "id", "etag", F.col("raw").alias("document"))

    def there(self) -> DataFrame:
        """All documents of the library that are there now: `container, kind, entity, id, etag`. The one read of everything.

        Few properties are read of each, which takes about a fifth of what it takes to delete as many as are added.
        """
        return reduce(DataFrame.unionByName, self._there())

    def _there(self) -> Iterator[DataFrame]:
        names = ('c["id"]', 'c["_etag"]', 'c["entity"]')
        beside = Query("", (*names, 'c["_kind"] AS kind'), selection("companions").where)
        for container in dict.fromkeys(one.container for one in self.job.entities):
            yield self._listed(Query(container, beside.columns, beside.where))
        yield self._listed(Query(self.job.library, (*names, 'c["kind"]', 'c["pk"]'), OF_ENTITIES))

    def _listed(self, query: Query) -> DataFrame:
        named = self._named(self.source.read(query))
        return named.select(F.lit(query.container).alias("container"), "kind", "entity", "id", "etag")

    @staticmethod
    def _named(raw: DataFrame) -> DataFrame:
        """Rows with what names them. One that was read twice, since its partition was split meanwhile, counts once."""
        named = raw.withColumn("row", F.from_json("raw", _NAMES)).select("raw", "row.*")
        found = named.withColumns({"etag": F.col("_etag"), "entity": F.coalesce("entity", "pk")})
        return found.dropDuplicates(["entity", "id"])

    def _old(self, container: str, asked: Asked, columns: tuple[str, ...] = ()) -> DataFrame:
        age = self.job.horizon if asked == "staged" else self.beginning.kept
        chosen = selection(asked)
        where = f'({chosen.where}) AND (c["_ts"] < {before(self.beginning.now, age)})'
        return self.source.read(Query(container, columns or chosen.columns, where))

    @staticmethod
    def _documents(raw: DataFrame, container: str, place: str) -> DataFrame:
        return documents(raw, place).withColumn("container", F.lit(container))
