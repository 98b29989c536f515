"""What a failure in Spark means: our own sentences, out of the traces that Spark wraps them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_jobs.job.exits import told_by_a_task


@contextmanager
def translated() -> Iterator[None]:
    """Raise what a task raised as the error that it is, if it is one of ours."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if (ours := told_by_a_task(error)) is None:
            raise
        raise ours from None
