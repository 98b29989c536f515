"""What Spark takes from marks is what the library wrote into them."""

from __future__ import annotations

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from exactlyonce.protocols.outbox.due import RELEASE
from exactlyonce.records.ledger import DIGITS, KEPT, Mark, destination_digit, written
from exactlyonce.values.envelope import EntityRef, derived_id, message_hash
from spark_jobs.transforms.marks import (
    hash_in,
    hash_of,
    instant_of,
    is_timed,
    kind_in,
    marks_in,
    output_id,
    outputs_of,
    time_in,
)

SHOP = EntityRef("shop", ("ä", 7), "o-1")
TO = [f"to-{number}" for number in range(len(DIGITS) + 300)]
PLACES = (0, 1, len(DIGITS) - 1, len(DIGITS), len(DIGITS) + 299)
SENT = "".join(map(destination_digit, PLACES)) + KEPT
MARKS = [
    Mark(0, message_hash("web/m-1"), "f", True, "AAAA", SENT),
    Mark(1_800_000_000_123, message_hash("web/ö"), "r", False, "+/==", ""),
]


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> list[Row]:
    """What is taken from each mark."""
    frame = spark.createDataFrame([(written(item.text for item in MARKS),)], "marks string")
    mark = f.col("mark")
    found = frame.select(f.explode(marks_in("marks")).alias("mark")).select(
        hash_in(mark).alias("hash"),
        kind_in(mark).alias("kind"),
        is_timed(mark).alias("timed"),
        f.unix_millis(instant_of(time_in(mark))).alias("since"),
    )
    return sorted(found.collect(), key=lambda row: row["since"])


def test_time_hash_and_kind_are_read_as_they_were_written(read: list[Row]) -> None:
    assert [(row["since"], row["hash"], row["kind"], row["timed"]) for row in read] == [
        (mark.since, mark.hash, mark.kind, mark.timed) for mark in MARKS
    ]


def test_no_marks_are_none(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("",)], "marks string").select(f.size(marks_in("marks")).alias("number"))
    assert [row["number"] for row in frame.collect()] == [0]


def test_outputs_have_the_ids_and_destinations_that_the_library_gave(spark: SparkSession) -> None:
    rows = [(SHOP.key, mark.text, TO) for mark in MARKS]
    frame = outputs_of(spark.createDataFrame(rows, "entity string, mark string, to array<string>"))
    ids = output_id(f.col("entity"), hash_in(f.col("mark")), f.col("index"))
    found = {row["index"]: row for row in frame.withColumn("id", ids).collect()}
    assert [found[index]["destination"] for index in range(len(PLACES))] == [TO[place] for place in PLACES]
    assert found[len(PLACES)]["destination"] is None
    assert [found[index]["id"] for index in range(len(SENT))] == [
        derived_id(SHOP, MARKS[0].hash, index) for index in range(len(SENT))
    ]


@pytest.mark.parametrize("key", ["web/m-1", "shop%2Fä/é", f"shop/{RELEASE}1", ""])
def test_the_hash_of_a_key_is_the_librarys(spark: SparkSession, key: str) -> None:
    frame = spark.createDataFrame([(key,)], "key string").select(hash_of(f.col("key")).alias("hash"))
    assert [row["hash"] for row in frame.collect()] == [message_hash(key)]
