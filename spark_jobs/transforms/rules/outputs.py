"""Rules about outputs: they are those of the commit, they arrive, and nothing arrives that was not sent."""

from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.records.ledger import OUTBOX
from spark_jobs.spark.frames import any_of, none
from spark_jobs.transforms.facts import Facts, Thresholds, before, type_of
from spark_jobs.transforms.marks import hash_of, instant_of
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.pages import missing
from spark_jobs.transforms.rules.sightings import known, outputs, put_aside, sent
from spark_jobs.transforms.schemas import FINDING

_CONSISTENT: Final = "consistent_state_and_output"


def consistent_state_and_output(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """The records of an entity agree with one another on what a commit sent.

    The rule finds a commit that two documents tell of, with other outputs or another digest; an output id listed twice, by one
    commit or by those of two messages; a number of a sequence given to two outputs. It cannot compare contents: bodies are not
    kept after publishing, and are not read. Ids of what an outbox sends derive from marks, so they cannot contradict one
    another.
    """
    del thresholds, now
    return reduce(DataFrame.unionByName, (_contradictory(facts), _listed_twice(facts), _numbered_twice(facts)))


def _contradictory(facts: Facts) -> DataFrame:
    commits = facts.transactions.groupBy("entity", "message", "tx").agg(
        F.count_distinct(F.struct("digest", "outputs")).alias("ways"),
        F.sort_array(F.collect_set("version")).alias("made"),
        F.min("at").alias("since"),
    )
    return findings(
        commits.where(F.col("ways") > 1),
        _CONSISTENT,
        message="message",
        versions=F.col("made"),
        subject=F.col("tx"),
        detail=sentence("The transaction is recorded in %d ways, which differ in outputs or digest.", "ways"),
        advice="Compare its records with the messages that its consumers saw. No program but the library may edit its "
        "documents.",
        since="since",
    )


def _listed_twice(facts: Facts) -> DataFrame:
    """Ids that are listed twice. An id derives from entity, message and place, so it belongs to one output of one message."""
    ids = F.transform("outputs", lambda output: output.getField("id"))
    again = facts.transactions.where(F.size(F.array_distinct(ids)) < F.size(ids))
    listed = outputs(facts).select("entity", "message", "version", "at", F.col("output.id").alias("output"))
    shared = listed.groupBy("entity", "output").agg(
        F.sort_array(F.collect_set("message")).alias("messages"),
        F.sort_array(F.collect_set("version")).alias("made"),
        F.min("at").alias("since"),
    )
    advice = (
        "Look what its consumers did with it: they know one message by it. Then find out which program edits documents."
    )
    return findings(
        again.dropDuplicates(["entity", "version", "message"]),
        _CONSISTENT,
        message="message",
        versions=F.array("version"),
        detail=F.lit("The commit lists two outputs under one id."),
        advice=advice,
        since="at",
    ).unionByName(
        findings(
            shared.where(F.size("messages") > 1),
            _CONSISTENT,
            message=F.col("messages")[0],
            versions=F.col("made"),
            subject=F.col("output"),
            detail=sentence("The commits of the messages %s list the output.", F.concat_ws(", ", "messages")),
            advice=advice,
            since="since",
        )
    )


def _numbered_twice(facts: Facts) -> DataFrame:
    placed = outputs(facts).where(F.col("output.place").isNotNull())
    places = placed.groupBy("entity", "output.place.channel", "output.place.number").agg(
        F.sort_array(F.collect_set("output.id")).alias("ids"),
        F.sort_array(F.collect_set("version")).alias("made"),
        F.min("at").alias("since"),
    )
    return findings(
        places.where(F.size("ids") > 1),
        _CONSISTENT,
        versions=F.col("made"),
        subject=sentence("%s %d", "channel", "number"),
        detail=sentence("%d outputs have the number: %s.", F.size("ids"), F.concat_ws(", ", "ids")),
        advice="The read model received only one of them: rebuild it under a new key. Then find out whether the entity was "
        "deleted by hand, or restored from a backup, so that its numbers began anew.",
        since="since",
    )


def output_lost(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """An output that no entity of its consumer's type knows, although it is older than the threshold and is not owed.

    A consumer knows a message if an entity of its type has its mark, its record or its number, or holds it. A message that is
    parked, was discarded or was made a new one is no loss, whoever it is parked for. Of what is older than a receiver remembers
    nothing is said: an output has the time of its cause, by which its receiver remembers it, if that time is stable; else a
    day's commits are judged.

    A message that waits in a queue, for its delay or behind others, is unknown, too: stored documents do not distinguish it
    from a lost one. Set the threshold above the longest delay. The same holds for one that was owed for longer than the
    threshold and sent just before the second look. Types with an unreadable document are not judged, nor outputs of which the
    mark may be in a page that is gone; nor those to destinations that no entity type consumes. A read model notes no outputs.
    Grace: the threshold, by the service's time of writing the page, or the ledger, in which the mark of the cause stands; of a
    record by the time of the attempt.
    """
    if not thresholds.consumers:
        return none(facts.entities.sparkSession, FINDING)
    consumers = F.create_map(*(F.lit(consumer) for consumer in chain.from_iterable(thresholds.consumers.items())))
    old = F.col("at") <= before(now, thresholds.lost_after)
    due = sent(facts, thresholds, now).where(old & ~F.col("owed") & F.col("recorded"))
    due = due.withColumn("consumer", consumers[F.col("destination")]).where(F.col("consumer").isNotNull())
    recording = facts.entities.where(F.col("protocol") != OUTBOX).select(
        F.col("type").alias("consumer"), F.lit(True).alias("records")
    )
    due = due.join(F.broadcast(recording.distinct()), "consumer", "left")
    due = due.where(F.col("judged") | F.coalesce("records", F.lit(False)))
    again = _sent_again(facts, thresholds, now)
    unknown = any_of(due.join(known(facts), ["consumer", "hash"], "left_anti"))
    if unknown is None:
        return again
    senders = facts.entities.select("entity", "prefix")
    left = unknown.join(put_aside(facts, thresholds, now), "hash", "left_anti").join(senders, "entity")
    left = facts.without_unreadable(_visible(facts, thresholds, now, left))
    found = findings(
        left.withColumn("sent", F.concat("prefix", "id")),
        "output_lost",
        message="message",
        versions=F.when(F.col("version").isNull(), F.array().cast("array<bigint>")).otherwise(F.array("version")),
        subject=F.col("sent"),
        detail=_lost(),
        advice="Look for it in the queue and its poison queue: it may wait there. If it is nowhere, replay the version stream "
        "of the entity if it has one, or send its content by hand, with the id that the finding names. Was the receiver "
        "restored from a backup, or its document deleted?",
        since=F.timestamp_seconds("at"),
    )
    return found.unionByName(again)


def _lost() -> Column:
    which = F.when(F.col("message").isNull(), sentence(", of the message with the hash %s", "cause")).otherwise(
        F.lit("")
    )
    return sentence(
        "No entity of type %s knows the output that was sent to %s%s.", F.col("consumer"), F.col("destination"), which
    )


def _sent_again(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Parked messages that were sent again, and did not arrive. For a day: by their time they may be forgotten after that."""
    old = (F.col("ts") <= before(now, thresholds.lost_after)) & (F.col("ts") >= thresholds.certain_since(now))
    notes = facts.parked.where(F.col("sent").isNotNull() & old)
    notes = notes.withColumns({"hash": hash_of(F.col("sent")), "time": F.lit(None).cast("string")})
    notes = notes.join(facts.entities.select("entity", "prefix"), "entity", "left")
    for_sender = F.coalesce(F.col("message").startswith(F.col("prefix")), F.lit(False))
    due = notes.where(~for_sender).withColumn("consumer", type_of("entity"))
    due = due.join(sent(facts, thresholds, now).select("hash").distinct(), "hash", "left_anti")  # That has its finding.
    left = due.join(known(facts), ["consumer", "hash"], "left_anti")
    left = left.join(put_aside(facts, thresholds, now), "hash", "left_anti")
    return findings(
        facts.without_unreadable(_visible(facts, thresholds, now, left)),
        "output_lost",
        message="sent",
        subject=F.col("sent"),
        detail=F.lit("The message was parked, an operator sent it again, and the entity does not know it."),
        advice="Look for it in the queue and its poison queue: it may wait there. If it is nowhere, send its content by hand.",
        since=F.timestamp_seconds("ts"),
    )


def _visible(facts: Facts, thresholds: Thresholds, now: int, left: DataFrame) -> DataFrame:
    """Without outputs that may be known in a document that cannot be read, or in a page that is gone."""
    blind = facts.unreadable.where(F.col("message").isNull()).select(
        F.coalesce(type_of("entity"), "place").alias("consumer")
    )
    gone = missing(facts, thresholds, now).groupBy(type_of("entity").alias("consumer"))
    left = left.join(blind.distinct(), "consumer", "left_anti").join(
        gone.agg(F.max("until").alias("until")), "consumer", "left"
    )
    later = F.unix_millis(instant_of(F.col("time"))) > F.col("until")
    return left.where(F.col("until").isNull() | F.coalesce(later, F.lit(False)))
