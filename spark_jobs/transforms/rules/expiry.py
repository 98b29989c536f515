"""The rule about records that were removed although a copy of their message could still arrive."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, run, sentence
from spark_jobs.transforms.rules.holes import RECORDING, kept_versions
from spark_jobs.transforms.rules.unsent import unexplained

_ADVICE = (
    "A copy of its message would be applied again. Look whether the entity's container has a time to live, and whether another "
    "program than clean-up deletes documents of the library there; restore the missing records from a backup."
)


def dedup_expired_early(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Versions missing below the oldest one kept, though younger than the retention.

    After clean-up older versions are missing, too, so the age of the missing ones has to be proven, in one of three ways:

    - The application went live within the retention (`live_since`): then no commit is older.
    - An earlier audit within the retention saw the entity at a version (`Facts.seen`): later versions are younger, but for the
      age of that audit's view, which is a horizon at most.
    - A consumer saw an output of the entity, and no entry or record of the entity lists it. Consumers refuse messages that are
      too old, which bounds the age of the commit; if that age is within the retention, the record was removed too early. Read
      models accept their numbers at any age, so for them this proves nothing.

    Judged are entities that keep records or stream entries; for outboxes see `page_missing`. It cannot see records removed
    early without one of these proofs, nor holes above the oldest version kept: for these see `ledger_hole`. Grace: the oldest
    version kept, or the entity if none is kept, is older than the grace; likewise the message that a consumer saw.
    """
    return below_the_oldest(facts, thresholds, now).unionByName(seen_by_consumers(facts, thresholds, now))


def below_the_oldest(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What an entity's own documents and earlier audits show of `dedup_expired_early`."""
    kept = (
        kept_versions(facts)
        .groupBy("entity")
        .agg(F.min("version").alias("oldest"), F.min_by("at", "version").alias("at"))
    )
    written = F.timestamp_seconds("ts")
    entities = facts.entities.where(F.col("protocol").isin(*RECORDING)).join(kept, "entity", "left")
    edges = entities.select(
        "entity",
        (F.coalesce(F.col("oldest"), F.col("version") + 1) - 1).alias("last"),
        F.coalesce("at", written).alias("at"),
    )
    first = proven_young(facts, thresholds, now).groupBy("entity").agg(F.min("first").alias("first"))
    young = edges.join(first, "entity")
    missing = young.where((F.col("first") <= F.col("last")) & (second("at") <= before(now, thresholds.grace)))
    return findings(
        facts.without_unreadable(missing),
        "dedup_expired_early",
        versions=run(F.col("first"), F.col("last")),
        detail=sentence(
            "No record of the versions %d to %d is left, %d in all, though they are younger than the retention.",
            "first",
            "last",
            F.col("last") - F.col("first") + 1,
        ),
        advice=_ADVICE,
        since="at",
    )


def proven_young(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """`entity, first`: the first version that is proven to be younger than the retention. An entity may have several."""
    since = thresholds.kept_since(now)
    proofs = []
    if thresholds.live_since is not None and thresholds.live_since.timestamp() >= since:
        proofs.append(facts.entities.select("entity", F.lit(1).cast("bigint").alias("first")))
    if facts.seen is not None:
        seen = facts.seen.where(F.col("seen_at") >= since)
        proofs.append(seen.select("entity", (F.col("version") + 1).alias("first")))
    if not proofs:
        return facts.entities.select("entity", F.col("version").alias("first")).where(F.lit(False))
    return reduce(DataFrame.union, proofs)


def seen_by_consumers(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What consumers show of `dedup_expired_early`."""
    unknown = unexplained(facts, thresholds, now).where(F.col("recorded") & ~F.col("numbered") & ~F.col("ghost"))
    committed = second("at") - int(thresholds.arrival.total_seconds())
    early = unknown.where(committed >= thresholds.kept_since(now))
    return findings(
        early,
        "dedup_expired_early",
        message="message",
        subject=F.col("consumer"),
        detail=sentence(
            "%s saw the message, and no record of its commit is left, though the commit is younger than the retention.",
            "consumer",
        ),
        advice=_ADVICE,
        since="at",
    )
