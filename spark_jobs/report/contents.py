"""The contents of a report, as plain values: written as `summary.json`, shown as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from enum import StrEnum
from typing import Any, Literal


class Severity(StrEnum):
    """What a finding of a rule means for the application, the worst first."""

    WRONG = "data wrong"
    """A state, or what the library knows of its messages, is not what it should be: correct it."""
    LOST = "message lost"
    """A message has not arrived: look for it, or send it again."""
    WATCH = "watch"
    """Something waits for longer than it should: find out why before it is lost."""
    GARBAGE = "garbage"
    """Something is stored that nobody needs: clean-up takes it."""


Mode = Literal["full", "incremental"]

Counted = tuple[tuple[str, int], ...]
"""Names and numbers, in the order in which they are shown."""

Growing = tuple[tuple[datetime, int], ...]
"""Beginnings of equally long spans of time, ascending, and a number for each. Empty spans may be left out."""

Trend = tuple[tuple[datetime, Mode, int], ...]
"""Audits, the oldest first: the beginning of each, its mode, and its number of findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. Its fields are the columns of `schemas.FINDING`."""

    rule: str
    entity: str
    message: str | None
    versions: tuple[int, ...]
    subject: str | None
    detail: str
    advice: str
    since: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Finding:
        """From a row of `schemas.FINDING`, whose times are in UTC without a zone."""
        since = row["since"]
        return cls(
            **{
                **row,
                "entity": row["entity"] or "of no known entity",
                "versions": tuple(row["versions"] or ()),
                "since": since and since.replace(tzinfo=timezone.utc),
            }
        )


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule.

    Attributes:
        name: of the rule.
        title, severity: the findings in words, and their meaning.
        grace: age from which on the rule judges, in words.
        skipped: why the rule did not run; None if it ran.
        suspects: number of suspects at the first look.
        findings: number of suspects that the second look found again.
    """

    name: str
    title: str
    severity: Severity
    grace: str
    skipped: str | None
    suspects: int
    findings: int


def urgency(rule: RuleResult) -> tuple[int, str]:
    """Sorts rules: the worst first."""
    return list(Severity).index(rule.severity), rule.name


@dataclass(frozen=True, slots=True)
class ReadResult:
    """One read of a container.

    Attributes:
        purpose: "first look", "second look"…
        rows: number of documents.
        charge: in request units; None if the service did not report it.
    """

    container: str
    purpose: str
    rows: int
    charge: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Pictures:
    """The figures of the charts.

    Attributes:
        backlog: commits that owe outputs, by age, the youngest first.
        span: seconds that each point of `commits` and `growth` covers.
        commits: processed messages, by the time of the message or of the commit.
        growth: documents and entries that make duplicates known, by kind and time of writing.
        worst: entities with the most findings, the worst first.
    """

    backlog: Counted = ()
    span: int = 3600
    commits: Growing = ()
    growth: Mapping[str, Growing] | None = None
    worst: Counted = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """All contents of a report.

    Attributes:
        account: host name of the account.
        mode: whether the audit read everything, or changes.
        since: from when on an incremental audit looked for changes; None in a full audit.
        at: beginning of the audit, by the service's clock.
        seconds: duration, without the start of Spark.
        entities, messages: numbers of those that were judged.
        open: number of entities that the next audit judges again.
        garbage: number of documents of messages that no entity keeps, for clean-up.
        rules, reads, pictures: see there.
        total: number of findings.
        findings: the first findings, as many as the page shows.
        trend: the last audits with a checkpoint, and this audit.
        warnings: sentences that a reader of the report has to know.
    """

    account: str
    database: str
    mode: Mode
    since: datetime | None
    at: datetime
    seconds: float
    entities: int
    messages: int
    open: int
    garbage: int
    rules: tuple[RuleResult, ...]
    reads: tuple[ReadResult, ...]
    pictures: Pictures
    total: int
    findings: tuple[Finding, ...]
    trend: Trend
    warnings: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of documents of all reads."""
        return sum(read.rows for read in self.reads)

    @property
    def charge(self) -> float | None:
        """Request units of all reads; None if the service reported none."""
        charges = [read.charge for read in self.reads if read.charge is not None]
        return sum(charges) if charges else None

    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`: all but the findings, which have files of their own, and the charts."""
        summary = asdict(self)
        del summary["findings"], summary["pictures"], summary["trend"]
        found = {rule.name: rule.findings for rule in self.rules if rule.skipped is None}
        return summary | {"rows": self.rows, "charge": self.charge, "found": found, "worst": dict(self.pictures.worst)}
