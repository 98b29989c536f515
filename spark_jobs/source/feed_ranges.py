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
from spark_jobs.source.port import RAW, Query, Spent, require_deletable
from spark_jobs.source.range_reader import PAGE, FeedRange, RangeReader, ranges_of


class FeedRanges:
    """A `Source` that needs the Python SDK only.

    The driver lists a container's feed ranges, one for each physical partition, and one task reads each. An account key
    travels in the tasks' closures; neither Spark's configuration nor its pages show it.

    Args:
        spark: the session.
        account: address and identity.
        database: name of the database.
        rate: most RU per second, shared by the tasks that run at a time; None for no limit.
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

    def read(self, query: Query) -> DataFrame:
        """The rows of a query; see `Source.read`."""
        ranges = self._ranges(query.container)
        reader = RangeReader(
            self._account,
            self._database,
            query.container,
            query.text,
            self.spent,
            rate=self._share(len(ranges)),
            page=self._page,
            patience=self._patience,
        )
        rows = self._spark.sparkContext.parallelize(ranges, len(ranges)).mapPartitions(reader)
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

    def _share(self, tasks: int) -> float | None:
        """The rate of one task, so that those that run at a time keep to the whole."""
        return None if self._rate is None else self._rate / min(tasks, self._spark.sparkContext.defaultParallelism)
