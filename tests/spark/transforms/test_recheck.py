"""What is reported is what both looks found."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import SparkSession

from spark_jobs.spark.head import capped
from spark_jobs.transforms.recheck import confirmed
from spark_jobs.transforms.schemas import FINDING

SINCE = datetime(2026, 1, 1)  # noqa: DTZ001  # As Spark takes times.


def finding(entity: str, message: str | None, versions: list[int], detail: str = "d") -> tuple[object, ...]:
    return ("two_owners", entity, message, versions, None, detail, "a", SINCE)


def test_only_what_both_looks_found_is_reported_as_the_second_saw_it(spark: SparkSession) -> None:
    first = [finding("e", None, [1]), finding("e", None, [1]), finding("e", "m", [1]), finding("f", None, [2, 3])]
    second = [finding("e", None, [1], "later"), finding("f", None, [2, 4]), finding("g", "m", [1])]
    frames = [spark.createDataFrame(rows, FINDING) for rows in (first, second)]
    assert [row["detail"] for row in confirmed(*frames).collect()] == ["later"]


def test_the_first_rows_come_to_the_driver_and_no_more(spark: SparkSession) -> None:
    numbers = spark.range(5).orderBy("id")
    rows, more = capped(numbers, 3)
    assert ([row["id"] for row in rows], more) == ([0, 1, 2], True)
    assert capped(numbers, 5) == ([*numbers.collect()], False)
    assert capped(numbers, 0) == ([], True)
