"""What a failure in Spark means: our own sentences, out of the traces that Spark wraps them in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from exactlyonce.errors import ConfigurationError
from spark_jobs.exits import AccountError, UnsafeError

_OURS: Final = {
    "AccountError": AccountError,
    "RangeSplit": AccountError,
    "ConfigurationError": ConfigurationError,
    "UnsafeError": UnsafeError,
}
_TOLD: Final = re.compile(rf"^\S*\.({'|'.join(_OURS)}): (.+)$", re.MULTILINE)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what a task raised as the error that it is, if it is one of ours."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if (ours := _TOLD.search(str(error))) is None:
            raise
        raise _OURS[ours[1]](ours[2]) from None
