"""The first rows of a frame: the one way from the executors to the driver."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row


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
