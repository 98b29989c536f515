"""The rule about messages that came, and that the entity in whose name they came has not sent."""

from __future__ import annotations

from functools import reduce
from typing import Final
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from exactlyonce.records.ledger import OUTBOX, written_time
from spark_jobs.spark.frames import any_of, by_row, none
from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.marks import hash_in, hash_of, instant_of, marks_in, output_id, outputs_of
from spark_jobs.transforms.names import prefix
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.pages import missing
from spark_jobs.transforms.rules.sightings import (
    any_hash,
    forgetful,
    keys_received,
    of_read_models,
    received,
    renewed,
    sent,
)
from spark_jobs.transforms.schemas import FINDING

_RULE: Final = "output_unknown"
_ADVICE: Final = (
    "Was its sender restored from a backup? Then what the sender did is undone, and what its receivers did is not: process "
    "again what the sender has lost, and compare. Else find out which program sends in the name of entities without the "
    "library."
)
UNEXPLAINED: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("entity", "message", "consumer")),
        StructField("at", TimestampType()),
        *(StructField(name, BooleanType()) for name in ("numbered", "ghost", "recorded")),
    ]
)
"""What `unexplained` returns."""


def output_unknown(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A message of an entity of this application came, and that entity has not sent it: it was put back, or somebody else
    sends.

    A mark does not name its sender. So marks are judged while everything that could explain them is remembered: while every
    outbox knows all that it ever processed, or, of older applications, for a day, which is by how much longer than a message is
    judged its sender remembers the cause. A message that a record names is judged by the marks and records of its sender, if
    these are whole. The reply to a call is judged by what its own entity sent. Releases of kept messages are not judged, since
    what kept them may be older than anything is remembered; but what they send is.

    Not judged are messages that parked ones were made, and what a read model may have sent. While a page is gone before its
    time, or a document of the library is unreadable, nothing is said of marks.
    Grace: the document in which the mark stands is older than the grace, by the service's time of writing, or the record by the
    time of its attempt: so the message was sent before, and its sender was read after.
    """
    parts = (_by_marks(facts, thresholds, now), _replies(facts, thresholds, now), _by_keys(facts, thresholds, now))
    return reduce(DataFrame.unionByName, parts)


def _candidates(facts: Facts, thresholds: Thresholds, now: int, kind: str) -> DataFrame:
    """Timed marks of a kind that are old enough: `entity, hash, time, ts`."""
    old = F.col("ts") <= before(now, thresholds.grace)
    return received(facts).where((F.col("kind") == kind) & F.col("timed") & old).drop("kind", "timed")


def _certain(thresholds: Thresholds, now: int) -> Column:
    """Whether the cause of what has this time is remembered."""
    since = thresholds.certain_since(now) + int(thresholds.horizon.total_seconds())
    return F.col("time") >= F.lit(written_time(max(since, 0) * 1000))


def _by_marks(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    nothing = none(facts.entities.sparkSession, FINDING)
    lacking = (facts.unreadable, missing(facts, thresholds, now))
    if not thresholds.all_types or any(not item.isEmpty() for item in lacking):
        return nothing
    marks = _candidates(facts, thresholds, now, "i")
    if not forgetful(facts).isEmpty():
        marks = marks.where(_certain(thresholds, now))
    unknown = any_of(marks.join(sent(facts, thresholds, now).select("hash").distinct(), "hash", "left_anti"))
    if unknown is None:
        return nothing
    explained = any_hash((renewed(facts), of_read_models(facts)))
    left = unknown.join(explained, "hash", "left_anti").join(_taken_back(facts), "hash", "left")
    who = F.when(F.col("sender").isNull(), F.lit("")).otherwise(
        sentence(" It was sent by %s before that was put back to an earlier version.", "sender")
    )
    return findings(
        left,
        _RULE,
        subject=F.col("hash"),
        detail=sentence(
            "The message with the hash %s came from an entity of this application, and none has sent it.%s",
            F.col("hash"),
            who,
        ),
        advice=_ADVICE,
        since=instant_of(F.col("time")),
    )


def _taken_back(facts: Facts) -> DataFrame:
    """`hash, sender`: what pages say that was sent in histories that were taken back."""
    pages = facts.pages.where(F.col("number") > F.col("cut")).withColumn("mark", F.explode(marks_in("marks")))
    each = outputs_of(pages.select("entity", "mark", "to")).join(facts.entities.select("entity", "prefix"), "entity")
    id = output_id(F.col("entity"), hash_in(F.col("mark")), F.col("index"))
    hashes = each.select(hash_of(F.concat("prefix", id)).alias("hash"), F.col("entity").alias("sender"))
    return hashes.dropDuplicates(["hash"])


def _replies(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A reply has the id of its call, and the name of the service that it is of in its source."""
    replies, forgetting = _candidates(facts, thresholds, now, "r"), forgetful(facts).withColumn("forgets", F.lit(True))
    replies = replies.join(forgetting, "entity", "left").where(F.col("forgets").isNull() | _certain(thresholds, now))
    replies = replies.join(missing(facts, thresholds, now), "entity", "left_anti")
    marks = any_of(facts.without_unreadable(replies))
    if marks is None:
        return none(facts.entities.sparkSession, FINDING)
    calls = sent(facts, thresholds, now).join(marks.select("entity").distinct(), "entity", "left_semi")
    calls = calls.select("entity", hash_of(F.concat(prefix(_source_of_replies("destination")), "id")).alias("hash"))
    return findings(
        marks.join(calls.distinct(), ["entity", "hash"], "left_anti"),
        _RULE,
        subject=F.col("hash"),
        detail=sentence("The reply with the hash %s was handled, and the entity has not made its call.", "hash"),
        advice="Was the entity restored from a backup? Then process again what made the call, with another key: the service "
        "has carried it out.",
        since=instant_of(F.col("time")),
    )


@by_row(StringType())
def _source_of_replies(destination: str) -> str:
    return f"exactlyonce/api/{quote(destination, safe='')}"


def _by_keys(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    return findings(
        unexplained(facts, thresholds, now).where("ghost"),
        _RULE,
        message="message",
        subject=F.col("consumer"),
        detail=sentence("%s saw the message, which no commit of its sender lists.", "consumer"),
        advice=_ADVICE,
        since="at",
    )


def unexplained(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Messages of an entity that records and numbers of its consumers name, and that it does not list.

    Read models list nothing, so what they send is not judged; nor are entities with unreadable documents, nor messages that
    came within the grace.

    Returns:
        `entity` (the sender), `message, consumer, at, numbered`; `ghost`: whether its commit would certainly be known;
        `recorded`: whether the sender keeps records, or stream entries.
    """
    return facts.once(_unexplained, thresholds, now)


def _unexplained(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    senders = facts.entities.where(F.col("protocol") != "resequencer").select("entity", "prefix", "protocol")
    senders = facts.without_unreadable(senders).withColumn("recorded", F.col("protocol") != OUTBOX).drop("protocol")
    settled = keys_received(facts).where(second("at") <= before(now, thresholds.grace))
    settled = settled.withColumnRenamed("entity", "consumer")
    source = F.concat(F.substring_index("message", "/", 1), F.lit("/"))
    seen = any_of(settled.join(senders, source == F.col("prefix")).withColumn("hash", hash_of(F.col("message"))))
    if seen is None:
        return none(facts.entities.sparkSession, UNEXPLAINED)
    listed = any_hash((sent(facts, thresholds, now), renewed(facts)))
    unlisted = any_of(seen.join(listed, "hash", "left_anti"))
    if unlisted is None:
        return none(facts.entities.sparkSession, UNEXPLAINED)
    forgetting = forgetful(facts).withColumn("forgets", F.lit(True))
    found = unlisted.join(_covered(facts), "entity", "left").join(forgetting, "entity", "left")
    ghost = F.when(F.col("recorded"), _ghost(thresholds)).otherwise(F.col("forgets").isNull())
    return found.select(
        "entity", "message", "consumer", "at", "numbered", F.coalesce(ghost, F.lit(False)).alias("ghost"), "recorded"
    )


def _ghost(thresholds: Thresholds) -> Column:
    """Whether the record of the commit would be kept: all are, or all since the earliest time that the commit can have.

    A consumer that refuses old messages bounds that time. Numbers are processed at any age.
    """
    longest = thresholds.arrival + thresholds.horizon
    since = second("at") - int(longest.total_seconds()) >= second("covered_at")
    return (F.col("covered_from") == 1) | (~F.col("numbered") & since)


def _covered(facts: Facts) -> DataFrame:
    """By entity the version from which on all versions have a record, and the time of its commit."""
    newest = facts.entities.select("entity", F.col("version").alias("newest"))
    kept = facts.transactions.groupBy("entity", "version").agg(F.min("at").alias("at")).join(newest, "entity")
    from_above = Window.partitionBy("entity").orderBy(F.col("version").desc())
    known = kept.where(F.col("version") <= F.col("newest")).withColumn("rank", F.row_number().over(from_above))
    unbroken = known.where(F.col("version") == F.col("newest") - F.col("rank") + 1)
    return unbroken.groupBy("entity").agg(
        F.min("version").alias("covered_from"), F.min_by("at", "version").alias("covered_at")
    )
