"""The adapter that runs everywhere: executors read and delete by feed ranges, through the Python SDK."""

from __future__ import annotations

from azure.core.exceptions import AzureError
from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.job.configuration import Account
from spark_jobs.source.account import connected, container_of, refusal
from spark_jobs.source.deleter import Deleter
from spark_jobs.source.pace import Patience
from spark_jobs.source.port import RAW, Query, Spent, container_of_all, require_deletable
from spark_jobs.source.range_reader import PAGE, FeedRange, RangeReader, ranges_of


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
        self.spent = Spent(spark.sparkContext)
        self._spark = spark
        self._account = account
        self._database = database
        self._rate = rate
        self._page = page
        self._patience = patience or Patience()

    def read(self, *queries: Query) -> DataFrame:
        """The rows of queries; see `Source.read`."""
        container = container_of_all(queries)
        texts = [query.text for query in queries]
        asked = [(text, one) for one in self._ranges(container) for text in texts]
        tasks = self._tasks(len(asked))
        reader = RangeReader(
            self._account,
            self._database,
            container,
            self.spent,
            rate=self._share(tasks),
            page=self._page,
            patience=self._patience,
        )
        rows = self._spark.sparkContext.parallelize(asked, tasks).mapPartitions(reader)
        return self._spark.createDataFrame(rows, RAW, verifySchema=False)

    def delete(self, container: str, rows: DataFrame) -> DataFrame:
        """Delete unchanged documents; see `Source.delete`."""
        require_deletable(rows)
        tasks = self._spark.sparkContext.defaultParallelism
        deleter = Deleter(
            self._account, self._database, container, self.spent, rate=self._share(tasks), patience=self._patience
        )
        placed: RDD[Row] = rows.repartition(tasks, "partition").sortWithinPartitions("partition").rdd
        deleted = placed.mapPartitions(lambda part: ((*row, outcome.value) for row, outcome in deleter(part)))
        schema = StructType([*rows.schema.fields, StructField("outcome", StringType())])
        # Now and once: using the frame again would delete again, and find all documents gone.
        return self._spark.createDataFrame(deleted, schema, verifySchema=False).localCheckpoint(eager=True)

    def _ranges(self, container: str) -> list[FeedRange]:
        with connected(self._account) as client:
            try:
                return ranges_of(container_of(client, self._database, container))
            except AzureError as error:
                raise refusal(error, f"the container {container!r} of database {self._database!r}") from None

    def _tasks(self, most: int) -> int:
        """How many tasks share the work: with a rate no more than can run at a time now, even if more could later."""
        return most if self._rate is None else min(most, self._spark.sparkContext.defaultParallelism)

    def _share(self, tasks: int) -> float | None:
        """The part of the rate that each of so many tasks has, so that all together keep to it."""
        return None if self._rate is None else self._rate / tasks
