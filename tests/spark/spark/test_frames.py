"""Little data is planned as little, and only the first rows come to the driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.spark.frames import LITTLE, ROWS_OF_A_TASK, capped, kept, packed, suited

NAME = "spark.sql.shuffle.partitions"


@pytest.fixture
def seven(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that cuts data into seven parts."""
    spark.conf.set(NAME, "7")
    yield spark
    spark.conf.set(NAME, LITTLE[NAME])


def test_settings_for_little_data_are_put_back_whatever_happens(seven: SparkSession) -> None:
    def fail() -> None:
        with suited(seven, ROWS_OF_A_TASK):
            assert {name: seven.conf.get(name) for name in LITTLE} == LITTLE
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seven.conf.get(NAME) == "7"


def test_much_data_is_planned_as_the_session_says(seven: SparkSession) -> None:
    with suited(seven, ROWS_OF_A_TASK + 1):
        assert seven.conf.get(NAME) == "7"


def test_rows_of_one_task_are_joined_and_grouped_without_an_exchange(seven: SparkSession) -> None:
    frame = seven.range(10, numPartitions=3)
    for rows, moves in ((10, False), (3 * ROWS_OF_A_TASK, True)):
        one = kept(packed(frame, rows))
        counted = one.hint("merge").join(one.groupBy("id").count(), "id")
        assert ("Exchange hashpartitioning" in counted._jdf.queryExecution().executedPlan().toString()) is moves


def test_the_first_rows_come_to_the_driver_and_no_more(spark: SparkSession) -> None:
    numbers = spark.range(5).orderBy("id")
    rows, more = capped(numbers, 3)
    assert ([row["id"] for row in rows], more) == ([0, 1, 2], True)
    assert capped(numbers, 5) == ([*numbers.collect()], False)
    assert capped(numbers, 0) == ([], True)
