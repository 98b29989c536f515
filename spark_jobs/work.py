"""The work of a job, shared by all parts: the session, the job file, the account, the source, the progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH
from spark_jobs.job.configuration import Account, Job, load
from spark_jobs.report.progress import Progress, shown
from spark_jobs.source.account import Beginning, ready
from spark_jobs.source.connector import Connector, jar_of
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Source, shown_units
from spark_jobs.spark.session import is_connect, session

_OF_SYNAPSE: Final = "synapse"
"""In the name of the jar that Spark pools of Synapse have: `azure-cosmos-analytics-spark_3-5_2-12_synapse-2.2.5.jar`."""


def source_of(
    spark: SparkSession, job: Job, account: Account, jar: Callable[[SparkSession], str | None] = jar_of
) -> Source:
    """The source that a job file asks for.

    A connector on the class path is no reason to use it: some pools bring one of any version.

    Args:
        job: names the containers and the adapter.
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


@dataclass(frozen=True, slots=True)
class Work:
    """Shared by the parts of a run of a job.

    Attributes:
        source: reads Cosmos DB, and deletes in bulk.
        beginning: the service's time at the beginning, and the application's retention.
        progress: shows each step.
        clock: seconds from any beginning.
    """

    spark: SparkSession
    job: Job
    account: Account
    source: Source
    beginning: Beginning
    progress: Progress
    clock: Callable[[], float] = time.monotonic

    def done(self, result: str) -> None:
        """Show that a step is done, with the cost of all requests so far."""
        self.progress.done(f"{result}, {shown_units(self.source.spent.units)} in all")

    def again(self, now: Callable[[], float]) -> Self:
        """The work of the next run in this session: the service's time is read anew, and costs are counted anew.

        Args:
            now: this machine's clock, in seconds since 1970.

        Raises:
            AccountError, ConfigurationError, UnsafeError: as `begun`.
        """
        source = source_of(self.spark, self.job, self.account)
        return replace(self, source=source, beginning=ready(self.job, self.account, now))


@contextmanager
def begun(name: str, config: Path, now: Callable[[], float], rate: float | None = None) -> Iterator[Work]:
    """Check the account, start Spark, and show progress within the `with` block.

    Args:
        name: of the application, as Spark shows it.
        config: path of the job file.
        now: this machine's clock, in seconds since 1970.
        rate: most RU per second, in place of the job file's; None for the file's.

    Raises:
        AccountError, ConfigurationError, UnsafeError: the job did nothing.
    """
    job, account = load(config)
    if rate is not None:
        job = job.model_copy(update={"rate": rate})
    beginning = ready(job, account, now)
    spark = session(name)
    with shown() as progress:
        progress.begin("source")
        source = source_of(spark, job, account)
        progress.done(source.name)
        yield Work(spark, job, account, source, beginning, progress)
