"""Rules about versions that nothing tells of."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, run, said
from spark_jobs.transforms.rules.sequences import receptions

_HOLE = "ledger_hole"


def ledger_hole(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A version that neither entry nor record explains, though an older one proves that clean-up did not take it.

    That younger and older ones are kept is no proof: clean-up that was stopped half way leaves an old record, has taken the
    next one, and keeps the young. So the proof has to come from below:

    - Records are written in the order of versions, before the commit that drops their entries; an attempt with an old view
      may write some anew, but it lives no longer than the horizon. So the record of the missing version is at most a horizon
      older than that of an older version; if that is within the retention, clean-up could not take either.
    - Stream entries are written with their commit, so a later one is not older. Records beside the entity are written again
      when their outputs are published, so of those that have outputs the time of the attempt has to be within the retention
      as well: here alone a process's clock counts, and it can only keep the rule silent.
    - Entries leave a ledger all together, so what follows an entry cannot have left before it. `embedded()` trims entries by
      `seen`, those that owe excepted; `seen` never falls from one entry to the next, so one that is not seen, or within the
      retention, proves that nothing younger was trimmed.

    Of an outbox the newest version is always an entry, so there a missing one needs no proof. Read models keep entries only
    while they owe; of them a number below the next one is found that has no document, neither of its message nor that it was
    skipped, though an older one has, which is within the retention both by its last write and by the time at which its message
    came; or though the application is no older than the retention.

    It cannot see a hole below which everything kept is older than the retention, nor one under the oldest version kept: for
    that see `dedup_expired_early`. Grace: the younger version is older than the grace by the time of its attempt, or, for the
    newest, the entity by its last write. One task sorts the versions of an entity, and spills to disk where they are many.
    """
    holes = _holes(facts).where(second("at") <= before(now, thresholds.grace))
    proven = F.col("sure") | (F.col("proof") >= thresholds.kept_since(now))
    missing = facts.without_unreadable(holes.where(proven))
    return findings(
        missing,
        _HOLE,
        versions=run(F.col("first"), F.col("last")),
        detail=said(
            "Nothing tells of the versions %d to %d, %d in all, though older ones are kept and none may have expired.",
            "first",
            "last",
            F.col("last") - F.col("first") + 1,
        ),
        advice="A copy of their messages would be applied again. Restore the records from a backup; then find out who deletes "
        "documents of the library, or edits ledgers, by hand.",
        since="at",
    ).unionByName(_passed_over(facts, thresholds, now))


def kept_versions(facts: Facts) -> DataFrame:
    """The versions that something tells of: `entity, version, at, after`, each once. Without those of read models."""
    readers = facts.entities.where(F.col("protocol") == "resequencer").select("entity")
    told = facts.transactions.join(readers, "entity", "left_anti")
    return told.groupBy("entity", "version").agg(F.min("at").alias("at"), F.max("after").alias("after"))


def _holes(facts: Facts) -> DataFrame:
    """Runs of versions between two that are kept, or above the newest: `entity, first, last, at, proof, sure`."""
    kept = kept_versions(facts).withColumns({"kept": F.col("version"), "sure": F.lit(False)})
    # What stands above the newest version is a mark, which tells of no version itself.
    marks = facts.entities.where((F.col("protocol") != "resequencer") & (F.col("version") > 0)).select(
        "entity",
        (F.col("version") + 1).alias("version"),
        F.timestamp_seconds("ts").alias("at"),
        _none().alias("after"),
        _none().alias("kept"),
        (F.col("protocol") == "outbox").alias("sure"),
    )
    below = Window.partitionBy("entity").orderBy("version", F.col("kept").isNotNull())
    older = below.rowsBetween(Window.unboundedPreceding, -1)
    edges = kept.unionByName(marks).withColumns(
        {"under": F.max("kept").over(older), "proof": F.max("after").over(older), "last": F.col("version") - 1}
    )
    under = F.when(F.col("sure"), F.coalesce("under", F.lit(0))).otherwise(F.col("under"))
    return edges.withColumn("first", under + 1).where(F.col("first") <= F.col("last"))


def _none() -> Column:
    return F.lit(None).cast("bigint")


def _passed_over(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Numbers below the next one that no document tells of."""
    since = thresholds.kept_since(now)
    all_kept = thresholds.live_since is not None and thresholds.live_since.timestamp() >= since
    received = receptions(facts).select("entity", "source", "next", "ts")
    told = facts.numbered.groupBy("entity", "source", "number").agg(
        F.min("at").alias("at"), F.max(F.least("ts", second("at"))).alias("after")
    )
    below = told.join(received.drop("ts"), ["entity", "source"]).where(F.col("number") < F.col("next")).drop("next")
    # Above the newest stands the next one, of which nothing is told yet.
    edges = below.unionByName(
        received.select(
            "entity",
            "source",
            F.col("next").alias("number"),
            F.timestamp_seconds("ts").alias("at"),
            F.lit(None).cast("bigint").alias("after"),
        )
    )
    older = Window.partitionBy("entity", "source").orderBy("number").rowsBetween(Window.unboundedPreceding, -1)
    under = F.coalesce(F.max("number").over(older), F.lit(0) if all_kept else F.lit(None))
    holes = edges.withColumns({"first": under + 1, "proof": F.max("after").over(older), "last": F.col("number") - 1})
    holes = holes.where((F.col("first") <= F.col("last")) & (second("at") <= before(now, thresholds.grace)))
    proven = F.lit(all_kept) | (F.col("proof") >= since)
    return findings(
        facts.without_unreadable(holes.where(proven)),
        _HOLE,
        subject=said("%s %d-%d", "source", "first", "last"),
        detail=said("Numbers %d to %d of %s were passed over: nothing tells of them.", "first", "last", "source"),
        advice="The read model may lack what they said: compare it, or rebuild it under a new key. Then find out who deletes "
        "documents of the library, or edits ledgers, by hand.",
        since="at",
    )
