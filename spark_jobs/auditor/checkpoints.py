"""What one audit leaves to the next: how far it looked, what is still open, and which versions it saw.

A checkpoint is a small file of JSON and the tables it names, all of which are written before it and never changed. So it is
replaced as a whole, whenever an audit is stopped.

The position is the service's time at the beginning of an audit. What is written later has a `_ts` at or after it, but for
replicas that lag and clocks that differ a little; and what was younger than the longest grace was not judged. So the next
audit looks for changes from that much earlier on. A deletion leaves no `_ts`: rules about absence run in full audits only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import reduce
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.errors import ConfigurationError
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.application import Beginning
from spark_jobs.spark.folder import Folder
from spark_jobs.transforms.facts import SEEN, Facts

FORMAT: Final = 1
LAG: Final = timedelta(minutes=5)
"""How much later than its `_ts` says a write may be seen."""

OPEN: Final = StructType([StructField("entity", StringType())])
"""Entities to be judged again, whether they change or not: they owe, wait, or have findings."""

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a checkpoint is of. One of something else says nothing.

    Attributes:
        account: its host, and port.
        database: its name.
        places: where entities and the library's documents are, and who consumes what.
    """

    account: str
    database: str
    places: dict[str, Any]

    @classmethod
    def of(cls, job: Job, account: Account) -> Self:
        """What an audit of this job is about."""
        places = job.model_dump(mode="json", include={"library", "entities", "consumers"})
        return cls(urlsplit(account.endpoint).netloc, job.database, places)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an audit left.

    Attributes:
        subject: what it is of.
        number: one more than that of the checkpoint before.
        position: the service's time, in seconds since 1970, when the audit began.
        seen: by the names of tables of `facts.SEEN`, the time of the full audit that wrote each.
        format: of this file.
    """

    subject: Subject
    number: int
    position: int
    seen: dict[str, int] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def open(self) -> str:
        """Name of the table of `OPEN`."""
        return f"open-{self.number}.parquet"

    @classmethod
    def after(cls, last: Checkpoint | None, subject: Subject, beginning: Beginning) -> Checkpoint:
        """The checkpoint of an audit that began now. What was seen longer ago than the retention proves nothing any more."""
        now = beginning.now
        if last is None:
            return cls(subject, 1, now)
        oldest = now - int(beginning.judged.total_seconds())
        return cls(subject, last.number + 1, now, {name: at for name, at in last.seen.items() if at >= oldest})

    def since(self, job: Job) -> int:
        """From which `_ts` on the next audit has to look: what was in its grace then is looked at again."""
        grace = max(job.grace, job.owed_after, job.lost_after, job.gap_after, job.horizon)
        return self.position - int((grace + LAG).total_seconds())


class Checkpoints:
    """The folder of a job's checkpoints. The newest counts.

    Args:
        spark: reads and writes the tables.
        folder: where they are.
    """

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self._spark = spark
        self._folder = folder

    def newest(self, subject: Subject) -> Checkpoint | None:
        """The checkpoint to go on from; None if there is none yet.

        Raises:
            ConfigurationError: it is of something else, or cannot be read.
        """
        numbers = [int(name.removesuffix(_SUFFIX)) for name in self._folder.names() if _is_checkpoint(name)]
        if not numbers:
            return None
        found = self._read(f"{max(numbers)}{_SUFFIX}")
        if differing := _differences(found.subject, subject):
            raise ConfigurationError(
                f"The checkpoint in {self._folder} is of {differing}. Name another folder with --checkpoint; or delete that "
                "one, and the next audit is a full one."
            )
        return found

    def open(self, checkpoint: Checkpoint) -> DataFrame:
        """The open entities that a checkpoint names: `OPEN`."""
        return self._spark.read.schema(OPEN).parquet(self._folder.place(checkpoint.open))

    def seen(self, checkpoint: Checkpoint | None) -> DataFrame | None:
        """The versions that full audits up to a checkpoint saw: `facts.SEEN`; None if there was none."""
        if checkpoint is None or not checkpoint.seen:
            return None
        return self._spark.read.schema(SEEN).parquet(*map(self._folder.place, checkpoint.seen))

    def write(self, checkpoint: Checkpoint, still_open: DataFrame, seen: DataFrame | None) -> None:
        """Put a checkpoint in the place of the one before.

        Args:
            checkpoint: the new one; its `seen` are the tables of the one before that still count.
            still_open: `OPEN`.
            seen: what a full audit adds: `facts.SEEN`. None in an incremental one.
        """
        still_open.write.mode("overwrite").parquet(self._folder.place(checkpoint.open))
        if seen is not None:
            table = f"seen-{checkpoint.number}.parquet"
            seen.write.mode("overwrite").parquet(self._folder.place(table))
            checkpoint = replace(checkpoint, seen={**checkpoint.seen, table: checkpoint.position})
        name = f"{checkpoint.number}{_SUFFIX}"
        self._folder.write(name, json.dumps(asdict(checkpoint), indent=2) + "\n")
        self._forget({name, checkpoint.open, *checkpoint.seen})

    def _forget(self, kept: Iterable[str]) -> None:
        """Delete what belongs to earlier checkpoints, or to one that was not finished."""
        ours = (
            name for name in self._folder.names() if _is_checkpoint(name) or name.startswith(("open-", "seen-", "."))
        )
        for name in set(ours) - set(kept):
            self._folder.delete(name)

    def _read(self, name: str) -> Checkpoint:
        try:
            told = json.loads(self._folder.read(name))
            if told.pop("format") != FORMAT:
                raise ConfigurationError(
                    f"The checkpoint {self._folder.place(name)} was written by another version of the audit. Delete the "
                    "folder: the next audit is a full one."
                )
            return Checkpoint(**{**told, "subject": Subject(**told["subject"])})
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(
                f"The checkpoint {self._folder.place(name)} is damaged. Delete the folder: the next audit is a full one."
            ) from None


def still_open(facts: Facts, findings: DataFrame) -> DataFrame:
    """The entities that the next audit has to judge again, changed or not: they owe, wait, or have findings. `OPEN`."""
    waiting = F.exists("receptions", lambda one: (F.size(one["held"]) > 0) | one["gap_since"].isNotNull())
    parts = (
        facts.transactions.where(F.col("owes").isNotNull()),
        facts.entities.where(waiting),
        facts.staged,
        facts.unreadable,
        findings,
    )
    entities = reduce(DataFrame.unionByName, (part.select("entity") for part in parts))
    return entities.where(F.col("entity").isNotNull()).distinct()


def versions_seen(facts: Facts, now: int) -> DataFrame:
    """At which versions a full audit saw the entities: `facts.SEEN`."""
    return facts.entities.select("entity", "version", F.lit(now).cast("bigint").alias("seen_at"))


def _is_checkpoint(name: str) -> bool:
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal()


def _differences(found: Subject, wanted: Subject) -> str:
    """What the checkpoint is of and the job is not; empty if they are one."""
    if found.account != wanted.account:
        return f"the account {found.account!r}, not {wanted.account!r}"
    if found.database != wanted.database:
        return f"the database {found.database!r}, not {wanted.database!r}"
    names = [name for name in wanted.places if found.places.get(name) != wanted.places[name]]
    return f"a job file in which {' and '.join(names)} differ" if names else ""
