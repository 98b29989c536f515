"""The rules of the audit, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.rules.channels import channel_ahead, count_mismatch, number_missing
from spark_jobs.transforms.rules.documents import document_lost
from spark_jobs.transforms.rules.expiry import dedup_expired_early
from spark_jobs.transforms.rules.history import at_most_one_state_change, two_owners
from spark_jobs.transforms.rules.holes import ledger_hole
from spark_jobs.transforms.rules.outputs import consistent_state_and_output, output_lost, output_owed
from spark_jobs.transforms.rules.sequences import sequence_gap, stuck_reader
from spark_jobs.transforms.rules.staging import orphan_staged, staged_missing
from spark_jobs.transforms.rules.unreadable import unreadable

Judge = Callable[[Facts, Thresholds, int], DataFrame]
"""A rule's function: facts, thresholds, and the present in seconds by the service's clock; returns `schemas.FINDING`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit.

    Attributes:
        judge: what finds.
        incremental: whether it may be judged by the documents that changed, if all documents of the suspects are read for the
            second look. The others ask what is absent, which a change feed does not show: they run in full audits only.
        grace: what it waits for before it accuses.
    """

    judge: Judge
    incremental: bool
    grace: str

    @property
    def name(self) -> str:
        """Of the rule, as findings have it."""
        return self.judge.__name__


ALL: Final = (
    Rule(at_most_one_state_change, True, "none: a commit is a fact"),
    Rule(two_owners, True, "none: a commit is a fact"),
    Rule(ledger_hole, False, "grace, by the time of the attempt of what is younger"),
    Rule(
        document_lost, False, "grace, by the service's time of writing what proves the commit, or of an earlier audit"
    ),
    Rule(dedup_expired_early, False, "grace, by the time of the oldest attempt that is kept"),
    Rule(consistent_state_and_output, False, "grace, by the time at which a consumer's message came; else none"),
    Rule(output_owed, True, "owed_after, by the time of the attempt"),
    Rule(output_lost, False, "lost_after, by the time of the attempt"),
    Rule(number_missing, False, "lost_after, by the time of what is above it, or of its source's last write"),
    Rule(channel_ahead, False, "grace, by the service's time of writing what was received"),
    Rule(count_mismatch, False, "grace, by the entity's last write"),
    Rule(orphan_staged, False, "garbage_after, by the service's time of writing"),
    Rule(staged_missing, False, "grace, by the time of the attempt"),
    Rule(sequence_gap, True, "gap_after, by the time at which the gap was noted"),
    Rule(stuck_reader, False, "gap_after, by the time at which the message came; grace for what is lost"),
    Rule(unreadable, True, "none: documents are written whole"),
)
