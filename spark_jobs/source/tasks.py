"""Python in Spark's tasks: rows that requests of the account make, and what the requests gave and cost.

Tasks stream Arrow (`mapInArrow`), as classic Spark and Spark Connect both can; Connect has no RDDs. It has no accumulators
either: so each task returns what it spent in a last row of its own, and Spark leaves out those of tasks that failed, as it does
with their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from spark_jobs.source.port import Made, Meter, Spent
from spark_jobs.spark.frames import making
from spark_jobs.spark.head import capped

TOGETHER: Final = 1_000
"""Rows that a task hands on at a time, where they do not come in pages."""

_SPENT: Final = (
    StructField("spent_rows", LongType()),
    StructField("spent_requests", LongType()),
    StructField("spent_units", DoubleType()),
)

Row = dict[str, Any]
"""A row that a task is given."""
Work = Callable[[Iterator[Row]], Iterable[Sequence[tuple[Any, ...]]]]
"""Makes rows of rows, some at a time."""


def made(
    frame: DataFrame, work: Callable[[Meter], Work], schema: StructType, hold: Callable[[DataFrame], DataFrame]
) -> Made:
    """Make rows of each part of a frame, now, one task for each.

    Args:
        frame: what the tasks are given.
        work: what a task does, with its meter; Spark ships it to each task.
        schema: of the rows that it makes.
        hold: how Spark holds them: `frames.kept` or `frames.held`.
    """
    # Every column is null in the row of what a task spent.
    with_spent = StructType([*(StructField(item.name, item.dataType) for item in schema), *_SPENT])
    held = hold(frame.mapInArrow(_Task(work, to_arrow_schema(with_spent)), with_spent))
    rows, requests, units = (item.name for item in _SPENT)
    is_row = F.col(requests).isNull()
    sums = held.agg(F.count(F.when(is_row, 1)), F.sum(rows), F.sum(requests), F.sum(units))
    with making(held):
        ((number, *spent),), _ = capped(sums, 1)
    some = held.where(is_row).select(*schema.fieldNames())
    return Made(some, number, Spent(*(item or 0 for item in spent)), held)


def together(rows: Iterable[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Rows, some at a time."""
    left = iter(rows)
    while some := list(islice(left, TOGETHER)):
        yield some


@dataclass(frozen=True)
class _Task:
    work: Callable[[Meter], Work]
    schema: pa.Schema
    name: str = field(default_factory=lambda: uuid4().hex)
    """Differs for each frame: Spark would take the rows of an equal one that it still holds, and send no request."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spent = Spent()
        no_row, nothing = (None,) * (len(self.schema) - len(_SPENT)), (None,) * len(_SPENT)
        given = (row for batch in batches for row in batch.to_pylist())
        for some in self.work(spent)(given):
            if some:
                yield self._batch([(*row, *nothing) for row in some])
        yield self._batch([(*no_row, spent.rows, spent.requests, spent.units)])

    def _batch(self, rows: Iterable[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, item.type) for values, item in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
