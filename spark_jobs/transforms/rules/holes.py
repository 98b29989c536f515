"""Rules about versions and numbers without a record."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, run, sentence
from spark_jobs.transforms.rules.sequences import receptions

_HOLE: Final = "ledger_hole"
RECORDING: Final = ("colocated", "stream")
"""The protocols of which every version has a record, or an entry of a stream."""


def ledger_hole(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A version without record, though an older one proves that clean-up did not delete it.

    Younger and older versions alone prove nothing: a clean-up that was stopped half way leaves an old record, has deleted the
    next one, and keeps the young. So the proof has to come from below:

    - Records and stream entries are written with their commit, so a later one is not older; if an older one is within the
      retention, clean-up could delete neither.
    - Companion records are written again when their outputs are published, so for those with outputs the time of the attempt
      has to be within the retention as well: here alone a process's clock counts, and it can only keep the rule silent.

    Outboxes have no records: for them see `page_missing`.

    Read models keep entries only while they owe. For them the rule finds a number below the next one without a document, of its
    message or of its skipping, though an older number has one, which is within the retention both by its last write and by the
    time at which its message came; or though the application is no older than the retention.

    It cannot see a hole below which every version kept is older than the retention, nor one under the oldest version kept: for
    that see `dedup_expired_early`. Grace: the younger version is older than the grace by the time of its attempt, or, for the
    newest, the entity by its last write. One task sorts the versions of an entity, and spills to disk where they are many.
    """
    holes = _holes(facts).where(second("at") <= before(now, thresholds.grace))
    missing = facts.without_unreadable(holes.where(F.col("proof") >= thresholds.kept_since(now)))
    return findings(
        missing,
        _HOLE,
        versions=run(F.col("first"), F.col("last")),
        detail=sentence(
            "The versions %d to %d, %d in all, have no record, though older ones are kept and none may have expired.",
            "first",
            "last",
            F.col("last") - F.col("first") + 1,
        ),
        advice="A copy of their messages would be applied again. Restore the records from a backup; then find out which "
        "program deletes documents of the library, or edits ledgers.",
        since="at",
    ).unionByName(_passed_over(facts, thresholds, now))


def kept_versions(facts: Facts) -> DataFrame:
    """The versions with a record: `entity, version, at, after`, each once."""
    return facts.transactions.groupBy("entity", "version").agg(F.min("at").alias("at"), F.max("after").alias("after"))


def _holes(facts: Facts) -> DataFrame:
    """Runs of versions between two that are kept, or above the newest: `entity, first, last, at, proof`."""
    kept = kept_versions(facts).withColumn("kept", F.col("version"))
    # A mark stands above the newest version, and is no version itself.
    marks = facts.entities.where((F.col("version") > 0) & F.col("protocol").isin(*RECORDING)).select(
        "entity",
        (F.col("version") + 1).alias("version"),
        F.timestamp_seconds("ts").alias("at"),
        _none().alias("after"),
        _none().alias("kept"),
    )
    below = Window.partitionBy("entity").orderBy("version", F.col("kept").isNotNull())
    older = below.rowsBetween(Window.unboundedPreceding, -1)
    edges = kept.unionByName(marks).withColumns(
        {"under": F.max("kept").over(older), "proof": F.max("after").over(older), "last": F.col("version") - 1}
    )
    return edges.withColumn("first", F.col("under") + 1).where(F.col("first") <= F.col("last"))


def _none() -> Column:
    return F.lit(None).cast("bigint")


def _passed_over(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Numbers below the next one without a document."""
    since = thresholds.kept_since(now)
    all_kept = thresholds.live_since is not None and thresholds.live_since.timestamp() >= since
    received = receptions(facts).select("entity", "channel", "source", "next", "ts")
    known = facts.numbered.groupBy("entity", "channel", "number").agg(
        F.min("at").alias("at"), F.max(F.least("ts", second("at"))).alias("after")
    )
    below = known.join(received.drop("ts"), ["entity", "channel"]).where(F.col("number") < F.col("next")).drop("next")
    # The next number stands above the newest; it has no document yet.
    edges = below.unionByName(
        received.select(
            "entity",
            "channel",
            "source",
            F.col("next").alias("number"),
            F.timestamp_seconds("ts").alias("at"),
            F.lit(None).cast("bigint").alias("after"),
        )
    )
    older = Window.partitionBy("entity", "channel").orderBy("number").rowsBetween(Window.unboundedPreceding, -1)
    under = F.coalesce(F.max("number").over(older), F.lit(0) if all_kept else F.lit(None))
    holes = edges.withColumns({"first": under + 1, "proof": F.max("after").over(older), "last": F.col("number") - 1})
    holes = holes.where((F.col("first") <= F.col("last")) & (second("at") <= before(now, thresholds.grace)))
    proven = F.lit(all_kept) | (F.col("proof") >= since)
    return findings(
        facts.without_unreadable(holes.where(proven)),
        _HOLE,
        subject=sentence("%s %d-%d", "channel", "first", "last"),
        detail=sentence(
            "Numbers %d to %d in channel %s of %s were passed over: they have no document.",
            "first",
            "last",
            "channel",
            "source",
        ),
        advice="The read model may lack their messages: compare it, or rebuild it under a new key. Then find out which program "
        "deletes documents of the library, or edits ledgers.",
        since="at",
    )
