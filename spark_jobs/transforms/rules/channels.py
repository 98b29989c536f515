"""Rules about the numbered messages that outboxes receive through channels.

A numbered message leaves neither entry nor record once its outputs are published: its receiver knows it by its number, for
ever. What a receiver knows of a channel is in its ledger or in documents, and what several say is true together.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, outboxes, second
from spark_jobs.transforms.names import source_of
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import outputs, prefix_of

_CHANNEL: Final = ("entity", "channel")


def channel_ahead(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A receiver has a number that its source never gave out: the source was restored from a backup, or somebody forged it.

    It cannot see a channel that its source has forgotten, nor a source in another account. Grace: the receiver's ledger, or the
    document of the channel, is older than the grace by the service's time of writing. So the number was sent before, and the
    source was read after.
    """
    old = facts.channels.where(F.col("ts") <= before(now, thresholds.grace))
    highest = _runs(old).groupBy(*_CHANNEL).agg(F.max("last").alias("highest"), F.max("ts").alias("at"))
    given = _sent(facts).select(*_CHANNEL, "source", "last")
    ahead = highest.join(given, [*_CHANNEL]).where(F.col("highest") > F.col("last"))
    return findings(
        facts.without_unreadable(ahead),
        "channel_ahead",
        subject=sentence("%s %d", "channel", F.col("last") + 1),
        detail=sentence(
            "The entity received number %d in channel %s of %s, which has given out numbers up to %d.",
            "highest",
            "channel",
            "source",
            "last",
        ),
        advice="Was the source restored from a backup? Then it gives out numbers a second time, and its receivers take new "
        "messages for copies, or refuse them: renumber it. Else find out which program sends in its name.",
        since=F.timestamp_seconds("at"),
    )


def number_missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A number that an entity has not received, below one that it has.

    Its message was lost, or discarded, or waits for long. For numbers above the highest received see `output_lost`. Grace and
    limits: see `missing`.
    """
    holes = missing(facts, thresholds, now).where(F.col("last") < F.col("highest"))
    return findings(
        holes,
        "number_missing",
        subject=sentence("%s %d", "channel", "first"),
        detail=sentence(
            "Numbers %d to %d in channel %s of %s have not come, though younger ones have.",
            "first",
            "last",
            "channel",
            "source",
        ),
        advice="Look for the messages in the queue and its poison queue: they are processed at any age. If they are lost, "
        "replay the version stream of the source if it has one, or send their content by hand. One that was parked and "
        "discarded has closed its number.",
        since="at",
    )


def count_mismatch(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """The version of a receiver of numbered messages is not the number of messages that are known of it.

    Known are the numbers received, the messages with a record, or with an entry that a record follows, and those that the
    ledger counts since they have neither: replies to calls, and opened requests. A numbered message
    that wrote blobs has both, and no record says that it has a number: so a message whose source has a channel to the entity
    may count once or twice. Clean-up by age takes records, so fewer known messages than counted are a finding only while the
    application is no older than the retention. Receivers without numbered messages are judged by `ledger_hole`; those that have
    forgotten channels cannot be judged.

    Grace: the entity's last write is older than the grace. The finding names the version, so the second look confirms it only
    if nothing was committed in between: a channel that came back meanwhile would be missing in both places.
    """
    remembers_all = (F.col("protocol") == "outbox") & F.col("apart.forgotten").isNull()
    judged = facts.entities.where(remembers_all & (F.col("ts") <= before(now, thresholds.grace)))
    live = thresholds.live_since
    all_kept = live is not None and live.timestamp() >= thresholds.kept_since(now)
    versions = judged.select("entity", F.col("version").alias("counted"), "ts", "unrecorded")
    numbers = _numbers(facts.channels.join(versions.drop("ts"), "entity"))
    sources = facts.channels.select("entity", "prefix", F.lit(True).alias("placed")).distinct()
    recorded = facts.transactions.where("recorded").join(versions.drop("ts"), "entity")
    recorded = recorded.where(F.col("version") <= F.col("counted")).withColumn("prefix", prefix_of("message"))
    others = (
        recorded.join(sources, ["entity", "prefix"], "left")
        .groupBy("entity")
        .agg(
            F.count_distinct("version").alias("others"),
            F.count_distinct(F.when(F.col("placed"), F.col("version"))).alias("twice"),
        )
    )
    known = versions.join(numbers, "entity").join(others, "entity", "left").fillna(0, ["others", "twice"])
    most = F.col("numbers") + F.col("others") + F.col("unrecorded")
    fewer = F.lit(all_kept) & (most < F.col("counted"))
    wrong = known.where(fewer | (most - F.col("twice") > F.col("counted")))
    return findings(
        facts.without_unreadable(wrong),
        "count_mismatch",
        versions=F.array("counted"),
        detail=sentence(
            "The ledger counts %d messages, and known are %d: %d numbers, %d in entries and records, and %d that have neither.",
            "counted",
            most,
            "numbers",
            "others",
            "unrecorded",
        ),
        advice="If fewer are known, a copy of a message could be applied again: restore the records from a backup. If more are "
        "known, the entity lacks changes: was it restored from a backup? Then find out which program deletes documents of the "
        "library, or edits ledgers.",
        since=F.timestamp_seconds("ts"),
    )


def missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Numbers that outboxes have not received, and that are neither owed nor perhaps parked.

    A number is old enough if it is no higher than one that is `lost_after` old: received by then, given out in a commit of that
    age, or given out by a source that has not been written since. A message that waits in a queue is missing, too: set the
    threshold above the longest delay. No document but the message itself says which number a parked one has: while one of a
    source is parked for the receiver, or at the source, their channels are not judged. Nor are those of unreadable senders.

    Returns:
        Runs: `entity` (the receiver), `channel, source, first, last`, `highest` (number received, 0 if none), `at` (time of
        the receiver's, or the source's, last write).
    """
    return facts.once(_missing, thresholds, now)


def _missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    sent, runs = _sent(facts), _runs(facts.channels)
    highest = runs.groupBy(*_CHANNEL).agg(F.max("last").alias("highest"), F.max("ts").alias("ts"))
    sources = facts.channels.groupBy(*_CHANNEL).agg(
        F.first("source").alias("source"), F.first("prefix").alias("prefix")
    )
    known = highest.join(sources, [*_CHANNEL])
    # A channel that is nowhere may just have come back into the ledger, if channels lie elsewhere.
    begun = sent.where(~F.col("apart")).join(known, [*_CHANNEL], "left_anti")
    begun = begun.select(*_CHANNEL, F.lit(0).cast("bigint").alias("highest"), "ts", "source", "prefix")
    tops = known.unionByName(begun).join(sent.select(*_CHANNEL, F.col("last").alias("given")), [*_CHANNEL], "left")
    tops = tops.withColumn("top", F.greatest("highest", F.coalesce("given", F.lit(0))))
    places = _placed(facts)
    owed = places.where(F.col("owes").isNotNull()).select(*_CHANNEL, F.col("number").alias("first"))
    owed = owed.withColumn("last", F.col("first"))
    marks = tops.select(*_CHANNEL, (F.col("top") + 1).alias("first"), (F.col("top") + 1).alias("last"))
    gaps = _gaps(runs.drop("ts").unionByName(owed).unionByName(marks))
    since = before(now, thresholds.lost_after)
    old = (
        runs.where(F.col("ts") <= since)
        .select(*_CHANNEL, F.col("last").alias("number"))
        .unionByName(places.where(second("at") <= since).select(*_CHANNEL, "number"))
        .unionByName(sent.where(F.col("ts") <= since).select(*_CHANNEL, F.col("last").alias("number")))
    )
    old = old.groupBy(*_CHANNEL).agg(F.max("number").alias("old"))
    found = gaps.join(tops, [*_CHANNEL]).join(old, [*_CHANNEL]).withColumn("last", F.least("last", "old"))
    parked = facts.parked.withColumn("prefix", prefix_of("message"))
    by_sender = parked.join(facts.entities.select("entity", "prefix"), ["entity", "prefix"], "left_semi")
    blind = facts.unreadable.select(source_of("entity").alias("source"))
    judged = (
        found.where(F.col("first") <= F.col("last"))
        .join(parked, ["entity", "prefix"], "left_anti")
        .join(by_sender, "prefix", "left_anti")
        .join(blind, "source", "left_anti")
    )
    return facts.without_unreadable(judged).select(
        *_CHANNEL, "source", "first", "last", "highest", F.timestamp_seconds("ts").alias("at")
    )


def by_number(facts: Facts) -> DataFrame:
    """Outboxes: `receiver` (source of what they send), `entity`, `apart` (whether channels lie outside the ledger)."""
    return outboxes(facts.entities)


def versioned(facts: Facts, frame: DataFrame) -> DataFrame:
    """The rows of entities each version of which has an entry, and then a record: of no other message that has neither."""
    others = (F.col("protocol") == "resequencer") | F.col("apart.channels") | (F.col("unrecorded") > 0)
    numbering = facts.entities.where(others).select("entity")
    return frame.join(numbering.unionByName(facts.channels.select("entity")).distinct(), "entity", "left_anti")


def _sent(facts: Facts) -> DataFrame:
    """How far sources have numbered what they send to outboxes: `entity` (the receiver), `apart, channel, last, ts` (of the
    source's document), `source, prefix`."""
    senders = facts.entities.select(F.col("entity").alias("sender"), "source", "prefix")
    sequences = facts.sequences.select(F.col("entity").alias("sender"), "receiver", "channel", "last", "ts")
    sequences = sequences.join(senders, "sender")
    return sequences.join(by_number(facts), "receiver").select(*_CHANNEL, "apart", "last", "ts", "source", "prefix")


def _placed(facts: Facts) -> DataFrame:
    """Outputs of transactions to outboxes: `entity` (the receiver), `channel, number, at, owes`."""
    placed = outputs(facts).where(F.col("output.place").isNotNull())
    placed = placed.select("output.place.receiver", "output.place.channel", "output.place.number", "at", "owes")
    return placed.join(by_number(facts), "receiver").select(*_CHANNEL, "number", "at", "owes")


def _runs(channels: DataFrame) -> DataFrame:
    """The runs of numbers that were received. Those of one channel may overlap."""
    runs = channels.select(*_CHANNEL, "ts", F.explode("received").alias("run"))
    return runs.select(*_CHANNEL, F.col("run")[0].alias("first"), F.col("run")[1].alias("last"), "ts")


def _gaps(runs: DataFrame) -> DataFrame:
    """The runs of numbers from 1 on that are in none of these, below the highest of their channel."""
    lower = Window.partitionBy(*_CHANNEL).orderBy("first", "last").rowsBetween(Window.unboundedPreceding, -1)
    reached = runs.withColumn("under", F.coalesce(F.max("last").over(lower), F.lit(0)))
    gaps = reached.select(*_CHANNEL, (F.col("under") + 1).alias("first"), (F.col("first") - 1).alias("last"))
    return gaps.where(F.col("first") <= F.col("last"))


def _numbers(channels: DataFrame) -> DataFrame:
    """How many numbers an entity has received: `entity, numbers`.

    Args:
        channels: `Facts.channels` with `counted`, the version of the entity's ledger: younger documents do not count.
    """
    runs = _runs(channels.where(F.col("version").isNull() | (F.col("version") <= F.col("counted"))))
    highest = runs.groupBy(*_CHANNEL).agg(F.max("last").alias("numbers"))
    lacking = _gaps(runs).select("entity", (F.col("first") - F.col("last") - 1).alias("numbers"))
    return (
        highest.select("entity", "numbers")
        .unionByName(lacking)
        .groupBy("entity")
        .agg(F.sum("numbers").alias("numbers"))
    )
