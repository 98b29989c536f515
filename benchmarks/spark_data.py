"""Synthetic games as rows of the audit's queries, in Parquet: by formula, so a million takes seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.judgement import MOST_CHOSEN
from spark_jobs.job.configuration import Job
from spark_jobs.source.port import RAW, Made, Query, Spent
from spark_jobs.spark.frames import held, none
from spark_jobs.transforms.schemas import Asked, selection

RECORDS_PER_ENTITY: Final = 10
ENTRIES: Final = 2
"""Versions that each ledger still has, above those that left it."""
CHANGED: Final = 0.01
"""Share of the entities that change between two audits."""
MOST_CHANGED: Final = MOST_CHOSEN // 2
"""Most games that change: each with its read model. Of more the next audit would read everything."""
AT: Final = 1_790_000_000
"""Seconds since 1970 when all of it was written, and later what changed."""
LATER: Final = AT + 86_400

JOB: Final = Job.read(
    {
        "database": "synthetic",
        "endpoint": "http://127.0.0.1:9/",
        "entities": [
            {"type": "range", "container": "games", "partition_key": ["/gameId"], "protocol": "outbox"},
            {"type": "board", "container": "boards", "partition_key": ["/gameId"], "protocol": "resequencer"},
        ],
        "consumers": {"leader-board": "board"},
    }
)
_ASKED: Final[tuple[tuple[str, Asked], ...]] = (
    ("games", "entities"),
    ("boards", "entities"),
    ("exactlyonce", "records"),
)
"""What there is; companions and staged outputs there are none."""
_TABLE: Final = "ts int, key string, raw string"
_INDEXED: Final = 4 * 1024 * 1024
"""Bytes of rows that Parquet reads or skips together: the service's index leads to each document."""
_APART: Final = {"records": True, "channels": False, "sealed": False}


def generate(spark: SparkSession, folder: Path, records: int, *, changed: bool) -> None:
    """Write the rows that queries of the containers give.

    Args:
        spark: the session.
        folder: gets a table for each query.
        records: how many processed records.
        changed: whether the last entities have processed one message more since.
    """
    entities = records // RECORDS_PER_ENTITY
    fresh = (F.col("n") >= entities - min(int(entities * CHANGED), MOST_CHANGED)) if changed else F.lit(False)
    games = spark.range(entities).toDF("n").withColumn("fresh", fresh)
    games = games.withColumn("id", F.format_string("game-%09d", "n")).withColumn(
        "ts", F.when(fresh, LATER).otherwise(AT)
    )
    games = games.withColumn("newest", RECORDS_PER_ENTITY + ENTRIES + fresh.cast("bigint"))
    _write(games.select("ts", F.col("id").alias("key"), _game().alias("row")), folder / "games-entities")
    _write(games.select("ts", F.col("id").alias("key"), _board().alias("row")), folder / "boards-entities")
    versions = games.withColumn("version", F.explode(F.sequence(F.lit(1), F.lit(RECORDS_PER_ENTITY))))
    written = versions.select(F.lit(AT).alias("ts"), _key("range").alias("key"), _record().alias("row"))
    _write(written, folder / "exactlyonce-records")


def _write(rows: DataFrame, folder: Path) -> None:
    texts = rows.select("ts", "key", F.to_json("row", {"ignoreNullFields": "false"}).alias("raw"))
    texts.write.option("parquet.block.size", _INDEXED).parquet(str(folder))


def _key(type: str) -> Column:
    return F.format_string(f'["{type}","%s","%s"]', "id", "id")


def _commit(version: Column) -> list[Column]:
    """The properties that an entry and a record share."""
    name = F.concat(F.lit("-"), version.cast("string"))
    place = F.struct(
        F.concat(F.lit("from"), "id").alias("channel"),
        F.concat(F.lit("board/"), "id").alias("receiver"),
        version.cast("bigint").alias("number"),
    )
    output = F.struct(
        F.concat("id", F.lit("-out"), name).alias("id"),
        F.lit("leader-board").alias("destination"),
        place.alias("place"),
    )
    return [
        F.concat(F.lit("web/"), "id", name).alias("message"),
        F.concat("id", F.lit("-tx"), name).alias("tx"),
        version.cast("bigint").alias("version"),
        F.lit("2026-09-01T00:00:00Z").alias("at"),
        F.array(output).alias("outputs"),
        F.sha2(F.concat("id", name), 256).alias("digest"),
    ]


def _service() -> list[Column]:
    return [F.concat(F.lit('"'), "id", "ts", F.lit('"')).alias("_etag"), F.col("ts").alias("_ts")]


def _entity(ledger: Column) -> Column:
    partition = F.array("id").alias("partition")
    return F.struct("id", *_service(), F.lit(True).alias("has_ledger"), ledger.alias("ledger"), partition)


def _ledger(type: str, protocol: str, version: Column, entries: Column, receptions: Column) -> Column:
    fixed = {"deleted": F.lit(False), "schema": F.lit(1), "type": F.lit(type), "protocol": F.lit(protocol)}
    none = {
        "snapshot_every": F.lit(None),
        "event_sourced": F.lit(False),
        "owing_since": F.lit(None),
        "sequences": F.array(),
        "channels": F.array(),
        "kept": F.array(),
        "apart": F.struct(*(F.lit(there).alias(name) for name, there in _APART.items())),
    }
    ledger = {"version": version, "entries": entries, "receptions": receptions, **fixed, **none}
    return F.struct(*(column.alias(name) for name, column in ledger.items()))


def _game() -> Column:
    versions = F.sequence(F.lit(RECORDS_PER_ENTITY + 1).cast("bigint"), F.col("newest"))
    fixed = {"staged": False, "recorded": True, "seen": None, "owed": None}
    rest = [F.lit(value).alias(name) for name, value in fixed.items()]
    entries = F.transform(versions, lambda version: F.struct(*_commit(version), *rest))
    return _entity(_ledger("range", "outbox", F.col("newest"), entries, F.array()))


def _board() -> Column:
    held: Column = F.array().cast("array<array<bigint>>")
    none = [F.lit(None).alias(name) for name in ("gap_since", "failing", "passed")]
    channel, source = F.concat(F.lit("from"), "id").alias("channel"), F.concat(F.lit("range/"), "id").alias("source")
    reception = F.struct(channel, source, (F.col("newest") + 1).alias("next"), held.alias("held"), *none)
    return _entity(_ledger("board", "resequencer", F.col("newest"), F.array(), F.array(reception)))


def _record() -> Column:
    fixed = [F.lit("processed").alias("kind"), F.lit(1).alias("schema")]
    about = [_key("range").alias("pk"), _key("range").alias("entity")]
    return F.struct(
        F.concat(F.lit("processed:"), "id", F.lit("-"), F.col("version").cast("string")).alias("id"),
        F.concat(F.lit('"'), "id", F.col("version").cast("string"), F.lit('"')).alias("_etag"),
        F.lit(AT).alias("_ts"),
        *about,
        *fixed,
        *_commit(F.col("version")),
    )


@dataclass
class Tables:
    """A `Source` of what `generate` wrote. Conditions are pushed down to Parquet, as they are to the service's index."""

    spark: SparkSession
    folder: Path
    repeats = False

    def __post_init__(self) -> None:
        self.name = "tables"
        self.spent = Spent(units=None)

    def read(self, *queries: Query) -> Made:
        """The rows of the queries of an `AccountReader`."""
        rows = held(reduce(DataFrame.unionByName, map(self._read, queries)))
        number = rows.count()
        return Made(rows, number, Spent(number, 0, None), rows)

    def _read(self, query: Query) -> DataFrame:
        keys = {place.container: place.partition_key for place in JOB.entities}
        for container, asked in _ASKED:
            wanted = selection(asked, keys.get(container, ()))
            condition = f"({wanted.where})"
            if (query.container, query.columns) == (container, wanted.columns) and (query.where or "").startswith(
                condition
            ):
                rows = self.spark.read.schema(_TABLE).parquet(str(self.folder / f"{container}-{asked}"))
                return _where(rows, (query.where or "").removeprefix(condition)).select("raw")
        return none(self.spark, RAW)

    def delete(self, container: str, rows: DataFrame) -> Made:
        """Not in this benchmark."""
        raise NotImplementedError(f"{container}: {rows}")


def _where(rows: DataFrame, condition: str) -> DataFrame:
    """The rows that pass the selection and one more condition."""
    if changed := re.search(r'c\["_ts"\] >= (\d+)', condition):
        return rows.where(F.col("ts") >= int(changed[1]))
    if named := re.search(r" IN \((.*)\)\)?$", condition):
        values = re.findall(r'"((?:[^"\\]|\\.)*)"', named[1])
        # As text, which is what a service gets, too: Python would make a column of each value.
        return rows.where(f"key IN ({', '.join(map(_quoted, values))})")
    return rows


def _quoted(value: str) -> str:
    """A value of the query language, without its quotes, as one of Spark's. Both escape by a backslash."""
    return "'" + value.replace('\\"', '"').replace("'", "\\'") + "'"
