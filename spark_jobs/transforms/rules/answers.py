"""Rules about answers to requests, and replies to calls."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, second
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import outputs


def one_answer(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """The documents about one request hold different answers: two copies of it may have got either.

    An entry and the record of a commit hold the same answer, by its status and by the fingerprint of its request. It cannot see
    answers that differ in headers or body alone: these are not read; nor what was sent and is not kept.
    """
    del thresholds, now
    answered = facts.transactions.where(F.col("answer").isNotNull())
    ways = answered.groupBy("entity", "message").agg(
        F.count_distinct("answer").alias("ways"),
        F.sort_array(F.collect_set("version")).alias("made"),
        F.min("at").alias("since"),
    )
    return findings(
        ways.where(F.col("ways") > 1),
        "one_answer",
        message="message",
        versions=F.col("made"),
        detail=sentence("The request has %d answers, which differ in status or fingerprint.", "ways"),
        advice="Compare its entry and its records, and ask the caller which answer it got. No program but the library may edit "
        "its documents.",
        since="since",
    )


def reply_awaited(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A call was made so long ago that its reply has to be there, if only to say that the outcome is unknown.

    The ledger keeps the ids of calls, and not when they were made. That is the time of the attempt where an entry or a record
    lists the call among its outputs; else it was no later than the last write of the document. So it cannot see how old a call
    is that a numbered message made, in an entity that is busy since. Grace: `awaited_after`, by that time.
    """
    awaited = facts.entities.select("entity", "ts", F.explode("calls").alias("call"))
    made = outputs(facts).groupBy("entity", F.col("output.id").alias("call")).agg(F.min("at").alias("at"))
    due = awaited.join(made, ["entity", "call"], "left").withColumn("made", F.coalesce(second("at"), F.col("ts")))
    return findings(
        due.where(F.col("made") <= before(now, thresholds.awaited_after)),
        "reply_awaited",
        subject=F.col("call"),
        detail=F.lit("The reply to the call has not been handled."),
        advice="Look for the call in the queue of its Api and in the poison queue, where a function has to call "
        "once.settle_call; and for its reply in its queue, and among the parked messages.",
        since=F.timestamp_seconds("made"),
    )


def request_left(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A caller has opened a request and not closed it for long: it failed for good, or knows nothing of it.

    A request that was not carried out should have been deleted by clean-up, which has not run for long. One that was answered
    stays until its caller closes it, since nobody else knows whether that still wants the answer. Grace: `left_after`, by the
    service's time of writing.
    """
    left = facts.requests.where(F.col("ts") <= before(now, thresholds.left_after))
    was = F.when(F.col("answered"), "was carried out").otherwise("was not carried out")
    return findings(
        left,
        "request_left",
        subject=F.col("id"),
        detail=sentence("The request was opened, %s, and its caller has not closed it.", was),
        advice="Run clean-up, which deletes what was not carried out. Of what was, ask the caller, and close it with DELETE.",
        since=F.timestamp_seconds("ts"),
    )
