"""The clean-up: deletes what nothing refers to any more. `python -m spark_jobs.cleanup --config job.json [--delete]`.

Without `--delete` it is a dry run, which tells what would go. It goes by `strategies.retention` and `strategies.truncation`:

- Processed records, and what lies beside entities, in bulk, each on condition of the ETag it was judged with. Records need no
  look at their entity. For what lies beside, all that decides stays as it was once read (`strategies.truncation`), so the rule
  may be applied to frames, and no fence is needed.
- Staged documents by `clean_staged`, behind its fence, through the library's own store.
- Blobs of lost attempts by `clean_blobs`, if a container of blobs is named.
- Parked messages never, nor anything that owes or waits.

It may be stopped at any time, and run again: it remembers nothing, and what it has not deleted is found again.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.drivers.retry import Backoff
from spark_jobs.cleaner.blobs import BlobPlace, LostBlobs
from spark_jobs.cleaner.removal import WAVE, Removal
from spark_jobs.cleaner.results import TABLE, destination, write
from spark_jobs.cleaner.scan import Looks
from spark_jobs.cleaner.store import Place
from spark_jobs.cleaner.summary import Summary, counted, results
from spark_jobs.cleaner.verdicts import GOES, judged
from spark_jobs.job.configuration import Account, Job, load
from spark_jobs.job.exits import Exit, ending
from spark_jobs.report.progress import Telling, told
from spark_jobs.source.account import ready
from spark_jobs.source.application import Beginning
from spark_jobs.source.factory import source_of
from spark_jobs.source.port import Source
from spark_jobs.spark.failures import translated
from spark_jobs.spark.frames import suited
from spark_jobs.spark.session import session

OUT: Final = "reports/cleanup"


@dataclass(frozen=True, slots=True)
class Options:
    """What a clean-up is told.

    Attributes:
        out: folder for the list and the summary; what an earlier clean-up left there is replaced.
        delete: whether to delete; if not, it is a dry run.
        archive: folder for archives of what is deleted; None for none.
        wave: documents that are deleted before the next line is told.
    """

    out: str = OUT
    delete: bool = False
    archive: str | None = None
    wave: int = WAVE


@dataclass
class Cleanup:
    """One clean-up.

    Attributes:
        spark: the session.
        job: what is cleaned up.
        account: where it is.
        source: reads it, and deletes in bulk.
        beginning: the service's time then, and the application's retention.
        telling: told of what goes on.
        blobs: where blobs are; None if there are none.
        backoff: between attempts to fence an entity.
        clock: seconds from any beginning.
    """

    spark: SparkSession
    job: Job
    account: Account
    source: Source
    beginning: Beginning
    telling: Telling
    blobs: BlobPlace | None = None
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic
    _kept: list[DataFrame] = field(default_factory=list)

    def run(self, options: Options) -> Summary:
        """Clean up, or say what would go, and write the results.

        Raises:
            AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run it again.
            ConfigurationError: a folder is not what it has to be, or a container is not there.
        """
        begun = self.clock()
        out = destination(self.spark, options.out)
        looks = Looks(self.source, self.job, self.beginning)
        with translated(), self._given_back():
            # One by one: a plan of all containers together takes longer than its work.
            old = [self._told(f"what is old, {container}", frame) for container, frame in looks.old()]
            documents, rows = reduce(DataFrame.unionByName, (frame for frame, _ in old)), sum(many for _, many in old)
            with suited(self.spark, rows):
                verdicts, _ = self._told("judged", judged(documents, self.job, self.beginning))
                removal = Removal(self.spark, self.job, self.account, self.source, self.telling, self.backoff)
                outcomes = removal.run(
                    verdicts, looks, delete=options.delete, archives=options.archive, wave=options.wave
                )
            blobs = self._blobs(writes=options.delete)
            there, left = self._told("what is there now", looks.there())
            with suited(self.spark, rows + left):
                ends, _ = self._told("counted", results(verdicts, outcomes, there, deleted=options.delete))
                summary = Summary(
                    self.job.database,
                    "delete" if options.delete else "dry run",
                    datetime.fromtimestamp(self.beginning.now, timezone.utc).isoformat(),
                    self.beginning.kept.total_seconds(),
                    self.job.horizon.total_seconds(),
                    counted(ends, there, self.beginning.now),
                    dict(blobs.results) if blobs else None,
                    self.source.spent.units,
                    self.clock() - begun,
                    options.archive if options.delete else None,
                )
                write(out, summary, ends.where(F.col("verdict") == GOES), blobs.names if blobs else ())
        return summary

    def _blobs(self, *, writes: bool) -> LostBlobs | None:
        if self.blobs is None:
            return None
        self.telling.begin("blobs")
        place = self.blobs

        async def clean() -> LostBlobs:
            async with place.opened() as blobs:
                entities = Place.of(self.job, self.account, self.source.spent, rate=self.job.rate, writes=writes)
                lost = LostBlobs(self.job, self.beginning.judged, entities, blobs, self.backoff)
                await lost.clean()
                return lost

        lost = asyncio.run(clean())
        self.telling.done(f"{len(lost.names):,} of lost attempts")
        return lost

    def _told(self, what: str, frame: DataFrame) -> tuple[DataFrame, int]:
        """Make a frame now and keep it, and tell how large it is."""
        self.telling.begin(what)
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        rows = kept.count()
        self.telling.done(f"{rows:,} documents, {self.source.spent.units:,.0f} RU in all")
        return kept, rows

    @contextmanager
    def _given_back(self) -> Iterator[None]:
        try:
            yield
        finally:
            for frame in self._kept:
                frame.unpersist()
            self._kept.clear()


def clean(
    spark: SparkSession,
    job: Job,
    account: Account,
    options: Options,
    *,
    telling: Telling,
    clock: Callable[[], float] = time.time,
) -> Summary:
    """Check the account, then clean it up or say what would go. For whoever has a session already.

    Args:
        spark: the session.
        job: what is to be cleaned up.
        account: where it is.
        options: whether to delete, and where results go.
        telling: told of what goes on; see `progress.told`.
        clock: this machine's, in seconds since 1970.

    Raises:
        AccountError, ConfigurationError, UnsafeError: as `Cleanup.run` and `account.ready`.
    """
    beginning = ready(job, account, clock)
    source = source_of(spark, job, account)
    return Cleanup(spark, job, account, source, beginning, telling, BlobPlace.of()).run(options)


def run(arguments: Sequence[str] | None = None, clock: Callable[[], float] = time.time) -> Exit:
    """Clean up what the command line names.

    Args:
        arguments: of the command line.
        clock: this machine's, in seconds since 1970.

    Raises:
        AccountError, ConfigurationError, UnsafeError: as their sentence says.
    """
    given = _parser().parse_args(arguments)
    job, account = load(given.config)
    if given.rate is not None:
        job = job.model_copy(update={"rate": given.rate})
    options = Options(given.out, given.delete, given.archive)
    with told() as telling:
        summary = clean(session("exactlyonce clean-up"), job, account, options, telling=telling, clock=clock)
    print("\n".join(summary.lines()))
    print(
        f"See {given.out}/{TABLE}."
        if given.delete
        else f"Nothing was deleted: see {given.out}/{TABLE}, and add --delete."
    )
    return Exit.DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_jobs.cleanup",
        description="Delete what nothing refers to any more; by default, tell what.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="job file; see spark_jobs.describe")
    parser.add_argument("--delete", action="store_true", help="delete; without it nothing is written to Cosmos DB")
    parser.add_argument(
        "--archive", metavar="DIR", help="with --delete: write what is deleted to Parquet first, bodies included"
    )
    parser.add_argument("--out", default=OUT, metavar="DIR", help=f"folder for list and summary; {OUT} by default")
    parser.add_argument("--rate", type=_rate, metavar="RU/s", help="most RU per second, in place of the job file's")
    return parser


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < math.inf:
        raise ValueError(text)
    return rate


def main() -> int:
    """Clean up, and tell errors as their sentences. Returns the exit code."""
    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
