"""The rule about what was removed although a copy could still arrive."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, run, said
from spark_jobs.transforms.rules.holes import kept_versions
from spark_jobs.transforms.rules.sightings import unexplained

_ADVICE = (
    "A copy of its message would be applied again. Set the retention of clean-up, and of Outbox.embedded(), to no less than "
    "the one of this audit; look whether the library's container has a time to live; restore what is missing from a backup."
)


def dedup_expired_early(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Versions missing below the oldest one kept, though younger than the retention.

    Older ones are missing as they should after clean-up, so the age of the missing ones has to be proven, in one of three ways:

    - The application went live within the retention (`live_since`): then nothing is older.
    - An earlier audit within the retention saw the entity at a version (`Facts.seen`): what follows it is younger, by a horizon
      at most for the age of that audit's view.
    - A consumer saw an output of the entity, and nothing kept of the entity lists it. It was committed no longer before than
      an output may be owed now, wait in a queue, be parked and be requeued; if that is within the retention, the record is
      missing too early. Streams send old outputs again, so for them this proves nothing. How long outputs were owed in the
      past is not known; the longest owed now stands for it.

    It cannot see what was removed early where none of the three holds, nor holes above the oldest version kept: for these see
    `ledger_hole`. Grace: the oldest version kept, or the entity where none is, is older than the grace; likewise what a
    consumer saw.
    """
    return _below_the_oldest(facts, thresholds, now).unionByName(_seen_by_consumers(facts, thresholds, now))


def _below_the_oldest(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    kept = (
        kept_versions(facts)
        .groupBy("entity")
        .agg(F.min("version").alias("oldest"), F.min_by("at", "version").alias("at"))
    )
    written = F.timestamp_seconds("ts")
    entities = facts.entities.where(F.col("protocol") != "resequencer").join(kept, "entity", "left")
    edges = entities.select(
        "entity",
        (F.coalesce(F.col("oldest"), F.col("version") + 1) - 1).alias("last"),
        F.coalesce("at", written).alias("at"),
    )
    young = edges.join(_proven_young(facts, thresholds, now), "entity")
    missing = young.where((F.col("first") <= F.col("last")) & (second("at") <= before(now, thresholds.grace)))
    return findings(
        facts.without_unreadable(missing),
        "dedup_expired_early",
        versions=run(F.col("first"), F.col("last")),
        detail=said(
            "Nothing tells of the versions %d to %d any more, %d in all, though they are younger than the retention.",
            "first",
            "last",
            F.col("last") - F.col("first") + 1,
        ),
        advice=_ADVICE,
        since="at",
    )


def _proven_young(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """By entity the first version that is certainly younger than the retention."""
    since = thresholds.kept_since(now)
    proofs = []
    if thresholds.live_since is not None and thresholds.live_since.timestamp() >= since:
        proofs.append(facts.entities.select("entity", F.lit(1).cast("bigint").alias("first")))
    if facts.seen is not None:
        seen = facts.seen.where(F.col("seen_at") >= since)
        proofs.append(seen.select("entity", (F.col("version") + 1).alias("first")))
    if not proofs:
        return facts.entities.select("entity", F.col("version").alias("first")).where(F.lit(False))
    return reduce(DataFrame.union, proofs).groupBy("entity").agg(F.min("first").alias("first"))


def _seen_by_consumers(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    longest_owed = facts.transactions.where(F.col("owes").isNotNull()).agg(
        F.coalesce(F.lit(now) - F.min(second("at")), F.lit(0)).alias("owed")
    )
    unknown = unexplained(facts, thresholds, now).where((F.col("protocol") != "stream") & ~F.col("ghost"))
    arrival = thresholds.delivery_limit + thresholds.requeue_limit
    committed = second("at") - int(arrival.total_seconds()) - _not_negative(F.col("owed"))
    early = unknown.crossJoin(F.broadcast(longest_owed)).where(committed >= thresholds.kept_since(now))
    return findings(
        early,
        "dedup_expired_early",
        message="message",
        subject=F.col("consumer"),
        detail=said(
            "%s saw the message, and nothing tells of the commit that sent it, though it is too young.", "consumer"
        ),
        advice=_ADVICE,
        since="at",
    )


def _not_negative(column: Column) -> Column:
    return F.greatest(column, F.lit(0))
