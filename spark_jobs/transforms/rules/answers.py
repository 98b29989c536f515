"""Rules about answers to requests, and replies to calls."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import counted, sent


def one_answer(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """The documents about one request hold different answers: two copies of it may have got either.

    A ledger, and then a page, holds the answer to a message, by the status and by the fingerprint of the request; and so does a
    record. It cannot see answers that differ in headers or body alone: these are not read; nor what was sent and is not kept.
    """
    del thresholds, now
    recorded = facts.transactions.where(F.col("answer").isNotNull())
    answered = (
        _answers(facts.entities.withColumn("since", F.timestamp_seconds("ts")))
        .unionByName(_answers(counted(facts).withColumn("since", F.timestamp_seconds("ts"))))
        .unionByName(recorded.select("entity", "message", "version", "answer", F.col("at").alias("since")))
    )
    ways = answered.groupBy("entity", "message").agg(
        F.count_distinct("answer").alias("ways"),
        F.sort_array(F.collect_set("version")).alias("made"),
        F.min("since").alias("since"),
    )
    return findings(
        ways.where(F.col("ways") > 1),
        "one_answer",
        message="message",
        versions=F.col("made"),
        detail=sentence("The request has %d answers, which differ in status or fingerprint.", "ways"),
        advice="Compare the documents, and ask the caller which answer it got. No program but the library may edit its "
        "documents.",
        since="since",
    )


def _answers(documents: DataFrame) -> DataFrame:
    """The answers in ledgers or pages. Their messages are named by their hashes."""
    each = documents.select("entity", "since", F.explode("answers").alias("one"))
    version = F.lit(None).cast("bigint").alias("version")
    return each.select("entity", F.col("one.cause").alias("message"), version, "one.answer", "since")


def reply_awaited(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A call was made so long ago that its reply has to be there, if only to say that the outcome is unknown.

    The ledger keeps the ids of calls, and not when they were made: no later than the last write of the document in which the
    mark of the message that made the call stands. So it cannot see how old a call is whose mark is still in the ledger of an
    entity that is busy. Grace: `awaited_after`, by that time.
    """
    awaited = facts.entities.select("entity", "ts", F.explode("calls").alias("call"))
    made = sent(facts, thresholds, now).select("entity", F.col("id").alias("call"), "at")
    made = made.groupBy("entity", "call").agg(F.min("at").alias("at"))
    due = awaited.join(made, ["entity", "call"], "left").withColumn("made", F.coalesce("at", "ts"))
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
