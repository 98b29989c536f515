"""The rule about what was removed although a copy could still arrive."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, run, said
from spark_jobs.transforms.rules.holes import kept_versions
from spark_jobs.transforms.rules.sightings import unexplained

_ADVICE = (
    "A copy of its message would be applied again. Look whether the library's container has a time to live, and whether "
    "anything but clean-up deletes documents there; restore what is missing from a backup."
)


def dedup_expired_early(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Versions missing below the oldest one kept, though younger than the retention.

    Older ones are missing as they should after clean-up, so the age of the missing ones has to be proven, in one of three ways:

    - The application went live within the retention (`live_since`): then nothing is older.
    - An earlier audit within the retention saw the entity at a version (`Facts.seen`): what follows it is younger, by a horizon
      at most for the age of that audit's view.
    - A consumer saw an output of the entity, and nothing kept of the entity lists it. Consumers refuse what is too old to be
      judged, so it was committed no longer before than that; if that is within the retention, the record is missing too early.
      Read models take their numbers at any age, so for them this proves nothing.

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
    unknown = unexplained(facts, thresholds, now).where(~F.col("numbered") & ~F.col("ghost"))
    committed = second("at") - int(thresholds.arrival.total_seconds())
    early = unknown.where(committed >= thresholds.kept_since(now))
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
