"""Python in Spark's tasks: rows that requests of the account make, and the costs of the requests.

Tasks stream Arrow (`mapInArrow`), as classic Spark and Spark Connect both can; Connect has neither RDDs nor accumulators. So
each task returns the costs in a last row, and Spark leaves out the rows of failed tasks.

Spark wraps an error of a task or of the connector in a trace, from which `translated` recovers the error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from exactlyonce.errors import ExactlyOnceError
from spark_jobs.job.exits import raised_by_a_task
from spark_jobs.source.account import refused
from spark_jobs.source.port import Made, Meter, Spent
from spark_jobs.spark.frames import capped, making

TOGETHER: Final = 1_000
"""Rows that a task hands on at a time, where they do not come in pages."""

_SPENT: Final = (
    StructField("spent_rows", LongType()),
    StructField("spent_requests", LongType()),
    StructField("spent_units", DoubleType()),
)

_CONTAINER: Final = "the container of the connector's request"
_OF_THE_CONNECTOR: Final = re.compile(
    r'"ClassName":"\w+","userAgent":"[^"]*","statusCode":(?P<status>\d{3})\b(?:.*?x-ms-substatus=(?P<substatus>\d+))?'
)
"""The beginning of the text of a `CosmosException`. Later parts may have status codes of sends that it retried."""

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


@contextmanager
def translated() -> Iterator[None]:
    """Raise the error of ours that a task or the connector met, in place of Spark's."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if (ours := raised_by_a_task(error) or refused_to_the_connector(error)) is None:
            raise
        raise ours from None


def refused_to_the_connector(error: BaseException) -> ExactlyOnceError | None:
    """The refusal by the account that ended a request of the connector; None if it was something else."""
    found = _OF_THE_CONNECTOR.search(str(error))
    return None if found is None else refused(int(found["status"]), int(found["substatus"] or 0), _CONTAINER)
