"""Makes the source that a job file asks for."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.cosmos.layout import LIBRARY_PATH
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.connector import Connector, is_present
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Source


def source_of(
    spark: SparkSession, job: Job, account: Account, present: Callable[[SparkSession], bool] = is_present
) -> Source:
    """The source that a job file asks for.

    A connector on the class path is no reason to use it: some pools bring one of any version.

    Args:
        spark: the session.
        job: names the containers and the adapter.
        account: address and identity.
        present: whether the connector is on the class path.

    Raises:
        ConfigurationError: the connector is asked for and absent, or has no identity.
    """
    if job.source == "feed_ranges":
        return FeedRanges(spark, account, job.database, rate=job.rate)
    if not present(spark):
        raise ConfigurationError(
            'The job file says "source": "connector", and azure-cosmos-spark is not on the class path: add the package '
            'com.azure.cosmos.spark:azure-cosmos-spark_3-5_2-12 to the job, or say "feed_ranges".'
        )
    paths = {place.container: place.partition_key for place in job.entities} | {job.library: (LIBRARY_PATH,)}
    return Connector(spark, account, job.database, paths, rate=job.rate)
