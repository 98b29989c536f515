"""The adapter that runs everywhere: executors read and delete by feed ranges, through the Python SDK."""

from __future__ import annotations

from functools import partial

from azure.core.exceptions import AzureError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.job.configuration import Account
from spark_jobs.source.account import connected, container_of, refusal
from spark_jobs.source.deleter import Deleter
from spark_jobs.source.pace import Patience
from spark_jobs.source.port import RAW, Made, Query, Spent, container_of_all, require_deletable
from spark_jobs.source.range_reader import PAGE, FeedRange, RangeReader, ranges_of
from spark_jobs.source.tasks import made, together
from spark_jobs.spark.frames import held, kept
from spark_jobs.spark.session import parallelism


class FeedRanges:
    """A `Source` that needs the Python SDK only.

    The driver lists a container's feed ranges, one for each physical partition, and one task reads each. An account key
    travels in the tasks' closures; neither Spark's configuration nor its pages show it.

    Args:
        spark: the session.
        account: address and identity.
        database: name of the database.
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
        container = container_of_all(queries)
        texts = [query.text for query in queries]
        ranges = self._ranges(container)
        asked = [(text, item) for item in ranges for text in texts]
        tasks = self._tasks(len(ranges))  # A task opens the account once for all queries of its range.
        reader = partial(
            RangeReader,
            self._account,
            self._database,
            container,
            rate=self._share(tasks),
            page=self._page,
            patience=self._patience,
        )
        places = self._spark.range(0, len(asked), 1, tasks)
        found = made(
            places, lambda meter: lambda rows: reader(meter=meter)(asked[row["id"]] for row in rows), RAW, held
        )
        self.spent.add(found.spent)
        return found

    def delete(self, container: str, rows: DataFrame) -> Made:
        """Delete unchanged documents; see `Source.delete`."""
        require_deletable(rows)
        tasks = parallelism(self._spark)
        deleter = partial(
            Deleter, self._account, self._database, container, rate=self._share(tasks), patience=self._patience
        )
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
                return ranges_of(container_of(client, self._database, container))
            except AzureError as error:
                raise refusal(error, f"the container {container!r} of database {self._database!r}") from None

    def _tasks(self, most: int) -> int:
        """How many tasks share the work: with a rate no more than can run at a time now, even if more could later."""
        return most if self._rate is None else min(most, parallelism(self._spark))

    def _share(self, tasks: int) -> float | None:
        """The part of the rate that each of so many tasks has, so that all together keep to it."""
        return None if self._rate is None else self._rate / tasks
