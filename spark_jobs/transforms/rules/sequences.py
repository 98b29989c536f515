"""Rules about read models that receive channels."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, sentence

_GAP = "sequence_gap"
_STUCK = "stuck_reader"


def sequence_gap(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A read model waits for a number for longer than the threshold; numbers were skipped; or two messages have one number.

    Skipped numbers are listed as long as their documents are kept. A number whose message came too late looks like any other.
    It cannot see a gap above which no message is held: for the last message, if it is lost, see `output_lost`; nor a number
    that was passed over without a document: see `ledger_hole`. Grace: the threshold, by the time at which the gap was noted.
    One task sorts the skipped numbers of one channel.
    """
    return _waiting(facts, thresholds, now).unionByName(_skipped(facts)).unionByName(_shared(facts))


def stuck_reader(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A read model holds the next message for longer than the threshold without handling it; or has lost a held message.

    Its handler raises, or no message came after a crash; or, where sources are merged by time, none came after the longest
    wait. Documents are read after their read model, so a message that was released meanwhile is no longer held.
    Grace: the threshold, by the time at which the message came; for a lost message the grace, by the last write of the read
    model or the time at which the gap was noted.
    """
    received = receptions(facts)
    held = facts.numbered.where("held").select("entity", "channel", F.col("number").alias("next"), "message", "at")
    waiting = received.join(held, ["entity", "channel", "next"]).where(_holds("next"))
    stuck = findings(
        waiting.where(second("at") <= before(now, thresholds.gap_after)),
        _STUCK,
        message="message",
        subject=_place("next"),
        detail=sentence(
            "The read model holds number %d in channel %s of %s and does not handle it; held: %s; error: %s.",
            "next",
            "channel",
            "source",
            _ranges(),
            _error(),
        ),
        advice="Correct the handler's error (see the logs, too); then tend the read model, or wait for its next message.",
        since="at",
    )
    settled = F.least("ts", F.coalesce(second("gap_since"), F.col("ts"))) <= before(now, thresholds.grace)
    numbers = received.where(settled).withColumn("range", F.explode("held"))
    numbers = numbers.withColumn("number", F.explode(F.sequence(F.col("range")[0], F.col("range")[1])))
    lost = numbers.join(
        facts.numbered.select("entity", "channel", "number"), ["entity", "channel", "number"], "left_anti"
    )
    return stuck.unionByName(
        findings(
            facts.without_unreadable(lost),
            _STUCK,
            subject=_place("number"),
            detail=sentence(
                "The ledger holds number %d in channel %s of %s, and its document is gone.",
                "number",
                "channel",
                "source",
            ),
            advice="Restore the document from a backup, or rebuild the read model under a new key.",
            since=F.timestamp_seconds("ts"),
        )
    )


def receptions(facts: Facts) -> DataFrame:
    rows = facts.entities.select("entity", "ts", F.explode("receptions").alias("reception"))
    return rows.select("entity", "ts", "reception.*")


def _place(number: str) -> Column:
    return sentence("%s %d", "channel", number)


def _since() -> Column:
    return F.min("at").alias("since")


def _holds(number: str) -> Column:
    return F.exists("held", lambda run: (run[0] <= F.col(number)) & (F.col(number) <= run[1]))


def _ranges() -> Column:
    return F.concat_ws(", ", F.transform("held", lambda run: F.concat_ws("-", run.cast("array<string>"))))


def _error() -> Column:
    return F.coalesce("failing", F.lit("none noted"))


def _waiting(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    gaps = receptions(facts).where(second("gap_since") <= before(now, thresholds.gap_after))
    return findings(
        gaps,
        _GAP,
        subject=_place("next"),
        detail=sentence("Number %d in channel %s of %s is missing; held: %s.", "next", "channel", "source", _ranges()),
        advice="Look for the message in the queue, its poison queue and among the parked ones. If it is lost, replay the "
        "source's stream; or let the read model skip it, or rebuild it under a new key.",
        since="gap_since",
    )


def _skipped(facts: Facts) -> DataFrame:
    """Runs of skipped numbers."""
    skipped = facts.numbered.where(F.col("message").isNull() & ~F.col("held"))
    rank = F.row_number().over(Window.partitionBy("entity", "channel").orderBy("number"))
    runs = skipped.withColumn("run", F.col("number") - rank).groupBy("entity", "channel", "run")
    found = runs.agg(
        F.min("number").alias("first"), F.max("number").alias("last"), F.min("source").alias("source"), _since()
    )
    return findings(
        found,
        _GAP,
        subject=sentence("%s %d-%d", "channel", "first", "last"),
        detail=sentence(
            "Numbers %d to %d in channel %s of %s were skipped: their messages had not come in time.",
            "first",
            "last",
            "channel",
            "source",
        ),
        advice="The read model lacks their messages. If that matters, rebuild it under a new key.",
        since="since",
    )


def _shared(facts: Facts) -> DataFrame:
    places = facts.numbered.where(F.col("message").isNotNull()).groupBy("entity", "channel", "number")
    messages = F.sort_array(F.collect_set("message")).alias("messages")
    shared = places.agg(messages, F.min("source").alias("source"), _since())
    return findings(
        shared.where(F.size("messages") > 1),
        _GAP,
        message=F.col("messages")[0],
        subject=_place("number"),
        detail=sentence(
            "Number %d in channel %s of %s was received from %d messages.",
            "number",
            "channel",
            "source",
            F.size("messages"),
        ),
        advice="Rebuild the read model under a new key. Then find out which program edits documents.",
        since="since",
    )
