"""Synthetic games as rows of the audit's queries, in Parquet: by formula, so a million takes seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.records.ledger import SEPARATOR, destination_digit, written_time
from spark_jobs.auditor.judgement import MOST_CHOSEN
from spark_jobs.job.configuration import Job
from spark_jobs.source.port import RAW, Made, Query, Spent
from spark_jobs.spark.frames import held, none
from spark_jobs.transforms.schemas import Asked, selection

RECORDS_PER_ENTITY: Final = 10
"""Marks in the page of each game."""
MARKS: Final = 2
"""Those that each ledger still has."""
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
    ("boards", "companions"),
    ("exactlyonce", "library"),
)
"""What there is: games and their lines on the board, the documents of numbers, and pages."""
_TABLE: Final = "ts int, key string, raw string"
_INDEXED: Final = 4 * 1024 * 1024
"""Bytes of rows that Parquet reads or skips together: the service's index leads to each document."""
_TO: Final = "leader-board"


def generate(spark: SparkSession, folder: Path, records: int, *, changed: bool) -> None:
    """Write the rows that queries of the containers give.

    Args:
        spark: the session.
        folder: gets a table for each query.
        records: how many marks pages have.
        changed: whether the last entities have processed one message more since.
    """
    entities = records // RECORDS_PER_ENTITY
    fresh = (F.col("n") >= entities - min(int(entities * CHANGED), MOST_CHANGED)) if changed else F.lit(False)
    games = spark.range(entities).toDF("n").withColumn("fresh", fresh)
    games = games.withColumn("id", F.format_string("game-%09d", "n"))
    games = games.withColumn("ts", F.when(fresh, LATER).otherwise(AT))
    games = games.withColumn("newest", RECORDS_PER_ENTITY + MARKS + fresh.cast("bigint"))
    _write(games.select("ts", F.col("id").alias("key"), _game().alias("row")), folder / "games-entities")
    _write(games.select("ts", F.col("id").alias("key"), _board().alias("row")), folder / "boards-entities")
    numbers = games.withColumn("number", F.explode(F.sequence(F.lit(1).cast("bigint"), F.col("newest"))))
    later = F.when(F.col("number") > RECORDS_PER_ENTITY + MARKS, LATER).otherwise(AT)
    numbers = numbers.withColumn("ts", later)
    _write(numbers.select("ts", _key("board").alias("key"), _number().alias("row")), folder / "boards-companions")
    pages = games.select(F.lit(AT).alias("ts"), _key("range").alias("key"), _page().alias("row"))
    _write(pages, folder / "exactlyonce-library")


def _write(rows: DataFrame, folder: Path) -> None:
    texts = rows.select("ts", "key", F.to_json("row", {"ignoreNullFields": "false"}).alias("raw"))
    texts.write.option("parquet.block.size", _INDEXED).parquet(str(folder))


def _key(type: str) -> Column:
    return F.format_string(f'["{type}","%s","%s"]', "id", "id")


def _hash(key: Column) -> Column:
    """As `message_hash`."""
    return F.base64(F.unhex(F.substring(F.sha2(key, 256), 1, 24)))


def _cause(version: Column) -> Column:
    """Hash of the message that made a version."""
    return _hash(F.concat(F.lit("web/"), "id", F.lit("-"), version.cast("string")))


def _marks(first: Column | int, last: Column | int) -> Column:
    """The marks of versions, each with one output to the board."""
    ends = (F.lit(end).cast("bigint") if isinstance(end, int) else end for end in (first, last))
    time, rest = F.lit(written_time(AT * 1000)), F.lit(f"fAAAA{destination_digit(0)}")
    each = F.transform(F.sequence(*ends), lambda version: F.concat(time, _cause(version), rest))
    return F.array_join(F.array_sort(each), SEPARATOR)


def _service() -> list[Column]:
    return [F.concat(F.lit('"'), "id", F.col("ts").cast("string"), F.lit('"')).alias("_etag"), F.col("ts").alias("_ts")]


def _entity(type: str, ledger: dict[str, Column]) -> Column:
    fixed = {"schema": F.lit(1), "type": F.lit(type), "entity": _key(type), "version": F.col("newest")}
    columns = (column.alias(name) for name, column in {**ledger, **fixed}.items())
    partition = F.array("id").alias("partition")
    return F.struct("id", *_service(), F.lit(True).alias("has_ledger"), F.struct(*columns).alias("ledger"), partition)


def _game() -> Column:
    page = {"left": RECORDS_PER_ENTITY, "cut": 1, "complete": AT * 1000}
    ledger = {name: F.lit(value).cast("bigint") for name, value in page.items()}
    marks = _marks(RECORDS_PER_ENTITY + 1, F.col("newest"))
    return _entity("range", {**ledger, "marks": marks, "to": F.array(F.lit(_TO))})


def _board() -> Column:
    held: Column = F.array().cast("array<array<bigint>>")
    following = (F.col("newest") + 1).alias("next")
    reception = F.struct(_channel().alias("channel"), _source().alias("source"), following, held.alias("held"))
    return _entity("board", {"protocol": F.lit("resequencer"), "receptions": F.array(reception)})


def _channel() -> Column:
    return F.concat(F.lit("from"), "id")


def _source() -> Column:
    return F.concat(F.lit("range/"), "id")


def _number() -> Column:
    """The document of a number that the board has taken: the output of the version."""
    output = F.concat_ws("\n", _key("range"), _cause(F.col("number")), F.lit("0"))
    message = F.concat(F.lit("range%2F"), "id", F.lit("/"), F.substring(F.sha2(output, 256), 1, 32))
    order = F.struct(
        _channel().alias("channel"), F.concat(F.lit("board/"), "id").alias("receiver"), F.col("number").alias("number")
    )
    flags = {"owes": False, "owes_none": False, "holds": False, "holds_none": True}
    return F.struct(
        F.concat(F.lit("numbered:"), "id", F.lit("-"), F.col("number").cast("string")).alias("id"),
        F.concat(F.lit('"'), "id", F.lit("-"), F.col("number").cast("string"), F.lit('"')).alias("_etag"),
        F.col("ts").alias("_ts"),
        F.lit("numbered").alias("_kind"),
        F.lit(1).alias("schema"),
        _key("board").alias("entity"),
        message.alias("message"),
        F.timestamp_seconds("ts").alias("at"),
        order.alias("order"),
        _source().alias("source"),
        *(F.lit(value).alias(name) for name, value in flags.items()),
    )


def _page() -> Column:
    numbers = {"version": RECORDS_PER_ENTITY + 1, "number": 1, "begin": AT * 1000, "until": AT * 1000}
    return F.struct(
        F.lit("page:1").alias("id"),
        F.concat(F.lit('"'), "id", F.lit('-page"')).alias("_etag"),
        F.lit(AT).alias("_ts"),
        _key("range").alias("pk"),
        _key("range").alias("entity"),
        F.lit("page").alias("kind"),
        F.lit(1).alias("schema"),
        *(F.lit(value).cast("bigint").alias(name) for name, value in numbers.items()),
        _marks(1, RECORDS_PER_ENTITY).alias("marks"),
        F.array(F.lit(_TO)).alias("to"),
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
