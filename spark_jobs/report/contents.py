"""What a report tells, as plain values: made by the audit, written as `summary.json`, shown as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Literal

Mode = Literal["full", "incremental"]

Counted = tuple[tuple[str, int], ...]
"""What is counted, and how often there is one, in the order in which it is shown."""

Growing = tuple[tuple[datetime, int], ...]
"""Beginnings of spans of time that are equally long, ascending, and how many fall into each. Empty spans may be left out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. The columns are those of `schemas.FINDING`."""

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
        """From a row of `schemas.FINDING`, whose times are in UTC without saying so."""
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
class RuleTold:
    """What became of a rule.

    Attributes:
        name: of the rule.
        grace: how old something has to be before the rule judges it, in words.
        skipped: why it did not run; None if it did.
        suspects: what it found at the first look.
        findings: what the second look found again.
    """

    name: str
    grace: str
    skipped: str | None
    suspects: int
    findings: int


@dataclass(frozen=True, slots=True)
class ReadTold:
    """What was read of a container.

    Attributes:
        container: which.
        purpose: "first look", "second look"…
        rows: how many documents.
        charge: in request units; None if the service did not say.
        seconds: how long it took.
    """

    container: str
    purpose: str
    rows: int
    charge: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Pictures:
    """What the charts show.

    Attributes:
        backlog: transactions that owe outputs, by how long they have, the youngest first.
        span: seconds that each point of `commits` and `growth` stands for.
        commits: transactions, by when they were committed.
        growth: documents and entries that tell duplicates from new messages, by kind, by when they were written.
        worst: entities with the most findings, the worst first.
    """

    backlog: Counted = ()
    span: int = 3600
    commits: Growing = ()
    growth: Mapping[str, Growing] | None = None
    worst: Counted = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that a report tells.

    Attributes:
        account: host name of the account.
        database: that was audited.
        mode: whether everything was read, or what changed.
        since: from when on an incremental audit looked for changes; None in a full one.
        at: when it began, by the service's clock.
        seconds: how long it took, without the start of Spark.
        entities, transactions: how many were judged.
        open: how many items wait until they can be judged.
        garbage: how many staged documents of lost attempts clean-up has to take.
        rules, reads, pictures: see there.
        total: how many findings there are.
        findings: the first of them, as many as a page can show.
        warnings: what the reader has to know, a sentence each.
    """

    account: str
    database: str
    mode: Mode
    since: datetime | None
    at: datetime
    seconds: float
    entities: int
    transactions: int
    open: int
    garbage: int
    rules: tuple[RuleTold, ...]
    reads: tuple[ReadTold, ...]
    pictures: Pictures
    total: int
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Documents that were read, at all looks."""
        return sum(read.rows for read in self.reads)

    @property
    def charge(self) -> float | None:
        """Request units of all reads; None if the service did not say."""
        charges = [read.charge for read in self.reads if read.charge is not None]
        return sum(charges) if charges else None

    def summary(self) -> dict[str, Any]:
        """As `summary.json` has it: all but the findings, which have files of their own, and the charts."""
        told = asdict(self)
        del told["findings"], told["pictures"]
        found = {rule.name: rule.findings for rule in self.rules if rule.skipped is None}
        return told | {"rows": self.rows, "charge": self.charge, "found": found, "worst": dict(self.pictures.worst)}
