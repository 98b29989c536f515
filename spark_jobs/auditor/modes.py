"""The two modes of an audit: they differ in what they read, which rules they run, and what they remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.account_reader import AccountReader, Chosen, DocumentsRead
from spark_jobs.auditor.figures import instant
from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.rules import ALL, Rule

FIRST, SECOND = "first look", "second look"


class FullAudit:
    """Reads all documents, runs all rules, and remembers the version of every entity."""

    name: Final = "full"
    rules: Final[Sequence[Rule]] = ALL
    since: Final = None
    warnings: Final[tuple[str, ...]] = ()

    def read(self, reader: AccountReader) -> DocumentsRead:
        """All documents."""
        return reader.everything(FIRST)

    def remember(self, facts: Facts, now: int) -> DataFrame:
        """The versions that this audit saw, for the checkpoint: `facts.SEEN`."""
        return facts.entities.select("entity", "version", F.lit(now).cast("bigint").alias("seen_at"))


@dataclass(frozen=True, slots=True)
class IncrementalAudit:
    """Reads the entities that changed or were left open, each with all its documents. Runs no rule about absence.

    Attributes:
        chosen: those entities.
        since: from when on it looked for changes.
        last_full: second in which the last full audit began; None if that is longer ago than the retention.
    """

    chosen: Chosen
    since: datetime
    last_full: int | None

    @property
    def name(self) -> Literal["incremental"]:
        """As the report has it."""
        return "incremental"

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules that documents of chosen entities can answer."""
        return [rule for rule in ALL if rule.incremental]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the report has to know, a sentence each."""
        full = self.last_full
        when = "longer ago than the retention" if full is None else f"on {instant(full):%Y-%m-%d at %H:%M} UTC"
        return (f"This audit judged entities that changed or were left open. The last full audit began {when}.",)

    def read(self, reader: AccountReader) -> DocumentsRead:
        """All documents of the chosen entities."""
        return reader.chosen(FIRST, self.chosen)

    def remember(self, facts: Facts, now: int) -> None:
        """Nothing: only a full audit saw every entity."""
        del facts, now


Mode = FullAudit | IncrementalAudit
