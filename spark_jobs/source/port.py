"""The port to Cosmos DB, with two adapters that give the same rows in the same shape.

`feed_ranges` reads and deletes through the Python SDK, on the executors, and runs everywhere; `connector` leaves both to
azure-cosmos-spark, for job files that ask for it. Both send the same query, so that the service evaluates columns and
conditions, and both give each row as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, Self

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.errors import ConfigurationError

RAW: Final = StructType([StructField("raw", StringType())])
"""Rows of a source: the JSON text of each."""

DELETABLE: Final = ("partition", "id", "etag")
"""Columns that name a document to delete: the JSON array of its partition key's values, its id, and the ETag that was read."""

_LONGEST_QUERY: Final = 512 * 1024
"""Most bytes of a query that the service takes."""


class Outcome(StrEnum):
    """Result of a delete."""

    DELETED = "deleted"
    CHANGED = "changed"
    """The document has changed since it was read, so it was left (412)."""
    GONE = "gone"
    """The document was absent (404): another program deleted it, or an earlier send or run of the same task."""
    UNKNOWN = "unknown"
    """No answer came, or the adapter reports none. Read again to learn it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a container.

    Attributes:
        columns: expressions of the query language over a document `c`, such as `c.id` or `c["_ts"]`.
        where: a condition; None for all documents. Values in it are written by `literal`.
    """

    container: str
    columns: tuple[str, ...]
    where: str | None = None

    @classmethod
    def of(cls, container: str, columns: tuple[str, ...], *conditions: str | None) -> Self:
        """A query of the documents for which all conditions hold; None and "" hold for all."""
        return cls(container, columns, " AND ".join(f"({condition})" for condition in conditions if condition) or None)

    @property
    def text(self) -> str:
        """The text of the query.

        Raises:
            ConfigurationError: it names no column, or is longer than the service takes.
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
    r"""A value in the query language: as JSON. The two adapters have no way of parameters in common.

    >>> literal('a"b')
    '"a\\"b"'
    """
    return json.dumps(value, allow_nan=False)


def charge_of(headers: Mapping[str, Any]) -> float:
    """Request units that a reply was charged; 0 if it does not say."""
    return float(headers.get("x-ms-request-charge", 0))


def shown_units(units: float | None) -> str:
    """Request units for an operator.

    >>> shown_units(1234.5), shown_units(None)
    ('1,234 RU', 'RU not known')
    """
    return "RU not known" if units is None else f"{units:,.0f} RU"


class Meter(Protocol):
    """Counts the rows and request units of requests."""

    def count(self, rows: int, units: float) -> None:
        """Count the reply to one request: its rows, and its RU."""
        ...


@dataclass(slots=True)
class Spent:
    """What requests gave and cost: a `Meter`.

    Attributes:
        rows: rows read and documents deleted.
        requests: requests answered.
        units: request units charged; None if not every request is counted, as the connector reports none of its own.
    """

    rows: int = 0
    requests: int = 0
    units: float | None = 0.0

    def count(self, rows: int, units: float) -> None:
        """Count the reply to one request."""
        self.add(Spent(rows, 1, units))

    def add(self, other: Spent) -> None:
        """Add other counts."""
        self.rows += other.rows
        self.requests += other.requests
        self.units = None if self.units is None or other.units is None else self.units + other.units


@dataclass(frozen=True, slots=True)
class Made:
    """Rows that requests of the account made, once. A `with` block releases them at its end.

    Attributes:
        rows: a frame of them, in no order.
        spent: what the requests gave and cost.
        held: the frame that Spark holds, until `release`.
    """

    rows: DataFrame
    number: int
    spent: Spent
    held: DataFrame

    def release(self) -> None:
        """Let go of the rows. Frames of them that are made later would make the rows anew."""
        self.held.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Source(Protocol):
    """Reads and deletes documents of a database.

    Attributes:
        name: as in job files; of the connector with the jar.
        spent: rows and costs of all requests so far, with those sent on behalf of the source.
        repeats: whether a read may give a document twice if its partition splits meanwhile.
    """

    name: str
    spent: Spent
    repeats: bool

    def read(self, *queries: Query) -> Made:
        """Read the rows of queries of one container, now: a frame of `RAW`, which is held until it is released.

        Raises:
            AccountError: the account cannot be reached, or refuses.
            ConfigurationError: there is no such container.
        """
        ...

    def delete(self, container: str, rows: DataFrame) -> Made:
        """Delete documents that have not changed since they were read, now.

        Args:
            rows: with the columns of `DELETABLE`, and any others.

        Returns:
            The rows with a column `outcome`. Using the frame again deletes nothing again.

        Raises:
            AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run the job again.
            ConfigurationError: there is no such container, or a column is missing.
        """
        ...


def container_of_all(queries: Sequence[Query]) -> str:
    """The container of queries that are read together.

    Raises:
        ConfigurationError: they are of several containers.
    """
    (name, *others) = {query.container for query in queries}
    if others:
        raise ConfigurationError(
            f"One read has queries of several containers: {name!r} and {', '.join(map(repr, others))}."
        )
    return name


def require_deletable(rows: DataFrame) -> None:
    """Raise `ConfigurationError` unless the rows name documents to delete."""
    if missing := sorted(set(DELETABLE) - set(rows.columns)):
        raise ConfigurationError(
            f"Rows to delete lack the column(s) {', '.join(missing)}; they have {', '.join(rows.columns)}."
        )


def placed(paths: tuple[str, ...], values: list[object]) -> dict[str, object]:
    """The part of a document that holds its partition key.

    >>> placed(("/tenant", "/customer/id"), ["t1", 7])
    {'tenant': 't1', 'customer': {'id': 7}}
    """
    document: dict[str, object] = {}
    for path, value in zip(paths, values, strict=True):
        *steps, last = path.split("/")[1:]
        inside = document
        for step in steps:
            inside = inside.setdefault(step, {})  # type: ignore[assignment]
        inside[last] = value
    return document
