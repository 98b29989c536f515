"""One clean-up: read, judge, delete what may go, read again, count, and write the results.

The rules are those of `protocols.outbox` and `protocols.steps.clean_companions`:

- Pages and companions go in bulk, on condition of the judged ETag. A page needs no look at the entity, since no message with a
  mark in the page is judged any more. All that decides about companions stays as once read, so frames may
  be judged, without a fence.
- Requests that were left open go in the same way; answered requests stay for their callers.
- Books go in the same way, 60 days after the last write, if the store has not deleted them.
- Staged messages go by `clean_staged`, behind its fence, through the library's own store.
- Blobs of lost attempts go by `clean_blobs`, if a container of blobs is named.
- Parked messages never go, nor documents that owe outputs or hold a message.

A clean-up may be stopped at any time, and run again: it keeps no state, and finds the remaining documents again.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.drivers.driver import Backoff
from spark_jobs.cleaner.blobs import BlobPlace, LostBlobs
from spark_jobs.cleaner.fence import Place
from spark_jobs.cleaner.removal import WAVE, Removal
from spark_jobs.cleaner.scan import Scan
from spark_jobs.cleaner.summary import Summary, counted, destination, results, write
from spark_jobs.cleaner.verdicts import GOES, judged
from spark_jobs.source.tasks import translated
from spark_jobs.spark.frames import held, suited
from spark_jobs.work import Work

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
        blobs: the container of blobs; None if there is none.
        pages: whether it deletes pages; if not, the store does.
    """

    work: Work
    blobs: BlobPlace | None = None
    pages: bool = True
    backoff: Backoff = field(default_factory=Backoff)

    def run(self, options: Options) -> Summary:
        """Clean up, or in a dry run only judge, and write the results.

        Raises:
            AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run it again.
            ConfigurationError: a folder cannot be used, or a container is absent.
        """
        work, begun = self.work, self.work.clock()
        out = destination(work.spark, options.out)
        scan = Scan(work, self.pages)
        with translated(), ExitStack() as end:
            end.callback(scan.release)
            old = [*scan.old()]
            rows = sum(number for _, number in old)
            with suited(work.spark, rows):
                documents = _held(reduce(DataFrame.unionByName, (documents for documents, _ in old)), end)
                verdicts = self._made("verdicts", judged(documents, work.job, work.beginning), end)
                scan.release()
                outcomes = Removal(work, self.backoff).run(
                    verdicts, scan, delete=options.delete, archives=options.archive, wave=options.wave
                )
            blobs = self._clean_blobs(writes=options.delete)
            work.progress.begin("documents that are left")
            named, left = scan.there()
            with suited(work.spark, rows + left):
                there = _held(named, end)
                work.done(f"{there.count():,} documents")
                scan.release()
                ends = self._made("results", results(verdicts, outcomes, there, deleted=options.delete), end)
                summary = Summary(
                    work.job.database,
                    "delete" if options.delete else "dry run",
                    datetime.fromtimestamp(work.beginning.now, timezone.utc).isoformat(),
                    work.beginning.kept.total_seconds(),
                    work.job.horizon.total_seconds(),
                    counted(ends, there, work.beginning.now),
                    dict(blobs.results) if blobs else None,
                    work.source.spent.units,
                    work.clock() - begun,
                    options.archive if options.delete else None,
                    self.pages,
                )
                write(out, summary, ends.where(F.col("verdict") == GOES), blobs.names if blobs else ())
        return summary

    def _clean_blobs(self, *, writes: bool) -> LostBlobs | None:
        if self.blobs is None:
            return None
        self.work.progress.begin("blobs")
        entities = Place.of(self.work.job, self.work.account, rate=self.work.job.rate, writes=writes)
        lost = asyncio.run(self._cleaned(self.blobs, entities))
        self.work.progress.done(f"{len(lost.names):,} of lost attempts")
        return lost

    async def _cleaned(self, place: BlobPlace, entities: Place) -> LostBlobs:
        async with place.opened() as blobs:
            lost = LostBlobs(
                self.work.job, self.work.beginning.judged, entities, self.work.source.spent, blobs, self.backoff
            )
            await lost.clean()
            return lost

    def _made(self, step: str, frame: DataFrame, end: ExitStack) -> DataFrame:
        """Make a frame now, keep it until the end, and show its size."""
        self.work.progress.begin(step)
        kept = _held(frame, end)
        self.work.done(f"{kept.count():,} documents")
        return kept


def _held(frame: DataFrame, end: ExitStack) -> DataFrame:
    """Keep a frame, once it is made, until the end."""
    kept = held(frame)
    end.callback(kept.unpersist)
    return kept
