"""The work of a job: the session, the job file, the account, and the progress, which its parts share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from spark_jobs.job.configuration import Account, Job, load
from spark_jobs.report.progress import Progress, shown
from spark_jobs.source.account import ready
from spark_jobs.source.application import Beginning
from spark_jobs.source.factory import source_of
from spark_jobs.source.port import Source
from spark_jobs.spark.session import session


@dataclass(frozen=True, slots=True)
class Work:
    """What the parts of one run of a job share.

    Attributes:
        spark: the session.
        job: names the containers and limits.
        account: address and identity.
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
