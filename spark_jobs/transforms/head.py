"""The one way from the executors to the driver."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row


def capped(frame: DataFrame, limit: int) -> tuple[list[Row], bool]:
    """The first rows of a frame, for reports and for what has to be done one by one.

    Nothing else in the jobs brings rows to the driver: a container has more of them than a process has memory.

    Args:
        frame: sorted, if it matters which rows are the first.
        limit: how many, at most.

    Returns:
        The rows, and whether there are more.
    """
    rows = frame.limit(limit + 1).collect()
    return rows[:limit], len(rows) > limit
