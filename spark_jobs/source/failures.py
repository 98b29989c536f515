"""Failures of Spark: an error that a task raised is recovered from the trace in which Spark wraps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_jobs.job.exits import raised_by_a_task


@contextmanager
def translated() -> Iterator[None]:
    """Raise the error of ours that a task raised, in place of Spark's."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if (ours := raised_by_a_task(error)) is None:
            raise
        raise ours from None
