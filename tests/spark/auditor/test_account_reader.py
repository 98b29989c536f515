"""What an audit reads names its entities as the library does, whatever their keys are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from exactlyonce.values.envelope import EntityRef
from spark_jobs.auditor.account_reader import AccountReader, Chosen
from spark_jobs.job.configuration import Job
from spark_jobs.source.port import RAW, Made, Query, Spent
from spark_jobs.spark.frames import held
from spark_jobs.work import Work
from tests.spark.auditor.conftest import Silence
from tests.spark.transforms.test_documents import ENTITY, LEDGER

JOB = Job.read(
    {
        "database": "d",
        "endpoint": "http://127.0.0.1:9/",
        "entities": [{"type": "shop", "container": "shops", "partition_key": ["/p"], "protocol": "outbox"}],
    }
)
PLAIN, NUMBERED = EntityRef("shop", ("eu",), "s-1"), EntityRef("shop", (1.5,), "s-1")


class Shops:
    """A `Source` that gives these entities, whatever it is asked."""

    name = "shops"
    repeats = False

    def __init__(self, spark: SparkSession, entities: Iterable[EntityRef]) -> None:
        self._spark = spark
        self._rows = [
            (json.dumps({**ENTITY, "id": entity.id, "partition": entity.partition, "ledger": LEDGER}),)
            for entity in entities
        ]
        self.spent = Spent()

    def read(self, *queries: Query) -> Made:
        rows = self._rows if queries[0].container == "shops" else []
        frame = held(self._spark.createDataFrame(rows, RAW))
        return Made(frame, len(rows), Spent(), frame)


def reader(spark: SparkSession, *entities: EntityRef) -> AccountReader:
    work = Work(spark, JOB, cast("Any", None), cast("Any", Shops(spark, entities)), cast("Any", None), Silence())
    return AccountReader(work)


def keys(found: Any) -> list[str]:
    return sorted(row["entity"] for row in found.documents.collect())


def test_every_entity_that_is_read_has_its_key(spark: SparkSession) -> None:
    both = sorted(item.key for item in (PLAIN, NUMBERED))
    assert keys(reader(spark, PLAIN, NUMBERED).everything("first look")) == both
    changed = reader(spark, PLAIN, NUMBERED).changed("changes", 0)
    assert keys(changed) == both
    assert changed.documents.columns == ["entity", "id"]


@pytest.mark.parametrize("ref", [PLAIN, NUMBERED])
def test_of_entities_with_one_id_only_the_chosen_is_read(spark: SparkSession, ref: EntityRef) -> None:
    assert keys(reader(spark, PLAIN, NUMBERED).chosen("first look", Chosen((ref.key,)))) == [ref.key]
