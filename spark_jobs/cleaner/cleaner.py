"""One clean-up: read, judge, delete what may go, read again, count, and write the results.

The rules are those of `protocols.outbox.clean` and `protocols.steps.clean_companions`:

- Processed records and companions go in bulk, each on condition of the ETag with which it was judged. Records need no look at
  their entity. All that decides about companions stays as it was once read, so frames may be judged, without a fence.
- Staged documents go by `clean_staged`, behind its fence, through the library's own store.
- Blobs of lost attempts go by `clean_blobs`, if a container of blobs is named.
- Parked messages never go, nor documents that owe outputs or hold a message.

It may be stopped at any time, and run again: it keeps no state, and finds again what it has not deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.drivers.retry import Backoff
from spark_jobs.cleaner.blobs import BlobPlace, LostBlobs
from spark_jobs.cleaner.removal import WAVE, Removal
from spark_jobs.cleaner.scan import Scan
from spark_jobs.cleaner.store import Place
from spark_jobs.cleaner.summary import Summary, counted, destination, results, write
from spark_jobs.cleaner.verdicts import GOES, judged
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.progress import Progress
from spark_jobs.source.application import Beginning
from spark_jobs.source.port import Source
from spark_jobs.spark.failures import translated
from spark_jobs.spark.frames import suited

OUT: Final = "reports/cleanup"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a clean-up.

    Attributes:
        out: folder for the list and the summary; replaces those of an earlier clean-up.
        delete: whether to delete; if not, it is a dry run.
        archive: folder for archives of deleted documents; None for none.
        wave: documents that are deleted between two lines of progress.
    """

    out: str = OUT
    delete: bool = False
    archive: str | None = None
    wave: int = WAVE


@dataclass
class Cleaner:
    """Runs one clean-up.

    Attributes:
        spark: the session.
        job: names the containers and limits.
        account: address and identity, for the library's own store.
        source: reads, and deletes in bulk.
        beginning: the service's time at the beginning, and the application's retention.
        progress: shows each step.
        blobs: the container of blobs; None if there is none.
        backoff: between attempts to fence an entity.
        clock: seconds from any beginning.
    """

    spark: SparkSession
    job: Job
    account: Account
    source: Source
    beginning: Beginning
    progress: Progress
    blobs: BlobPlace | None = None
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic
    _kept: list[DataFrame] = field(default_factory=list)

    def run(self, options: Options) -> Summary:
        """Clean up, or in a dry run only judge, and write the results.

        Raises:
            AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run it again.
            ConfigurationError: a folder cannot be used, or a container is absent.
        """
        begun = self.clock()
        out = destination(self.spark, options.out)
        scan = Scan(self.source, self.job, self.beginning)
        with translated(), self._released():
            # One by one: a plan of all containers together takes longer than its work.
            old = [self._made(f"old documents, {container}", frame) for container, frame in scan.old()]
            documents, rows = reduce(DataFrame.unionByName, (frame for frame, _ in old)), sum(many for _, many in old)
            with suited(self.spark, rows):
                verdicts, _ = self._made("verdicts", judged(documents, self.job, self.beginning))
                removal = Removal(self.spark, self.job, self.account, self.source, self.progress, self.backoff)
                outcomes = removal.run(
                    verdicts, scan, delete=options.delete, archives=options.archive, wave=options.wave
                )
            blobs = self._clean_blobs(writes=options.delete)
            there, left = self._made("documents that are left", scan.there())
            with suited(self.spark, rows + left):
                ends, _ = self._made("results", results(verdicts, outcomes, there, deleted=options.delete))
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

    def _clean_blobs(self, *, writes: bool) -> LostBlobs | None:
        if self.blobs is None:
            return None
        self.progress.begin("blobs")
        entities = Place.of(self.job, self.account, self.source.spent, rate=self.job.rate, writes=writes)
        lost = asyncio.run(self._cleaned(self.blobs, entities))
        self.progress.done(f"{len(lost.names):,} of lost attempts")
        return lost

    async def _cleaned(self, place: BlobPlace, entities: Place) -> LostBlobs:
        async with place.opened() as blobs:
            lost = LostBlobs(self.job, self.beginning.judged, entities, blobs, self.backoff)
            await lost.clean()
            return lost

    def _made(self, step: str, frame: DataFrame) -> tuple[DataFrame, int]:
        """Make a frame now, keep it until the end, and show its size. Returns it with the number of its rows."""
        self.progress.begin(step)
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        rows = kept.count()
        self.progress.done(f"{rows:,} documents, {self.source.spent.units:,.0f} RU in all")
        return kept, rows

    @contextmanager
    def _released(self) -> Iterator[None]:
        """Release the frames that were kept at the end of the `with` block."""
        try:
            yield
        finally:
            for frame in self._kept:
                frame.unpersist()
            self._kept.clear()
