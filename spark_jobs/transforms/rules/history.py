"""Rules about the message and transaction of each version. Commits are final, so these rules need no grace."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.marks import hash_in, instant_of, time_in
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import marked


def at_most_one_state_change(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """One message with two marks in the ledger and the pages of an entity; at two versions, or in two transactions; or at two
    places of the channels of a read model.

    A mark leaves its ledger with the commit that names its page, and a page counts only if the ledger names it, or a later one:
    so no mark is in both. It cannot see what neither mark nor record tells of.
    """
    del thresholds, now
    marks = (
        marked(facts)
        .groupBy("entity", hash_in(F.col("mark")).alias("hash"))
        .agg(F.count(F.lit(1)).alias("times"), F.min(time_in(F.col("mark"))).alias("since"))
    )
    placed = facts.numbered.where(F.col("message").isNotNull()).groupBy("entity", "message")
    places = placed.agg(
        F.sort_array(F.collect_set(sentence("%s %d", "channel", "number"))).alias("places"), F.min("at").alias("since")
    )
    commits = facts.transactions.groupBy("entity", "message").agg(
        F.sort_array(F.collect_set("version")).alias("made"),
        F.sort_array(F.collect_set("tx")).alias("by"),
        F.min("at").alias("since"),
    )
    twice = commits.where((F.size("made") > 1) | (F.size("by") > 1))
    advice = (
        "Correct the entity's state by hand: the message changed it twice. Then find out why the first record was not found: "
        "was it deleted, was the library's container exchanged, was the entity restored from a backup?"
    )
    by_marks = findings(
        marks.where(F.col("times") > 1),
        "at_most_one_state_change",
        subject=F.col("hash"),
        detail=sentence("The message with the hash %s changed the entity %d times.", "hash", "times"),
        advice=advice,
        since=instant_of(F.col("since")),
    )
    return by_marks.unionByName(
        findings(
            twice,
            "at_most_one_state_change",
            message="message",
            versions=F.col("made"),
            detail=sentence(
                "The message changed the entity in %d transactions: %s.", F.size("by"), F.concat_ws(", ", "by")
            ),
            advice=advice,
            since="since",
        )
    ).unionByName(
        findings(
            places.where(F.size("places") > 1),
            "at_most_one_state_change",
            message="message",
            detail=sentence(
                "The message was received at %d places of channels: %s.", F.size("places"), F.concat_ws(", ", "places")
            ),
            advice=advice,
            since="since",
        )
    )


def two_owners(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Two messages, or two transactions, claim one version of an entity.

    It cannot see an owner without record. A mark does not name its version.
    """
    del thresholds, now
    commits = facts.transactions.groupBy("entity", "version").agg(
        F.sort_array(F.collect_set("message")).alias("messages"),
        F.sort_array(F.collect_set("tx")).alias("by"),
        F.min("at").alias("since"),
    )
    several = commits.where((F.size("messages") > 1) | (F.size("by") > 1))
    return findings(
        several,
        "two_owners",
        message=F.col("messages")[0],
        versions=F.array("version"),
        detail=sentence(
            "The messages %s claim the version, in the transactions %s.",
            F.concat_ws(", ", "messages"),
            F.concat_ws(", ", "by"),
        ),
        advice="One of the changes was overwritten: correct the entity's state by hand. Then find out which program writes the "
        "entity without the library, or whether it was deleted by hand, or restored from a backup.",
        since="since",
    )
