"""The one place where jobs touch Cosmos DB: a source with two ends that give the same rows in the same shape.

`feed_ranges` reads and deletes through the Python SDK, on the executors, and runs everywhere; `connector` leaves both to
azure-cosmos-spark, for job files that ask for it. Both send the same text of one query, so that columns and conditions
are evaluated by the service, and both give each row as its JSON text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.errors import ConfigurationError

RAW: Final = StructType([StructField("raw", StringType())])
"""What a source gives: the JSON text of each row."""

DELETABLE: Final = ("partition", "id", "etag")
"""Columns that name a document to delete: the JSON array of its partition key's values, its id, and the ETag it had."""

_LONGEST_QUERY: Final = 512 * 1024
"""Bytes that the service takes as the text of a query."""


class Outcome(StrEnum):
    """What became of a document that was to be deleted."""

    DELETED = "deleted"
    CHANGED = "changed"
    """It is not what was read any more, so it was left (412)."""
    GONE = "gone"
    """It was not there (404): deleted by somebody else, or by an earlier send or run of the same task."""
    UNKNOWN = "unknown"
    """Nobody knows: no answer came, or the end does not tell. Read again to learn it."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to read of a container.

    Attributes:
        container: its name.
        columns: expressions of the query language over a document `c`, such as `c.id` or `c["_ts"]`.
        where: a condition; None for all documents. Values in it are written by `literal`.
    """

    container: str
    columns: tuple[str, ...]
    where: str | None = None

    @property
    def text(self) -> str:
        """The query as it is sent.

        Raises:
            ConfigurationError: it asks for nothing, or is longer than the service takes.
        """
        if not self.columns:
            raise ConfigurationError(f"The query of container {self.container!r} names no column.")
        condition = "" if self.where is None else f" WHERE {self.where}"
        text = f"SELECT {', '.join(self.columns)} FROM c{condition}"  # noqa: S608  # Values come through `literal`.
        if len(text.encode()) > _LONGEST_QUERY:
            raise ConfigurationError(
                f"The query of container {self.container!r} is longer than the {_LONGEST_QUERY} bytes that the service takes: "
                "ask for fewer values at a time."
            )
        return text


def literal(value: str | float | bool | None) -> str:
    r"""A value as the query language writes it: as JSON. Neither end has parameters in common with the other.

    >>> literal('a"b')
    '"a\\"b"'
    """
    return json.dumps(value, allow_nan=False)


class Meter(Protocol):
    """Counts what requests bring and cost."""

    def count(self, rows: int, units: float) -> None:
        """One request was answered with so many rows and charged so many RU."""
        ...


class Spent:
    """What all tasks together read, deleted and spent. Spark leaves out what tasks counted that did not end well.

    Args:
        context: whose accumulators count.
    """

    def __init__(self, context: SparkContext) -> None:
        self._rows = context.accumulator(0)
        self._requests = context.accumulator(0)
        self._units = context.accumulator(0.0)

    def count(self, rows: int, units: float) -> None:
        """One request was answered with so many rows and charged so many RU."""
        self._rows += rows
        self._requests += 1
        self._units += units

    @property
    def rows(self) -> int:
        """Rows read and documents deleted."""
        return self._rows.value

    @property
    def requests(self) -> int:
        """Requests answered."""
        return self._requests.value

    @property
    def units(self) -> float:
        """Request units charged."""
        return self._units.value


class Source(Protocol):
    """An end of the seam."""

    spent: Spent

    def read(self, query: Query) -> DataFrame:
        """The rows of a query: a frame of `RAW`, in no order.

        Every action on the frame reads anew: persist it if it is used twice.

        Raises:
            AccountError: the account cannot be reached, or refuses; perhaps only when an action runs.
            ConfigurationError: there is no such container.
        """
        ...

    def delete(self, container: str, rows: DataFrame) -> DataFrame:
        """Delete documents that still are what was read, at once.

        Args:
            container: its name.
            rows: with the columns of `DELETABLE`, and any others.

        Returns:
            The rows with a column `outcome`. It does not delete again when it is used again.

        Raises:
            AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run the job again.
            ConfigurationError: there is no such container, or a column is missing.
        """
        ...


def require_deletable(rows: DataFrame) -> None:
    """Raise `ConfigurationError` unless the rows can name documents to delete."""
    if missing := sorted(set(DELETABLE) - set(rows.columns)):
        raise ConfigurationError(
            f"Rows to delete lack the column(s) {', '.join(missing)}; they have {', '.join(rows.columns)}."
        )
