"""The removal: bulk deletes, deletes behind a fence, and an archive before both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial, reduce
from typing import Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.drivers.driver import Backoff
from spark_jobs.cleaner.fence import Fence, Place
from spark_jobs.cleaner.scan import Scan
from spark_jobs.cleaner.verdicts import GOES
from spark_jobs.source.tasks import made, together
from spark_jobs.spark.folder import Folder
from spark_jobs.spark.frames import capped, kept, none
from spark_jobs.spark.session import parallelism
from spark_jobs.work import Work

WAVE: Final = 100_000
"""Documents that are deleted between two lines of progress."""
_MOST_WAVES: Final = 200
_MOST_CONTAINERS: Final = 1_000

OUTCOMES: Final = StructType([StructField(name, StringType()) for name in ("container", "entity", "id", "outcome")])
"""The outcome of each document: a `port.Outcome`, or a `verdicts.Reason` to keep it."""

ARCHIVED: Final = ("container", "kind", "entity", "message", "tx", "partition", "id", "etag", "ts", "document")
"""Columns of an archive. `document` is the JSON text of the whole document."""


def archive(place: str, scan: Scan, going: DataFrame, containers: list[str]) -> DataFrame:
    """Write a new archive of whole documents into a folder, and read it again.

    Only archived documents are deleted, with the ETag of the archive. So a document that changes in between stays, and the
    archive holds every deleted document, and perhaps more.

    Args:
        place: the folder, which may hold archives of other runs.
        scan: reads the documents again.
        going: the documents to delete: `verdicts.JUDGED`.
        containers: their containers.

    Returns:
        The archived documents: the columns of `ARCHIVED`.

    Raises:
        ConfigurationError: the folder cannot be written. Nothing was deleted.
    """
    folder = Folder(scan.work.spark, place)
    folder.make()
    at = datetime.fromtimestamp(scan.work.beginning.now, timezone.utc)
    name = folder.place(f"{at:%Y-%m-%dT%H%M%SZ}-{uuid4().hex[:8]}.parquet")
    found = []
    for container in containers:
        whole = scan.whole(container)
        found.append(going.where(going.container == container).join(whole, ["entity", "id", "etag"]))
    reduce(DataFrame.unionByName, found).select(*ARCHIVED).write.parquet(name)
    scan.release()
    return scan.work.spark.read.parquet(name)


@dataclass(frozen=True, slots=True)
class Removal:
    """Deletes documents."""

    work: Work
    backoff: Backoff

    def run(self, verdicts: DataFrame, scan: Scan, *, delete: bool, archives: str | None, wave: int) -> DataFrame:
        """Delete the documents that go; in a dry run, only judge staged documents as a fence would.

        Args:
            verdicts: `verdicts.JUDGED`.
            scan: reads for the archive.
            delete: whether to delete.
            archives: folder for an archive; None for none.
            wave: documents that are deleted between two lines of progress.

        Returns:
            `OUTCOMES` of the documents that were treated.
        """
        going = verdicts.where(F.col("verdict") == GOES)
        if delete and archives and (containers := self._numbers(going)):
            self.work.progress.begin("archive")
            going = archive(archives, scan, going, sorted({item for item, _ in containers}))
            self.work.progress.done(f"in {archives}")
        numbers = self._numbers(going)
        found = [none(self.work.spark, OUTCOMES)]
        for (container, is_staged), number in sorted(numbers.items()):
            some = going.where((F.col("container") == container) & (_is_staged() == is_staged))
            if is_staged:
                found.append(self._fenced(container, some, number, writes=delete))
            elif delete:
                found += self._in_bulk(container, some, number, wave)
        return reduce(DataFrame.unionByName, found)

    def _fenced(self, container: str, staged: DataFrame, number: int, *, writes: bool) -> DataFrame:
        self.work.progress.begin("staged messages")
        tasks = parallelism(self.work.spark)
        rate = None if self.work.job.rate is None else self.work.job.rate / tasks
        place = Place.of(self.work.job, self.work.account, rate=rate, writes=writes)
        fence = partial(Fence, place, backoff=self.backoff)
        rows = staged.select("entity", "tx").repartition(tasks, "entity").sortWithinPartitions("entity")
        done = made(
            rows,
            lambda meter: lambda some: together((container, *item) for item in fence(meter)(some)),
            OUTCOMES,
            kept,  # Not only held: making them again would fence every entity again.
        )
        self.work.source.spent.add(done.spent)
        self.work.done(f"{number:,} judged")
        return done.rows

    def _in_bulk(self, container: str, rows: DataFrame, number: int, wave: int) -> Iterator[DataFrame]:
        """Delete documents of a container in waves, each on condition of its ETag."""
        waves = min(max(1, math.ceil(number / wave)), _MOST_WAVES)
        done = 0
        for turn in range(waves):
            self.work.progress.begin(f"deleting from {container}, {turn + 1} of {waves}")
            some = rows.where(F.pmod(F.xxhash64("partition"), F.lit(waves)) == turn)
            deleted = self.work.source.delete(container, some.select("container", "partition", "entity", "id", "etag"))
            done += deleted.number
            self.work.done(f"{done:,} of {number:,} documents")
            yield deleted.rows.select(*OUTCOMES.fieldNames())

    def _numbers(self, going: DataFrame) -> dict[tuple[str, bool], int]:
        """Numbers of documents that go, by container and whether they are staged."""
        rows, _ = capped(going.groupBy("container", _is_staged().alias("staged")).count(), _MOST_CONTAINERS)
        return {(row.container, row.staged): row["count"] for row in rows}


def _is_staged() -> Column:
    # Only in the library's container: elsewhere a document of that kind would be unreadable.
    return F.col("kind") == "staged"
