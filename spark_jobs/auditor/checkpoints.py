"""The checkpoint that an audit leaves to the next: the position, the open entities, and the versions seen.

A checkpoint is a small file of JSON and the tables it names. The tables are written before the file and never changed, so a
checkpoint is replaced as a whole, whenever an audit is stopped.

The position is the service's time at the beginning of an audit. A later write has a `_ts` at or after it, but for replicas
that lag and clocks that differ a little; and documents younger than the longest grace were not judged. So the next audit looks
for changes from that much earlier on. A deletion leaves no `_ts`: rules about absence run in full audits only.
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
from spark_jobs.report.contents import Mode
from spark_jobs.source.account import Beginning
from spark_jobs.spark.folder import Folder
from spark_jobs.transforms.facts import SEEN, Facts
from spark_jobs.transforms.rules.sightings import unpaid

FORMAT: Final = 1
LAG: Final = timedelta(minutes=5)
"""Longest delay between a write's `_ts` and the first read that sees it."""

OPEN: Final = StructType([StructField("entity", StringType())])
"""Entities to judge again, changed or not: they owe outputs, hold messages, or have findings."""
MOST_REMEMBERED: Final = 60
"""Audits whose numbers of findings a checkpoint keeps."""

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Subject:
    """The documents of a checkpoint: the audit refuses a checkpoint of other documents.

    Attributes:
        account: host and port.
        places: containers of the entities and of the library, and the consumers of destinations.
    """

    account: str
    database: str
    places: dict[str, Any]

    @classmethod
    def of(cls, job: Job, account: Account) -> Self:
        """The subject of a job's audits."""
        places = job.model_dump(mode="json", include={"library", "entities", "consumers"})
        return cls(urlsplit(account.endpoint).netloc, job.database, places)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file of a checkpoint.

    Attributes:
        subject: the documents of the checkpoint.
        number: counts the checkpoints of a folder.
        position: the service's time, in seconds since 1970, when the audit began.
        trend: for each of the last audits the second of the beginning, the mode, and the number of findings.
        seen: name of each table of `facts.SEEN`, with the second in which the full audit behind the table began.
        format: version of this file's format.
    """

    subject: Subject
    number: int
    position: int
    trend: list[tuple[int, Mode, int]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def open(self) -> str:
        """Name of the table of `OPEN`."""
        return f"open-{self.number}.parquet"

    @property
    def last_full(self) -> int | None:
        """Second in which the last full audit began; None if that is longer ago than the retention."""
        return max(self.seen.values(), default=None)

    @classmethod
    def after(
        cls, last: Checkpoint | None, subject: Subject, beginning: Beginning, mode: Mode, findings: int
    ) -> Checkpoint:
        """The checkpoint of an audit that began now. Versions seen before the retention are dropped: they prove nothing."""
        now = beginning.now
        if last is None:
            return cls(subject, 1, now, [(now, mode, findings)])
        oldest = now - int(beginning.judged.total_seconds())
        seen = {name: at for name, at in last.seen.items() if at >= oldest}
        return cls(subject, last.number + 1, now, [*last.trend, (now, mode, findings)][-MOST_REMEMBERED:], seen)

    def since(self, job: Job) -> int:
        """The `_ts` from which on the next audit looks for changes: earlier by the longest grace, and by the lag."""
        grace = max(job.grace, job.owed_after, job.lost_after, job.gap_after, job.horizon)
        return self.position - int((grace + LAG).total_seconds())


class Checkpoints:
    """The folder of a job's checkpoints; only the newest is used.

    Args:
        folder: holds the files and the tables.
    """

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self._spark = spark
        self._folder = folder

    def newest(self, subject: Subject) -> Checkpoint | None:
        """The newest checkpoint; None if there is none.

        Raises:
            ConfigurationError: it has another subject, or cannot be read.
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
        """The versions that full audits up to a checkpoint saw: `facts.SEEN`; None without a full audit."""
        if checkpoint is None or not checkpoint.seen:
            return None
        return self._spark.read.schema(SEEN).parquet(*map(self._folder.place, checkpoint.seen))

    def write(self, checkpoint: Checkpoint, still_open: DataFrame, seen: DataFrame | None) -> None:
        """Replace the checkpoint.

        Args:
            checkpoint: the new one; its `seen` names the earlier tables that it keeps.
            still_open: `OPEN`.
            seen: the table that a full audit adds: `facts.SEEN`; None after an incremental audit.
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
        """Delete the files and tables of earlier and of unfinished checkpoints."""
        ours = (
            name for name in self._folder.names() if _is_checkpoint(name) or name.startswith(("open-", "seen-", "."))
        )
        for name in set(ours) - set(kept):
            self._folder.delete(name)

    def _read(self, name: str) -> Checkpoint:
        try:
            stored = json.loads(self._folder.read(name))
            if stored.pop("format") != FORMAT:
                raise ConfigurationError(
                    f"The checkpoint {self._folder.place(name)} was written by another version of the audit. Delete the "
                    "folder: the next audit is a full one."
                )
            trend = [tuple(item) for item in stored["trend"]]
            return Checkpoint(**{**stored, "subject": Subject(**stored["subject"]), "trend": trend})
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(
                f"The checkpoint {self._folder.place(name)} is damaged. Delete the folder: the next audit is a full one."
            ) from None


def still_open(facts: Facts, findings: DataFrame) -> DataFrame:
    """The entities that the next audit judges again, changed or not: `OPEN`."""
    waiting = F.exists("receptions", lambda item: (F.size(item["held"]) > 0) | item["gap_since"].isNotNull())
    parts = (
        facts.transactions.where(F.col("owes")),
        unpaid(facts),
        facts.entities.where(waiting | (F.size("kept") > 0)),
        facts.staged,
        facts.unreadable,
        findings,
    )
    entities = reduce(DataFrame.unionByName, (part.select("entity") for part in parts))
    return entities.where(F.col("entity").isNotNull()).distinct()


def _is_checkpoint(name: str) -> bool:
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal()


def _differences(found: Subject, wanted: Subject) -> str:
    """How the checkpoint's subject differs from the job's; empty if it does not."""
    if found.account != wanted.account:
        return f"the account {found.account!r}, not {wanted.account!r}"
    if found.database != wanted.database:
        return f"the database {found.database!r}, not {wanted.database!r}"
    names = [name for name in wanted.places if found.places.get(name) != wanted.places[name]]
    return f"a job file in which {' and '.join(names)} differ" if names else ""
