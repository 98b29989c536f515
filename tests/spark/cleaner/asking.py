"""What the reads of a clean-up give, of documents that nobody has to store: the local Cosmos' own query engine answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from io import StringIO
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from exactlyonce.stores.memory.store import MemoryStore
from local_cosmos.query.aggregates import selected
from local_cosmos.query.execution import given, matches
from local_cosmos.query.parser import parse_query
from local_cosmos.query.sources import Sources
from local_cosmos.values import serialise
from spark_jobs.cleaner.scan import Scan
from spark_jobs.cleaner.verdicts import judged
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.progress import Lines
from spark_jobs.source.application import Beginning
from spark_jobs.source.port import RAW, Made, Query, Spent
from spark_jobs.work import Work

Stored = Mapping[str, list[dict[str, Any]]]
"""Documents as the service has them, by container."""


@dataclass
class Asked:
    """A `Source` of these documents."""

    spark: SparkSession
    stored: Stored
    name: str = "given"
    spent: Spent = field(default_factory=Spent)
    repeats: bool = False

    def read(self, *queries: Query) -> Made:
        found = [(row,) for query in queries for row in _rows(query, self.stored.get(query.container, []))]
        frame = self.spark.createDataFrame(found, RAW)
        return Made(frame, len(found), Spent(), frame)

    def delete(self, container: str, rows: DataFrame) -> Made:
        raise NotImplementedError(f"{container}: {rows}")


def verdicts(spark: SparkSession, stored: Stored, job: Job, beginning: Beginning) -> DataFrame:
    """The verdicts of a clean-up on these documents: `verdicts.JUDGED`."""
    scan = Scan(Work(spark, job, Account(""), Asked(spark, stored), beginning, Lines(StringIO())))
    return judged(reduce(DataFrame.unionByName, (item.documents for item in scan.old())), job, beginning)


def stored_in(store: MemoryStore, job: Job, until: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """What a memory store holds, as the service would.

    Args:
        store: to go through.
        job: names the containers and partition keys.
        until: how many of the store's writes its read comes after; all of them if None. A batch is seen whole or not at all.
    """
    places = {entity.type: entity for entity in job.entities}
    found: dict[str, list[dict[str, Any]]] = {job.library: []}
    for (type, *values), partition in store.entities.items():
        place = places[str(type)]
        keys = {path[1:]: value for path, value in zip(place.partition_key, values, strict=True)}
        found.setdefault(place.container, []).extend(_documents(partition, until, keys))
    for key, partition in store.library.items():
        found[job.library].extend(_documents(partition, until, {"pk": key}))
    return found


def _documents(partition: Any, until: int | None, keys: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    position = len(partition.log)
    if until is not None:
        position = sum(int(version.etag.strip('"')) <= until for version in partition.log)
    while position in partition.within:
        position -= 1
    for item in partition.view(position).values():
        yield {"id": item.id, **keys, **item.document.value, "_etag": item.etag, "_ts": item.timestamp}


def _rows(query: Query, documents: list[dict[str, Any]]) -> Iterator[str]:
    parsed, value_of = _compiled(query.text)
    for document in documents:
        if matches(parsed, document, now=0):
            yield serialise(value_of(document)).decode()


@cache
def _compiled(text: str) -> Any:
    parsed = parse_query(text)
    return parsed, Sources(parsed, given({}, now=0)).compiler.evaluator(selected(parsed.selection))
