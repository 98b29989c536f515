"""What entities have sent, and what they have received, by the hashes of messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType

from exactlyonce.records.ledger import written_time
from exactlyonce.values.envelope import renewed_id
from exactlyonce.values.lifetimes import AHEAD
from spark_jobs.spark.frames import by_row
from spark_jobs.transforms.facts import Facts, Thresholds, before, second, type_of
from spark_jobs.transforms.marks import hash_in, hash_of, is_timed, kind_in, marks_in, output_id, outputs_of, time_in

MOST_OUTPUTS: Final = 64
"""Outputs of one message of a read model that are told from messages that nobody sent."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SENT: Final = (
    *("entity", "version", "message", "cause", "id", "destination", "hash"),
    *("at", "time", "judged", "recorded", "owed"),
)


def counted(facts: Facts) -> DataFrame:
    """The pages that are of the history that their ledger goes on with, or went on with since it was read."""
    return facts.pages.where(F.col("number") <= F.col("cut"))


def marked(facts: Facts) -> DataFrame:
    """The marks of ledgers and pages: `entity, mark, to, ts` (of the document), `paged` (whether it is a page)."""
    ledgers = facts.entities.select("entity", "marks", "to", "ts", F.lit(False).alias("paged"))
    pages = counted(facts).select("entity", "marks", "to", "ts", F.lit(True).alias("paged"))
    each = ledgers.unionByName(pages).withColumn("mark", F.explode(marks_in("marks")))
    return each.drop("marks")


def outputs(facts: Facts) -> DataFrame:
    """Outputs of transactions: the columns of `transactions`, and `output` (id, destination, place)."""
    return facts.transactions.withColumn("output", F.explode("outputs")).drop("outputs")


def sent(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """What marks and transactions say that entities have sent.

    Returns:
        `entity`, `version` and `message` of the commit, null in marks; `cause` (hash of that message), `id, destination`, and
        `hash` of the output; `at`: second before which the commit was made; `time`: that the output has, or a later one, as
        marks have times, null where that is not known; `judged, recorded`: whether it is so young that a receiver with marks,
        or one with records, cannot have forgotten it; `owed`: whether it may not be sent yet.
    """
    return facts.once(_sent, thresholds, now)


def _sent(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    senders = facts.entities.select("entity", "prefix")
    return _by_marks(facts, senders, thresholds, now).unionByName(_by_transactions(facts, senders, thresholds, now))


def _by_marks(facts: Facts, senders: DataFrame, thresholds: Thresholds, now: int) -> DataFrame:
    """An output has the time of a timed cause, or a later one; of any other cause perhaps an earlier one than its mark."""
    since, certain = thresholds.kept_since(now), thresholds.certain_since(now)
    timed, time = is_timed(F.col("mark")), time_in(F.col("mark"))
    in_time = time >= _text(since + int(AHEAD.total_seconds()))
    found = outputs_of(marked(facts)).where(F.col("destination").isNotNull()).join(senders, "entity")
    owing = unpaid(facts).select("entity", "cause", F.lit(True).alias("owed")).distinct()
    found = found.withColumns(
        {
            "version": F.lit(None).cast("bigint"),
            "message": F.lit(None).cast("string"),
            "cause": hash_in(F.col("mark")),
            "at": F.col("ts"),
            "time": F.when(timed, time),
            "judged": in_time & (timed | (time >= _text(certain))),
            "recorded": in_time,
        }
    )
    found = found.join(owing, ["entity", "cause"], "left").withColumn("owed", F.coalesce("owed", F.lit(False)))
    found = found.withColumn("id", output_id(F.col("entity"), F.col("cause"), F.col("index")))
    return found.withColumn("hash", _hash_of_sent()).select(*_SENT)


def _by_transactions(facts: Facts, senders: DataFrame, thresholds: Thresholds, now: int) -> DataFrame:
    young = F.least(second("at"), F.col("after"))
    found = outputs(facts).join(senders, "entity")
    found = found.withColumns(
        {
            "cause": hash_of(F.col("message")),
            "id": F.col("output.id"),
            "destination": F.col("output.destination"),
            "judged": young >= thresholds.certain_since(now),
            "recorded": young >= thresholds.kept_since(now),
            "owed": F.coalesce("owes", F.lit(False)),
            "at": second("at"),
            "time": F.lit(None).cast("string"),
        }
    )
    return found.withColumn("hash", _hash_of_sent()).select(*_SENT)


def _hash_of_sent() -> Column:
    return hash_of(F.concat("prefix", "id"))


def _text(moment: int) -> Column:
    """A second as marks have it."""
    return F.lit(written_time(max(moment, 0) * 1000))


def received(facts: Facts) -> DataFrame:
    """The marks of what entities have received: `entity, hash, kind, time, timed, ts`."""
    mark = F.col("mark")
    return marked(facts).select(
        "entity",
        hash_in(mark).alias("hash"),
        kind_in(mark).alias("kind"),
        time_in(mark).alias("time"),
        is_timed(mark).alias("timed"),
        "ts",
    )


def keys_received(facts: Facts) -> DataFrame:
    """What records, stream entries and documents of numbers say that entities have received: `entity, message, at,
    numbered`."""
    handled = facts.transactions.select("entity", "message", "at", F.lit(False).alias("numbered"))
    numbered = facts.numbered.select("entity", "message", "at", F.lit(True).alias("numbered"))
    seen = handled.unionByName(numbered.where(F.col("message").isNotNull())).groupBy("entity", "message")
    return seen.agg(F.min("at").alias("at"), F.bool_or("numbered").alias("numbered"))


def known(facts: Facts) -> DataFrame:
    """`consumer, hash`: the messages that entities of a type know, or may know."""
    by_key = (
        facts.transactions.select("entity", "message")
        .unionByName(facts.numbered.select("entity", "message"))
        .unionByName(facts.unreadable.select("entity", "message"))
        .where(F.col("message").isNotNull())
        .select("entity", hash_of(F.col("message")).alias("hash"))
    )
    by_mark = marked(facts).select("entity", hash_in(F.col("mark")).alias("hash"))
    return by_mark.unionByName(by_key).select(type_of("entity").alias("consumer"), "hash").distinct()


def put_aside(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """`hash`: of messages that are parked, were discarded, or were sent again as new ones or a moment ago."""
    is_new = F.col("sent") != F.col("message")
    young = F.col("ts") > before(now, thresholds.lost_after)
    aside = facts.parked.where(~F.col("gone") | F.col("sent").isNull() | is_new | young)
    return aside.select(hash_of(F.col("message")).alias("hash")).distinct()


def renewed(facts: Facts) -> DataFrame:
    """`hash`: of new messages that parked ones were made."""
    done = facts.parked.where(F.col("sent").isNotNull()).select(F.col("sent").alias("key"))
    source = F.substring_index("message", "/", 1)
    made = facts.parked.where(F.col("renewed").isNotNull()).select(
        F.concat(source, F.lit("/"), _renewed("entity", "message", F.unix_micros("renewed"))).alias("key")
    )
    return done.unionByName(made).select(hash_of(F.col("key")).alias("hash"))


@by_row(StringType())
def _renewed(entity: str, message: str, time: int) -> str:
    return renewed_id(entity, message, _EPOCH + timedelta(microseconds=time))


def of_read_models(facts: Facts) -> DataFrame:
    """`hash`: of what read models may have sent. They note the message that each number had, and not what came of it."""
    causes = facts.numbered.where(F.col("message").isNotNull())
    causes = causes.join(facts.entities.select("entity", "prefix"), "entity")
    each = causes.withColumn("index", F.explode(F.sequence(F.lit(0), F.lit(MOST_OUTPUTS - 1))))
    id = output_id(F.col("entity"), hash_of(F.col("message")), F.col("index"))
    return each.select(hash_of(F.concat("prefix", id)).alias("hash"))


def unpaid(facts: Facts) -> DataFrame:
    """The entries that no book pays: the columns of `owing`; and `book, number`, `used, open, stuck` of the book, null if there
    is none."""
    owing = facts.owing.withColumns(
        {
            "book": F.substring_index("tx", ".", 1),
            "number": F.coalesce(F.substring_index("tx", ".", -1).cast("bigint"), F.lit(0).cast("bigint")),
        }
    )
    found = owing.join(facts.books.drop("ts"), "book", "left")
    pays = (F.col("number") > 0) & (F.col("number") <= F.col("used")) & ~F.array_contains("open", F.col("number"))
    return found.where(~F.coalesce(pays, F.lit(False)))


def forgetful(facts: Facts) -> DataFrame:
    """`entity`: of which marks, records or numbers are gone, since they expired or for another reason."""
    numbers = facts.numbered.where(F.col("message").isNotNull() & ~F.col("held"))
    told = (
        facts.entities.select("entity", F.size(marks_in("marks")).alias("told"))
        .unionByName(counted(facts).select("entity", F.size(marks_in("marks")).alias("told")))
        .unionByName(facts.transactions.select("entity", "version").distinct().select("entity", F.lit(1).alias("told")))
        .unionByName(numbers.select("entity", F.lit(1).alias("told")))
    )
    told = told.groupBy("entity").agg(F.sum("told").alias("told"))
    entities = facts.entities.select("entity", "version").join(told, "entity")
    return entities.where(F.col("told") < F.col("version")).select("entity")


def any_hash(frames: Iterable[DataFrame]) -> DataFrame:
    """The hashes of frames, each once."""
    return reduce(DataFrame.unionByName, (frame.select("hash") for frame in frames)).distinct()
