"""The rule about what is owed for too long: outputs that nobody proves to be sent, and kept messages that are overdue."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.records.library import KEPT_FOR
from spark_jobs.transforms.facts import Facts, Thresholds, before, kept_messages, second
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import unpaid

_RULE: Final = "owing_too_long"
_LATE: Final = timedelta(days=1)
"""Time by which the store may be late to delete a book."""


def owing_too_long(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Outputs owed for longer than the threshold, by an entry that no book pays, or by a record; and kept messages as long
    overdue. An entry whose book is gone is a finding as soon as it is older than the grace: no sweeper looks for it. Once the
    store may have deleted the book in order, it is none: the sweeper searched long ago for what the book did not prove.

    A process proves within minutes what it has sent, and the sweeper finishes after a crash. Entities are read before books, so
    what was sent meanwhile is paid. Grace: the threshold, by the time of the attempt, or since the message was due. It cannot
    see outputs that a stream has not published yet, unless the message came by a request: a stream keeps no such mark.
    """
    return (
        _entries(facts, thresholds, now)
        .unionByName(_records(facts, thresholds, now))
        .unionByName(_overdue(facts, thresholds, now))
    )


def _entries(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    gone = F.col("used").isNull()
    limit = F.when(gone, before(now, thresholds.grace)).otherwise(before(now, thresholds.owed_after))
    over = gone & (second("at") <= before(now, KEPT_FOR + _LATE))
    owed = unpaid(facts).where((second("at") <= limit) & ~over)
    return findings(
        facts.without_unreadable(owed),
        _RULE,
        subject=F.col("tx"),
        detail=sentence(
            "The commit owes %d outputs of the message with the hash %s: %s.", "outputs", "cause", _in_book()
        ),
        advice="Look whether the sweeper runs, and whether their destinations are still configured and take messages. They are "
        "also published when a copy of the message is delivered. Where the book is gone, sweep all entities of the type once.",
        since="at",
    )


def _in_book() -> Column:
    """What the book says of the number of a transaction."""
    return (
        F.when(F.col("used").isNull(), F.lit("the book of its process is gone"))
        .when(F.array_contains("stuck", F.col("number")), F.lit("its number is stuck in the book of its process"))
        .when(F.array_contains("open", F.col("number")), F.lit("its number is open in the book of its process"))
        .otherwise(F.lit("the book of its process does not go as far"))
    )


def _records(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    owed = facts.transactions.where(F.col("owes") & (second("at") <= before(now, thresholds.owed_after)))
    return findings(
        facts.without_unreadable(owed),
        _RULE,
        message="message",
        versions=F.array("version"),
        subject=F.col("tx"),
        detail=sentence("The commit owes %d outputs.", F.size("outputs")),
        advice="Look whether the sweeper runs, and whether their destinations are still configured and take messages. They are "
        "also published when the message, or the next one of the entity, is delivered.",
        since="at",
    )


def _overdue(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    overdue = kept_messages(facts).where(second("due") <= before(now, thresholds.owed_after))
    return findings(
        facts.without_unreadable(overdue),
        _RULE,
        subject=F.col("id"),
        detail=F.lit("The message was to be sent at a time that is over, and the entity still keeps it."),
        advice="Look whether the sweeper runs, what its log says of the entity, and whether the message's destination is "
        "still configured.",
        since="due",
    )
