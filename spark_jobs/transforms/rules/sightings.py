"""Messages that consumers saw, and the outputs that entities list."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from spark_jobs.spark.frames import any_of, none
from spark_jobs.transforms.facts import Facts, Thresholds, before, second

UNEXPLAINED: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("entity", "message", "consumer")),
        StructField("at", TimestampType()),
        *(StructField(name, BooleanType()) for name in ("numbered", "ghost")),
    ]
)
"""What `unexplained` returns."""


def outputs(facts: Facts) -> DataFrame:
    """Outputs of transactions: the columns of `transactions`, and `output` (id, destination, place)."""
    return facts.transactions.withColumn("output", F.explode("outputs")).drop("outputs")


def prefix_of(message: str) -> Column:
    """The beginning of the key of a message, which names its source."""
    return F.concat(F.substring_index(message, "/", 1), F.lit("/"))


def sightings(facts: Facts) -> DataFrame:
    """Messages of senders of this application that entities handled or hold, and perhaps of others.

    Returns:
        `consumer, message, at, sender` (beginning of its key), `output` (its id), and `numbered`: whether it may have been
        received by its number, at any age.
    """
    # By type first: most messages may come from elsewhere, and there are few types.
    types = F.broadcast(facts.entities.select(_type_in("prefix").alias("type")).distinct())

    def of_senders(frame: DataFrame) -> DataFrame:
        own = frame.withColumn("type", _type_in("message")).join(types, "type", "left_semi")
        return own.select("entity", "message", "at")

    receivers = facts.channels.select("entity", F.lit(True).alias("receives")).distinct()
    by_number = F.coalesce("receives", F.lit(False)).alias("numbered")  # Perhaps: its entry does not say.
    handled = of_senders(facts.transactions).join(receivers, "entity", "left")
    handled = handled.select("entity", "message", "at", by_number)
    numbered = of_senders(facts.numbered.where(F.col("message").isNotNull())).withColumn("numbered", F.lit(True))
    seen = (
        handled.unionByName(numbered)
        .groupBy("entity", "message")
        .agg(F.min("at").alias("at"), F.bool_or("numbered").alias("numbered"))
    )
    return seen.select(
        F.col("entity").alias("consumer"),
        "message",
        "at",
        "numbered",
        prefix_of("message").alias("sender"),
        F.substring_index("message", "/", -1).alias("output"),
    )


def _type_in(key: str) -> Column:
    """The type of the sender in the key of a message, as it is written there; anything for a message of no entity."""
    return F.substring_index(key, "%2F", 1)


def unexplained(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Messages of an entity that consumers saw, though no entry or record of the entity lists them.

    Read models keep no transactions, so their outputs are not judged; nor are entities with unreadable documents, nor messages
    that came within the grace: their commit may be younger than the read of the sender.

    Returns:
        `entity` (the sender), `message, consumer, at, numbered`, and `ghost`: whether its commit would certainly be kept.
    """
    return facts.once(_unexplained, thresholds, now)


def _unexplained(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    senders = facts.entities.where(F.col("protocol") != "resequencer").select("entity", "prefix")
    senders = facts.without_unreadable(senders)
    settled = sightings(facts).where(second("at") <= before(now, thresholds.grace))
    seen = any_of(settled.join(senders, F.col("sender") == F.col("prefix")))
    if seen is None:
        return none(facts.entities.sparkSession, UNEXPLAINED)
    listed = outputs(facts).select("entity", F.col("output.id").alias("output"))
    unlisted = any_of(seen.join(listed.distinct(), ["entity", "output"], "left_anti"))
    if unlisted is None:
        return none(facts.entities.sparkSession, UNEXPLAINED)
    return unlisted.join(_covered(facts), "entity", "left").select(
        "entity", "message", "consumer", "at", "numbered", F.coalesce(_ghost(thresholds), F.lit(False)).alias("ghost")
    )


def _ghost(thresholds: Thresholds) -> Column:
    """Whether the commit would be kept: all commits are, or all since the earliest time that it can have.

    A consumer that refuses old messages bounds that time. Numbers are processed at any age.
    """
    longest = thresholds.arrival + thresholds.horizon
    since = second("at") - int(longest.total_seconds()) >= second("covered_at")
    return (F.col("covered_from") == 1) | (~F.col("numbered") & since)


def _covered(facts: Facts) -> DataFrame:
    """By entity the version from which on all versions are kept, and the time of its commit."""
    newest = facts.entities.select("entity", F.col("version").alias("newest"))
    kept = facts.transactions.groupBy("entity", "version").agg(F.min("at").alias("at")).join(newest, "entity")
    from_above = Window.partitionBy("entity").orderBy(F.col("version").desc())
    known = kept.where(F.col("version") <= F.col("newest")).withColumn("rank", F.row_number().over(from_above))
    unbroken = known.where(F.col("version") == F.col("newest") - F.col("rank") + 1)
    return unbroken.groupBy("entity").agg(
        F.min("version").alias("covered_from"), F.min_by("at", "version").alias("covered_at")
    )
