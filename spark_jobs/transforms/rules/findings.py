"""Makes findings of the rows that a rule found."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.schemas import FINDING

MOST_VERSIONS: Final = 100
"""Most versions that a finding lists: of a long range the first are enough."""


def findings(
    frame: DataFrame,
    rule: str,
    *,
    detail: Column,
    advice: str,
    message: Column | str | None = None,
    versions: Column | None = None,
    subject: Column | None = None,
    since: Column | str | None = None,
) -> DataFrame:
    """A finding for each row of a frame that has the column `entity`. Returns `schemas.FINDING`."""
    columns = {
        "rule": F.lit(rule),
        "entity": F.col("entity"),
        "message": _column(message),
        "versions": F.array() if versions is None else versions,
        "subject": _column(subject),
        "detail": detail,
        "advice": F.lit(advice),
        "since": _column(since),
    }
    return frame.select(*(column.cast(FINDING[name].dataType).alias(name) for name, column in columns.items()))


def run(first: Column, last: Column) -> Column:
    """The versions from first to last, up to the most that a finding lists."""
    return F.sequence(first, F.least(last, first + (MOST_VERSIONS - 1)))


def sentence(template: str, *columns: Column | str) -> Column:
    """A sentence with values."""
    return F.format_string(template, *columns)


def _column(given: Column | str | None) -> Column:
    if given is None:
        return F.lit(None)
    return F.col(given) if isinstance(given, str) else given
