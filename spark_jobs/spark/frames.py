"""Frames made once, settings of the session for small frames, and the only way of rows to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final, cast

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import DataType, StructType

ROWS_OF_A_TASK: Final = 20_000
"""Rows that a task processes in about the time that its start takes."""

PARSED_OF_A_TASK: Final = 4_000
"""The same for documents whose JSON is not parsed yet."""

LITTLE: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for the rows of one task: compiling code, planning again, a job for each join and describing each plan in full
take seconds, the work takes less."""
_AS_THEY_ARE: Final = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
"""How rows are held: texts that all differ do not shrink, and to try takes longer than to write them."""


@contextmanager
def suited(spark: SparkSession, rows: int) -> Iterator[None]:
    """Within the `with` block, the session plans for so many rows."""
    with set_to(spark, LITTLE if rows <= ROWS_OF_A_TASK else {}):
        yield


@contextmanager
def set_to(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the `with` block, the session has these settings."""
    before: dict[str, str] = {}
    try:
        for name, value in settings.items():
            with suppress(PySparkException):  # Some platforms let nobody set them; without them plans take longer.
                former = str(spark.conf.get(name))
                spark.conf.set(name, value)
                before[name] = former
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def kept(frame: DataFrame) -> DataFrame:
    """Make a frame now, and keep the rows on the executors for as long as a frame refers to them.

    The plan of a merely persisted frame is part of every later plan, and a dozen rules over a dozen persisted frames exhaust
    the driver. The price: a lost executor loses rows, and the job has to be run again.
    """
    return frame.localCheckpoint(eager=True)


def held(frame: DataFrame) -> DataFrame:
    """Keep the rows of a frame, once made, until the frame is unpersisted. Rows of a lost executor are made again.

    On disk: the rows are read once more, and ten million in memory leave no room to make the next frame.
    """
    with set_to(frame.sparkSession, _AS_THEY_ARE):
        return frame.persist(StorageLevel.DISK_ONLY)


@contextmanager
def making(frame: DataFrame) -> Iterator[None]:
    """Within the `with` block the rows of a held frame are made; if the block raises, Spark lets go of the rows.

    A watch goes on after a failed read, and would fill the disk.
    """
    try:
        yield
    except BaseException:
        frame.unpersist()
        raise


def any_of(frame: DataFrame) -> DataFrame | None:
    """The rows of a frame, made now and kept; None for no rows, so that nothing is made to be joined to them."""
    made = kept(frame)
    return None if made.isEmpty() else made


def none(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows. Spark knows so, and leaves dependent frames out of plans."""
    columns = (f"CAST(NULL AS {item.dataType.simpleString()}) AS `{item.name}`" for item in schema)
    return spark.sql(f"SELECT {', '.join(columns)} WHERE false")


def packed(frame: DataFrame, rows: int, of_a_task: int = ROWS_OF_A_TASK) -> DataFrame:
    """A frame of so many rows in no more parts than are worth a task: every rule pays for each part.

    Rows in one part are joined and grouped there, without an exchange between tasks.
    """
    return frame.coalesce(max(1, -(-rows // of_a_task)))


def gathered(frame: DataFrame, rows: int) -> DataFrame:
    """As `packed`, for rows that are not parsed yet: several tasks parse before one part takes all rows."""
    return frame.repartition(1) if PARSED_OF_A_TASK < rows <= ROWS_OF_A_TASK else packed(frame, rows)


def by_row(type: DataType) -> Callable[[Callable[..., Any]], Callable[..., Column]]:
    """Makes a function of columns from a Python function of the values of a row, whose result has this type.

    Spark 4 guesses from type hints whether a function takes whole columns, and warns where no guess is possible.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Column]:
        @cache  # At the first use: before there is a session, nobody knows whether it is one of Spark Connect.
        def made() -> Callable[..., Column]:
            return cast("Callable[..., Column]", F.udf(function, returnType=type, useArrow=False))

        def column(*columns: Column | str) -> Column:
            return made()(*columns)

        return column

    return decorate


def capped(frame: DataFrame, limit: int) -> tuple[list[Row], bool]:
    """The first rows of a frame, for reports and for work on one row at a time.

    No other code of the jobs brings rows to the driver: a container has more rows than a process has memory.

    Args:
        frame: sorted, if it matters which rows are first.
        limit: most rows.

    Returns:
        The rows, and whether there are more.
    """
    rows = frame.limit(limit + 1).collect()
    return rows[:limit], len(rows) > limit
