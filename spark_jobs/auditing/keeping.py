"""Frames that are made once."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

ROWS_OF_A_TASK: Final = 20_000
"""So many take a task about as long as starting it does."""


def kept(frame: DataFrame) -> DataFrame:
    """Make a frame now, and keep its rows on the executors for as long as anybody has it.

    What is made of it knows nothing of where it came from. A frame that is merely persisted drags its whole history through
    the planning of whatever is made of it, and a dozen rules over a dozen such frames exhaust the driver. The price: if
    an executor is lost, so are its rows, and the job has to be run again.
    """
    return frame.localCheckpoint(eager=True)


def packed(frame: DataFrame, rows: int) -> DataFrame:
    """A frame of so many rows in no more parts than are worth a task: every rule pays for each part."""
    return frame.coalesce(max(1, -(-rows // ROWS_OF_A_TASK)))
