"""Failures of Spark: the error behind them is recovered from the trace in which Spark wraps it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from exactlyonce.errors import ExactlyOnceError
from spark_jobs.job.exits import raised_by_a_task
from spark_jobs.source.account import refused

_CONTAINER: Final = "the container of the connector's request"
_OF_THE_CONNECTOR: Final = re.compile(
    r'"ClassName":"\w+","userAgent":"[^"]*","statusCode":(?P<status>\d{3})\b(?:.*?x-ms-substatus=(?P<substatus>\d+))?'
)
"""The beginning of the text of a `CosmosException`. Later parts may have status codes of sends that it retried."""


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
