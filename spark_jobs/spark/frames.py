"""Frames that are made once, and settings that suit their size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

ROWS_OF_A_TASK: Final = 20_000
"""So many take a task about as long as starting it does."""

PARSED_OF_A_TASK: Final = 4_000
"""The same for documents whose JSON is still to be read."""

LITTLE: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for what one task can do: to compile code and to plan again takes seconds, and the work takes less."""


@contextmanager
def suited(spark: SparkSession, rows: int) -> Iterator[None]:
    """Within this, the session plans for so many rows."""
    settings = LITTLE if rows <= ROWS_OF_A_TASK else {}
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def kept(frame: DataFrame) -> DataFrame:
    """Make a frame now, and keep its rows on the executors for as long as anybody has it.

    What is made of it knows nothing of where it came from. A frame that is merely persisted drags its whole history through
    the planning of whatever is made of it, and a dozen rules over a dozen such frames exhaust the driver. The price: if
    an executor is lost, so are its rows, and the job has to be run again.
    """
    return frame.localCheckpoint(eager=True)


def packed(frame: DataFrame, rows: int, of_a_task: int = ROWS_OF_A_TASK) -> DataFrame:
    """A frame of so many rows in no more parts than are worth a task: every rule pays for each part.

    What is in one part is joined and grouped where it is: nothing has to be exchanged between tasks.
    """
    return frame.coalesce(max(1, -(-rows // of_a_task)))


def gathered(frame: DataFrame, rows: int) -> DataFrame:
    """The same where rows are still to be parsed: several tasks do it before one part takes them all."""
    return frame.repartition(1) if PARSED_OF_A_TASK < rows <= ROWS_OF_A_TASK else packed(frame, rows)
