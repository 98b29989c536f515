"""The adapter that runs everywhere: executors read and delete by feed ranges, through the Python SDK.

A feed range is an interval of hashed partition keys, so a split of physical partitions does not change it. It does confuse
the SDK: if a partition splits between two pages, azure-cosmos 4.17 returns to the beginning of the range and gives the first
rows again (measured). So a task reads each whole partition by itself, and fails when a page comes from another partition:
Spark runs the task again, and forgets the rows of the first run.

Documents of one logical partition are deleted in batches of up to a hundred. A batch is all or nothing: where one document
has changed or is gone, the task deletes them one by one. Measured on the local Cosmos, a batch costs what its deletes cost:
it saves requests, and no request units.

A delete without an answer is not sent again: the second answer would say that the document is gone, and not why. (The SDK
does so after a 503 all the same, so `gone` may mean that an earlier send of this task was applied.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Any, Final

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.stores.cosmos.partition import MAX_BATCH_OPERATIONS
from exactlyonce.stores.cosmos.replies import headers_of
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import AccountError, UnsafeError
from spark_jobs.source import port
from spark_jobs.source.account import connected, refusal
from spark_jobs.source.pace import Allowance, Patience, insist, is_refused_for_now, is_without_answer
from spark_jobs.source.port import RAW, Made, Meter, Outcome, Query, Spent, charge_of
from spark_jobs.source.tasks import Row, made, together
from spark_jobs.spark.frames import held, kept
from spark_jobs.spark.session import parallelism

PAGE: Final = 1000
"""Most rows of a page; the service ends one at 4 MB as well."""

_PARTITION: Final = "x-ms-documentdb-partitionkeyrangeid"
_NO_CONTAINER: Final = 1003
_REFUSED: Final = {404: Outcome.GONE, 412: Outcome.CHANGED}

FeedRange = dict[str, Any]
"""As azure-cosmos 4.17 gives it: `{"Range": {"min": hash, "max": hash, "isMinInclusive": true, "isMaxInclusive": false}}`."""
_compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class RangeSplit(AccountError):
    """A physical partition split during the read; the task has to start over."""


@dataclass(frozen=True)
class _Task:
    """Requests of a task for a container. Spark ships the task, which needs no Spark.

    Attributes:
        rate: RU per second that this task may spend; None for no limit.
        patience: with requests that are refused for now, and with unanswered reads.
    """

    account: Account
    database: str
    container: str
    meter: Meter = field(repr=False)
    rate: float | None = None
    patience: Patience = field(default_factory=Patience)

    @property
    def what(self) -> str:
        """Name of the container for an error."""
        return _name(self.database, self.container)

    @contextmanager
    def opened(self) -> Iterator[ContainerProxy]:
        """The container, for a `with` block."""
        with connected(self.account) as client:
            yield client.get_database_client(self.database).get_container_client(self.container)

    def spend(self, allowance: Allowance, rows: int, units: float) -> None:
        """Count the reply to one request."""
        allowance.spend(units)
        self.meter.count(rows, units)


@dataclass(frozen=True)
class RangeReader(_Task):
    """Reads feed ranges, `page` rows at a time."""

    page: int = PAGE

    def __call__(self, asked: Iterable[tuple[str, FeedRange]]) -> Iterator[list[tuple[str]]]:
        """The rows of queries of ranges, each as its JSON text, a page at a time.

        Raises:
            AccountError: the account does not answer for longer than patience lasts, or refuses.
            RangeSplit: a partition split; the rows yielded so far are void.
        """
        allowance = Allowance(self.rate)
        with self.opened() as container:
            for text, whole in asked:
                for part in self._insist(partial(_parts, container, whole)):
                    yield from self._pages(partial(container.query_items, text, feed_range=part), allowance)

    def _pages(self, query: Callable[..., Any], allowance: Allowance) -> Iterator[list[tuple[str]]]:
        continuation: str | None = None
        seen: set[str] = set()
        while True:
            allowance.wait()
            rows, continuation, partitions = self._insist(partial(self._page, query, continuation, allowance))
            seen |= partitions
            if len(seen) > 1:
                raise RangeSplit(
                    f"A partition of the container {self.container!r} split during the read. Spark runs the task again; if it "
                    "gives up, run the job again."
                )
            yield [(row,) for row in rows]
            if not continuation:
                return

    def _page(
        self, query: Callable[..., Any], continuation: str | None, allowance: Allowance
    ) -> tuple[list[str], str | None, set[str]]:
        """A page: its rows, the continuation, and the partitions that it comes from."""
        replies: list[dict[str, Any]] = []
        pages = query(max_item_count=self.page, response_hook=lambda headers, _: replies.append(dict(headers))).by_page(
            continuation
        )
        rows = [_text(row) for row in next(pages, ())]
        self.spend(allowance, len(rows), sum(map(charge_of, replies)))
        partitions = {str(headers[_PARTITION]) for headers in replies if headers.get(_PARTITION)}
        return rows, pages.continuation_token, partitions

    def _insist(self, request: Callable[[], Any]) -> Any:
        try:
            return insist(request, self.what, passes=_passes, patience=self.patience)
        except AzureError as error:
            raise refusal(error, self.what) from None


def _text(row: object) -> str:
    """The JSON text of a row. Half of a surrogate pair, which no Unicode text can hold, is escaped."""
    return _compact(row).encode("utf-8", "backslashreplace").decode()


def _passes(error: BaseException) -> bool:
    return is_refused_for_now(error) or is_without_answer(error)


def ranges_of(container: ContainerProxy) -> list[FeedRange]:
    """A container's physical partitions as of now. Without `force_refresh`, the SDK remembers them for the whole process."""
    return list(container.read_feed_ranges(force_refresh=True))


def _parts(container: ContainerProxy, whole: FeedRange) -> list[FeedRange]:
    """A range cut at the bounds of the present partitions. Hashes sort as text."""
    parts = []
    for partition in ranges_of(container):
        bounds = partition["Range"]
        low, high = max(bounds["min"], whole["Range"]["min"]), min(bounds["max"], whole["Range"]["max"])
        if low < high:
            parts.append({"Range": {**bounds, "min": low, "max": high}})
    return parts


@dataclass(frozen=True)
class Deleter(_Task):
    """Deletes documents, each on condition of its ETag."""

    def __call__(self, rows: Iterable[Row]) -> Iterator[tuple[Row, Outcome]]:
        """Delete documents; yields each row with its outcome.

        Args:
            rows: with `partition`, `id` and `etag`; those of one logical partition next to each other.

        Raises:
            AccountError: the account refuses, or throttles for longer than patience lasts.
            ConfigurationError: there is no such container.
            UnsafeError: a row has no id or no ETag, so that its delete would have no condition.
        """
        allowance = Allowance(self.rate)
        with self.opened() as container:
            for partition, inside in groupby(rows, key=lambda row: row["partition"]):
                values = json.loads(partition)
                key = values if len(values) > 1 else values[0]
                while batch := list(islice(inside, MAX_BATCH_OPERATIONS)):
                    self._require_conditions(batch)
                    yield from zip(batch, self._outcomes(container, key, batch, allowance), strict=True)

    def _require_conditions(self, batch: Iterable[Row]) -> None:
        """Refuse rows without an ETag: the SDK would delete without a condition."""
        if not all(row["id"] and row["etag"] for row in batch):
            raise UnsafeError(
                f"A document of the container {self.container!r} was to be deleted without its id or the ETag it had. Jobs "
                "delete only documents that have not changed since they were read."
            )

    def _outcomes(
        self, container: ContainerProxy, key: Any, batch: Sequence[Row], allowance: Allowance
    ) -> list[Outcome]:
        """The outcomes of documents of one logical partition."""
        if len(batch) > 1:
            outcome = self._outcome(partial(_delete_all, container, key, batch), len(batch), allowance)
            if outcome in (Outcome.DELETED, Outcome.UNKNOWN):
                return [outcome] * len(batch)
        return [self._outcome(partial(_delete, container, key, row), 1, allowance) for row in batch]

    def _outcome(self, request: Callable[[], float], rows: int, allowance: Allowance) -> Outcome:
        allowance.wait()
        try:
            units = insist(request, self.what, passes=is_refused_for_now, patience=self.patience)
        except AzureError as error:
            self.spend(allowance, 0, charge_of(headers_of(error)))
            return Outcome.UNKNOWN if is_without_answer(error) else _refused(error, self.what)
        self.spend(allowance, rows, units)
        return Outcome.DELETED


def _delete_all(container: ContainerProxy, key: Any, batch: Sequence[Row]) -> float:
    """Delete all or none; returns the RU charged."""
    deletes = [("delete", (row["id"],), {"if_match_etag": row["etag"]}) for row in batch]
    return charge_of(container.execute_item_batch(deletes, partition_key=key).get_response_headers())


def _delete(container: ContainerProxy, key: Any, row: Row) -> float:
    """Delete one document; returns the RU charged."""
    replies: list[Mapping[str, Any]] = []
    container.delete_item(
        row["id"],
        key,
        etag=row["etag"],
        match_condition=MatchConditions.IfNotModified,
        response_hook=lambda headers, _: replies.append(headers),
    )
    return sum(map(charge_of, replies))


def _refused(error: AzureError, what: str) -> Outcome:
    if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError) and error.sub_status != _NO_CONTAINER:
        outcome = _REFUSED.get(error.status_code or 0)
        if outcome is not None:
            return outcome
    raise refusal(error, what) from None


class FeedRanges:
    """A `Source` that needs the Python SDK only.

    The driver lists a container's feed ranges, one for each physical partition, and one task reads each. An account key
    travels in the tasks' closures; neither Spark's configuration nor its pages show it.

    Args:
        rate: most RU per second, shared by the tasks of a read or a delete; None for no limit.
        page: most rows of a page.
        patience: with requests that are not answered.
    """

    name = "feed_ranges"
    repeats = False
    """A task whose partition splits starts over."""

    def __init__(
        self,
        spark: SparkSession,
        account: Account,
        database: str,
        *,
        rate: float | None = None,
        page: int = PAGE,
        patience: Patience | None = None,
    ) -> None:
        self.spent = Spent()
        self._spark = spark
        self._account = account
        self._database = database
        self._rate = rate
        self._page = page
        self._patience = patience or Patience()

    def read(self, *queries: Query) -> Made:
        """Read the rows of queries; see `Source.read`."""
        container = port.container_of_all(queries)
        ranges = self._ranges(container)
        asked = [(query.text, item) for item in ranges for query in queries]
        tasks = self._tasks(len(ranges))  # A task opens the account once for all queries of its range.
        reader = self._task(RangeReader, container, tasks, page=self._page)
        places = self._spark.range(0, len(asked), 1, tasks)
        found = made(
            places, lambda meter: lambda rows: reader(meter=meter)(asked[row["id"]] for row in rows), RAW, held
        )
        self.spent.add(found.spent)
        return found

    def delete(self, container: str, rows: DataFrame) -> Made:
        """Delete unchanged documents; see `Source.delete`."""
        port.require_deletable(rows)
        tasks = parallelism(self._spark)
        deleter = self._task(Deleter, container, tasks)
        placed = rows.repartition(tasks, "partition").sortWithinPartitions("partition")
        schema = StructType([*rows.schema.fields, StructField("outcome", StringType())])
        done = made(
            placed,
            lambda meter: (
                lambda given: together((*row.values(), outcome.value) for row, outcome in deleter(meter=meter)(given))
            ),
            schema,
            kept,  # Not only held: making them again would delete again, and find all documents gone.
        )
        self.spent.add(done.spent)
        return done

    def _ranges(self, container: str) -> list[FeedRange]:
        with connected(self._account) as client:
            try:
                return ranges_of(client.get_database_client(self._database).get_container_client(container))
            except AzureError as error:
                raise refusal(error, _name(self._database, container)) from None

    def _task(self, kind: Callable[..., Any], container: str, tasks: int, **more: Any) -> Callable[..., Any]:
        """Makes one of so many tasks, given its meter."""
        rate = self._share(tasks)
        return partial(kind, self._account, self._database, container, rate=rate, patience=self._patience, **more)

    def _tasks(self, most: int) -> int:
        """How many tasks share the work: with a rate no more than can run at a time now, even if more could later."""
        return most if self._rate is None else min(most, parallelism(self._spark))

    def _share(self, tasks: int) -> float | None:
        """The part of the rate that each of so many tasks has, so that all together keep to it."""
        return None if self._rate is None else self._rate / tasks


def _name(database: str, container: str) -> str:
    return f"the container {container!r} of database {database!r}"
