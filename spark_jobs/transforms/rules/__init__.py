"""The rules of the audit, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame

from spark_jobs.report.contents import Severity
from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.rules.answers import one_answer, reply_awaited, request_left
from spark_jobs.transforms.rules.documents import document_lost
from spark_jobs.transforms.rules.expiry import below_the_oldest, dedup_expired_early, seen_by_consumers
from spark_jobs.transforms.rules.history import at_most_one_state_change, two_owners
from spark_jobs.transforms.rules.holes import ledger_hole
from spark_jobs.transforms.rules.outputs import consistent_state_and_output, output_lost
from spark_jobs.transforms.rules.owing import owing_too_long
from spark_jobs.transforms.rules.pages import history_taken_back, page_missing
from spark_jobs.transforms.rules.sequences import sequence_gap, stuck_reader
from spark_jobs.transforms.rules.staging import orphan_staged, staged_missing
from spark_jobs.transforms.rules.unreadable import unreadable
from spark_jobs.transforms.rules.unsent import output_unknown

Judge = Callable[[Facts, Thresholds, int], DataFrame]
"""A rule's function: facts, thresholds, and the present in seconds by the service's clock; returns `schemas.FINDING`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit.

    Attributes:
        judge: what finds.
        title: what it finds, for people.
        severity: what that means for the application.
        incremental: whether it may be judged by the documents that changed, if all documents of the suspects are read for the
            second look. The others ask what is absent, which a change feed does not show: they run in full audits only.
        grace: what it waits for before it accuses.
        alone: the part that judges each entity by its own documents: only those that `screen.screened` doubts; None for none.
        across: the parts that compare entities, each with the facts without any of which it finds nothing.
    """

    judge: Judge
    title: str
    severity: Severity
    incremental: bool
    grace: str
    alone: Judge | None = None
    across: Mapping[Judge, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the rule, as findings have it."""
        return self.judge.__name__


def _alone(judge: Judge, title: str, severity: Severity, incremental: bool, grace: str) -> Rule:
    return Rule(judge, title, severity, incremental, grace, alone=judge)


def _across(judge: Judge, title: str, severity: Severity, grace: str, *needs: str) -> Rule:
    return Rule(judge, title, severity, False, grace, across={judge: needs})


_RECORDS: Final = ("transactions", "numbered")

ALL: Final = (
    _alone(
        at_most_one_state_change, "A message changed an entity twice", Severity.WRONG, True, "none: a commit is a fact"
    ),
    _alone(one_answer, "A request has two answers", Severity.WRONG, True, "none: a commit is a fact"),
    _alone(two_owners, "Two changes claim one version", Severity.WRONG, True, "none: a commit is a fact"),
    _alone(
        ledger_hole,
        "A processed message has no record",
        Severity.WRONG,
        False,
        "grace, by the time of the attempt of what is younger",
    ),
    _alone(
        page_missing,
        "Marks of processed messages are gone too early",
        Severity.WRONG,
        False,
        "none: a page is written before the commit that names it",
    ),
    _alone(
        history_taken_back,
        "An entity was put back to an earlier version",
        Severity.WRONG,
        True,
        "grace, by the service's time of writing the page",
    ),
    _alone(
        document_lost,
        "The document of an entity is gone, or an old copy",
        Severity.WRONG,
        False,
        "grace, by the service's time of writing what proves the commit, or of an earlier audit",
    ),
    Rule(
        dedup_expired_early,
        "Records were deleted too early",
        Severity.WRONG,
        False,
        "grace, by the time of the oldest attempt that is kept",
        alone=below_the_oldest,
        across={seen_by_consumers: _RECORDS},
    ),
    _alone(
        consistent_state_and_output,
        "Records differ in what a commit sent",
        Severity.WRONG,
        False,
        "none: a commit is a fact",
    ),
    _across(
        output_unknown,
        "A message came that its sender has not sent",
        Severity.WRONG,
        "grace, by the service's time of writing what was received, or by the time at which it came",
        "entities",
    ),
    _alone(
        owing_too_long,
        "Outputs are not sent yet",
        Severity.WATCH,
        True,
        "owed_after, by the time of the attempt",
    ),
    _across(
        output_lost,
        "An output did not arrive",
        Severity.LOST,
        "lost_after, by the service's time of writing the mark of its cause, or by the time of the attempt",
        "entities",
    ),
    _alone(
        reply_awaited,
        "A call to another service was never answered",
        Severity.LOST,
        False,
        "awaited_after, by the service's time of writing the mark of what made the call",
    ),
    _alone(
        orphan_staged,
        "Messages that nobody keeps were not cleaned up",
        Severity.GARBAGE,
        False,
        "garbage_after, by the service's time of writing",
    ),
    _alone(
        request_left,
        "A request was opened and not closed",
        Severity.GARBAGE,
        False,
        "left_after, by the service's time of writing",
    ),
    _alone(staged_missing, "A kept message is gone", Severity.LOST, False, "grace, by the last write of the entity"),
    _alone(
        sequence_gap,
        "A read model waits for a message, or has skipped one",
        Severity.WATCH,
        True,
        "gap_after, by the time at which the gap was noted",
    ),
    _alone(
        stuck_reader,
        "A read model does not handle its next message",
        Severity.WATCH,
        False,
        "gap_after, by the time at which the message came; grace for what is lost",
    ),
    _alone(unreadable, "A document cannot be read", Severity.WRONG, True, "none: documents are written whole"),
)
