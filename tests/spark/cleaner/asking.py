"""What the reads of a clean-up give, of documents that nobody has to store: the local Cosmos' own query engine answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from io import StringIO
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from exactlyonce.stores.memory.store import MemoryStore
from spark_jobs.cleaner.scan import Scan
from spark_jobs.cleaner.verdicts import judged
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.progress import Lines
from spark_jobs.source.account import Beginning
from spark_jobs.source.port import RAW, Made, Query, Spent
from spark_jobs.work import Work
from tests.spark.transforms.dumping import answers, documents_in, keys_of

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
        found = [(row,) for query in queries for row in answers(query.text, self.stored.get(query.container, []))]
        frame = self.spark.createDataFrame(found, RAW)
        return Made(frame, len(found), Spent(), frame)

    def delete(self, container: str, rows: DataFrame) -> Made:
        raise NotImplementedError(f"{container}: {rows}")


def verdicts(spark: SparkSession, stored: Stored, job: Job, beginning: Beginning) -> DataFrame:
    """The verdicts of a clean-up on these documents: `verdicts.JUDGED`."""
    scan = Scan(Work(spark, job, Account(""), Asked(spark, stored), beginning, Lines(StringIO())))
    return judged(reduce(DataFrame.unionByName, (documents for documents, _ in scan.old())), job, beginning)


def stored_in(store: MemoryStore, job: Job, until: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """What a memory store holds, as the service would.

    Args:
        store: to go through.
        job: names the containers and partition keys.
        until: how many of the store's writes its read comes after; all of them if None.
    """
    paths = {entity.type: entity.partition_key for entity in job.entities}
    containers = {entity.type: entity.container for entity in job.entities}
    found: dict[str, list[dict[str, Any]]] = {job.library: []}
    for (type, *values), partition in store.entities.items():
        keys = keys_of(paths[str(type)], values)
        found.setdefault(containers[str(type)], []).extend(documents_in(partition, keys, until))
    for key, partition in store.library.items():
        found[job.library].extend(documents_in(partition, {"pk": key}, until))
    return found
