"""Rules about outputs: they are those of the commit, are published in time, and arrive."""

from __future__ import annotations

from functools import reduce
from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.spark.frames import any_of, none
from spark_jobs.transforms.facts import Facts, Thresholds, before, kept_messages, second, type_of
from spark_jobs.transforms.rules.channels import by_number, missing
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import outputs, unexplained
from spark_jobs.transforms.schemas import FINDING

_CONSISTENT = "consistent_state_and_output"


def consistent_state_and_output(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Every output comes from a commit, and all documents of a commit agree on its outputs.

    The rule finds a commit whose entry and record differ in outputs or digest; an output id listed twice, by one commit or by
    those of two messages; a number of a channel given to two outputs; a message that a consumer saw of an entity of which
    every commit that could have sent it is kept, and none lists it.

    It cannot compare contents: bodies are not kept after publishing, and are not read. Grace: a message that a consumer saw is
    older than the grace by the time at which it came; the other facts are of commits, and need none.
    """
    return contradictory_commits(facts, thresholds, now).unionByName(ghosts(facts, thresholds, now))


def contradictory_commits(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What an entity's own documents show of `consistent_state_and_output`."""
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
        advice="Compare its entry and its records with the messages that its consumers saw. No program but the library may "
        "edit its documents.",
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


def ghosts(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What consumers show of `consistent_state_and_output`."""
    return findings(
        unexplained(facts, thresholds, now).where("ghost"),
        _CONSISTENT,
        message="message",
        subject=F.col("consumer"),
        detail=sentence("%s saw the message, which no commit of its sender lists.", "consumer"),
        advice="Undo the consumer's change by hand. Then find out which program sends in the name of the entity without the "
        "library, or whether the entity was restored from a backup.",
        since="at",
    )


def output_owed(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Outputs owed for longer than the threshold, of a commit that has no record; and kept messages as long overdue.

    A record is written after publishing, so an entry with a record owes nothing. The publisher marks within seconds, and the
    sweeper finishes after a crash, within a minute or so; it also releases what is due. Grace: the threshold, by the time of
    the attempt, or since the message was due. It cannot see outputs that a stream has not published yet: a stream keeps no such
    mark.
    """
    owing = facts.transactions.where(F.col("owes").isNotNull() & (second("at") <= before(now, thresholds.owed_after)))
    recorded = facts.transactions.where(F.col("origin") == "record").select("entity", "message", "tx")
    owed = owing.join(recorded, ["entity", "message", "tx"], "left_anti")
    overdue = kept_messages(facts).where(second("due") <= before(now, thresholds.owed_after))
    return findings(
        facts.without_unreadable(owed),
        "output_owed",
        message="message",
        versions=F.array("version"),
        subject=F.col("tx"),
        detail=sentence("The commit owes %d outputs, %s.", F.size("outputs"), "owes"),
        advice="Look whether the sweeper runs, and whether their destinations are still configured and take messages. They are "
        "also published when the message, or the next one of the entity, is delivered.",
        since="at",
    ).unionByName(
        findings(
            facts.without_unreadable(overdue),
            "output_owed",
            subject=F.col("id"),
            detail=F.lit("The message was to be sent at a time that is over, and the entity still keeps it."),
            advice="Look whether the sweeper runs, what its log says of the entity, and whether the message's destination is "
            "still configured.",
            since="due",
        )
    )


def output_lost(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """An output that its consumer does not know, although it is older than the threshold and is not owed.

    What is numbered for an outbox that has a document is judged by its number: the source gave it out, and it is above all that
    were received. For numbers below one that came see `number_missing`; for grace and limits see `channels.missing`.

    Of other outputs, a consumer knows a message if an entity of its type has it in an entry or a record, holds it, or passed
    its number; or if it is parked, for the consumer, or for its sender since it was too old to be sent. The rule judges commits
    within the retention: records of older ones may have expired. It skips types that have a document whose message is
    unreadable.

    A message that waits in a queue, for its delay or behind others, is unknown, too, and so is a requeued one that has not
    come yet: stored documents do not distinguish it from a lost one. Set the threshold above the longest delay. It cannot see
    outputs to destinations that no entity type consumes. Grace: the threshold, by the time of the attempt.
    """
    return unknown_outputs(facts, thresholds, now).unionByName(lost_numbers(facts, thresholds, now))


def unknown_outputs(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What messages show of `output_lost`."""
    if not thresholds.consumers:
        return none(facts.entities.sparkSession, FINDING)
    consumers = F.create_map(*(F.lit(one) for one in chain.from_iterable(thresholds.consumers.items())))
    young = F.least(second("at"), F.col("after")) >= thresholds.kept_since(now)
    settled = (second("at") <= before(now, thresholds.lost_after)) & young
    sent = outputs(facts).withColumn("consumer", consumers[F.col("output.destination")])
    # What a read model passed is known, whatever its commit says. That is most of what is sent, so the rest is soon grouped.
    left = any_of(sent.where(F.col("consumer").isNotNull()).alias("sent").join(*_passed(facts), "left_anti"))
    if left is None:
        return none(facts.entities.sparkSession, FINDING)
    sent = left.groupBy("entity", "version", "message", "output", "consumer").agg(
        F.min("at").alias("at"), F.min("after").alias("after"), _owed_still().alias("owed")
    )
    senders = facts.entities.select("entity", "source", "prefix")
    due = sent.where(settled & ~F.col("owed")).join(senders, "entity")
    due = due.withColumn("sent", F.concat("prefix", "output.id"))
    due = due.join(by_number(facts), F.col("output.place.receiver") == F.col("receiver"), "left_anti")
    return findings(
        _unknown(facts, facts.without_unreadable(due)),
        "output_lost",
        message="message",
        versions=F.array("version"),
        subject=F.col("sent"),
        detail=sentence("No entity of type %s knows the output that was sent to %s.", "consumer", "output.destination"),
        advice="Look for it in the queue and its poison queue: it may wait there. If it is nowhere, replay the version stream "
        "of the entity if it has one, or send its content by hand, with the id that the finding names.",
        since="at",
    )


def lost_numbers(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What numbers show of `output_lost`: the last ones of a channel, where its receiver has not got them."""
    lost = missing(facts, thresholds, now).where(F.col("first") > F.col("highest"))
    senders = facts.entities.select(F.col("entity").alias("sender"), "source")
    lost = lost.withColumnRenamed("entity", "receiver").join(senders, "source").withColumnRenamed("sender", "entity")
    return findings(
        lost,
        "output_lost",
        subject=sentence("%s %d", "channel", "first"),
        detail=sentence(
            "%s has not received the numbers %d to %d in channel %s.", "receiver", "first", "last", "channel"
        ),
        advice="Look for them in the queue and its poison queue: they may wait there. If they are nowhere, replay the version "
        "stream of the entity if it has one, or send their content by hand.",
        since="at",
    )


def _owed_still() -> Column:
    """Whether a commit owes its outputs, by all its rows: with a record it does not."""
    return F.bool_and(F.col("owes").isNotNull())


def _passed(facts: Facts) -> tuple[DataFrame, Column]:
    """The numbers that read models passed, and the condition by which they are those of outputs, `sent`."""
    reader = facts.entities.select("type", "source", F.explode("receptions").alias("reception")).alias("reader")
    behind = (
        (F.col("sent.consumer") == F.col("reader.type"))
        & (F.col("sent.output.place.receiver") == F.col("reader.source"))
        & (F.col("sent.output.place.channel") == F.col("reader.reception.channel"))
        & (F.col("sent.output.place.number") < F.col("reader.reception.next"))
    )
    return reader.hint("shuffle_hash"), behind


def _unknown(facts: Facts, due: DataFrame) -> DataFrame:
    """The outputs that no consumer knows."""
    known = (
        facts.transactions.select("entity", "message")
        .unionByName(facts.numbered.select("entity", "message"))
        .unionByName(facts.unreadable.select("entity", "message"))
        .where(F.col("message").isNotNull())
        .select(type_of("entity").alias("consumer"), F.col("message").alias("sent"))
        .distinct()
    )
    blind = facts.unreadable.where(F.col("message").isNull()).select(
        F.coalesce(type_of("entity"), "place").alias("consumer")
    )
    parked = facts.parked.select(F.col("message").alias("sent"))  # Some are parked for their sender.
    unknown = due.join(known, ["consumer", "sent"], "left_anti")
    return unknown.join(blind.distinct(), "consumer", "left_anti").join(parked, "sent", "left_anti")
