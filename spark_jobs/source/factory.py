"""Makes the source that a job file asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.connector import Connector, jar_of
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Source
from spark_jobs.spark.session import is_connect

_OF_SYNAPSE: Final = "synapse"
"""In the name of the jar that Spark pools of Synapse have: `azure-cosmos-analytics-spark_3-5_2-12_synapse-2.2.5.jar`."""


def source_of(
    spark: SparkSession, job: Job, account: Account, jar: Callable[[SparkSession], str | None] = jar_of
) -> Source:
    """The source that a job file asks for.

    A connector on the class path is no reason to use it: some pools bring one of any version.

    Args:
        spark: the session.
        job: names the containers and the adapter.
        account: address and identity.
        jar: the file name of the connector's jar; None if none is on the class path.

    Raises:
        ConfigurationError: the connector is asked for, and is absent, or Synapse's own, or has no identity, or Spark is
            elsewhere (Spark Connect).
    """
    if job.source == "feed_ranges":
        return FeedRanges(spark, account, job.database, rate=job.rate)
    if is_connect():
        raise ConfigurationError(
            'The job file says "source": "connector", and this is a session of Spark Connect, whose class path a client cannot '
            'see: say "feed_ranges".'
        )
    found = jar(spark)
    if found is None:
        raise ConfigurationError(
            'The job file says "source": "connector", and azure-cosmos-spark is not on the class path: add the package '
            'com.azure.cosmos.spark:azure-cosmos-spark_3-5_2-12 to the job, or say "feed_ranges".'
        )
    if _OF_SYNAPSE in found:
        raise ConfigurationError(
            f'The job file says "source": "connector", and the class path gives the one of {found}, which Synapse brings by '
            'itself, in place of azure-cosmos-spark: say "feed_ranges".'
        )
    paths = {place.container: place.partition_key for place in job.entities} | {job.library: (LIBRARY_PATH,)}
    return Connector(spark, account, job.database, paths, rate=job.rate, jar=found)
