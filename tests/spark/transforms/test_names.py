"""What Spark puts together itself is what the library would have written; the rest is left to the library."""

from __future__ import annotations

import json
from itertools import product

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from exactlyonce.values.envelope import EntityRef, PartitionValue, message_key
from spark_jobs.transforms.names import entity_key, plain_key, plain_source, prefix, source_of

ORDINARY = ("order", "o-1", "A.b_c~9", "")
ODD = ("a b", "é", "日本", "a/b", "%2F", '"', '","', "\\", "]", "=7", "+*", "\x01", "\x7f", "end\n", "\u2028", "\x85")
ODD_VALUES: tuple[PartitionValue, ...] = (*ODD, 7, -1, 1.5, 1e21, 1e-7, 2**53, True)
ENTITIES = [
    *(EntityRef(type, partition, id) for type, partition, id in product(ORDINARY, [("o-1",), ("", "b")], ORDINARY)),
    *(EntityRef("order", (value,), "o-1") for value in ODD_VALUES),
    *(EntityRef("order", ("eu", value), "o-1") for value in ODD_VALUES),
    *(EntityRef("order", (text,), text) for text in ODD),
    *(EntityRef("order", ("eu",), text) for text in ODD),
    *(EntityRef(text, ("eu",), "o-1") for text in ODD),
    *(
        EntityRef("order", ("p" * length,), "o" * 200) for length in (817, 818, 1_700)
    ),  # Readable up to 1,024 characters.
    *(EntityRef("order", (text,), text) for text in ("日" * 113, "🙂" * 255)),
    EntityRef("order", (), "o-1"),
]


def text(entity: EntityRef) -> str:
    return json.dumps(entity.partition, ensure_ascii=False, separators=(",", ":"))


def test_a_key_that_spark_writes_is_the_one_that_the_library_writes(spark: SparkSession) -> None:
    given = [(entity.type, text(entity), entity.id, entity.key) for entity in ENTITIES]
    frame = spark.createDataFrame(given, "type string, partition string, id string, key string")
    columns = (f.col("type"), f.col("partition"), f.col("id"))
    found = frame.select("key", plain_key(*columns).alias("plain"), entity_key(*columns).alias("by_library")).collect()
    assert [row["by_library"] for row in found] == [entity.key for entity in ENTITIES]
    assert not [row for row in found if row["plain"] not in {None, row["key"]}]
    plain = {row["key"] for row in found if row["plain"] is not None}
    assert {
        entity.key for entity in ENTITIES if {entity.type, *entity.partition, entity.id} <= {*ORDINARY, "b", "eu"}
    } - plain == {EntityRef("order", (), "o-1").key}


def test_a_source_that_spark_writes_is_the_one_that_the_library_writes(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(entity.key, entity.source) for entity in ENTITIES], "key string, source string")
    found = frame.select(
        "key",
        "source",
        plain_source("key").alias("plain"),
        source_of("key").alias("by_library"),
        prefix("source").alias("prefix"),
    ).collect()
    assert not [row for row in found if row["by_library"] != row["source"]]
    assert not [row for row in found if row["plain"] not in {None, row["source"]}]
    assert not [row for row in found if row["prefix"] != message_key(row["source"], "")]
    assert {EntityRef("order", ("o-1",), "o-1").key, EntityRef("order", ("", "b"), "o-1").key} & {
        row["key"] for row in found if row["plain"] is None
    } == {EntityRef("order", ("", "b"), "o-1").key}
