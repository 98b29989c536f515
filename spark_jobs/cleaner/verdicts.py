"""The verdict on each document: the rules of `protocols.outbox` and `protocols.steps.clean_companions`, on frames.

`clean_companions.may_go` and `last_entry` are the same rules for one document; a property test compares them. A view of any age
is enough for them, as is argued there. A page goes when no message whose mark is in the page is judged any more, which no later
write can change. For staged documents the view only decides which are worth a fence.
"""

from __future__ import annotations

import json
from datetime import timedelta
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType

from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE
from spark_jobs.job.configuration import Job
from spark_jobs.source.account import Beginning
from spark_jobs.spark.frames import by_row

GOES: Final = "goes"
"""Verdict on documents that may be deleted; other verdicts are a `Reason`."""
BOOKS_STAY: Final = timedelta(days=60)
"""Age at which a book goes: its process writes a used book far more often. The store deletes it then, if nobody does. Until
then entries of quiet entities rely on the book, which proves that they owe nothing."""
NOTES_STAY: Final = 2 * AHEAD
"""Time after the retention at which the note on a parked message goes. Until then an audit may look for the message."""


class Reason(StrEnum):
    """Why a document is kept."""

    TOO_YOUNG = "too young"
    OWES = "owes outputs"
    WAITS = "holds a message that waits"
    NEEDED = "needed by younger ones"
    """An entry of an interval that is not old as a whole, or of a stream that the ledger does not name; a number that its
    sequence has not passed."""
    NAMED = "named by its entity"
    PROVES = "proves what was sent"
    """A book. It goes after 60 days."""
    PARKED = "parked"
    """It waits for an operator, who requeues or discards it."""
    ANSWERED = "answered"
    """A request that was carried out, and that its caller has not closed."""
    UNREADABLE = "unreadable"
    """These jobs cannot read it, or its entity's document. A newer version of the library may have written it."""
    NO_TYPE = "of no entity of the job file"
    """The job does not read that entity, so it may owe outputs."""
    UNDECIDED = "not decided"
    """Its entity was too busy for a fence, did not answer, or does not exist and shares unique keys with another tombstone. The
    next run tries again."""
    CHANGED = "changed meanwhile"
    LEFT = "still there"
    """It was to be deleted and is still there for an unknown reason, or a replica was behind. The next run tries again."""


JUDGED: Final = ("container", "kind", "id", "partition", "etag", "ts", "entity", "message", "tx", "verdict")


def oldest_page(beginning: Beginning) -> int:
    """The time, in milliseconds since 1970, before which the newest mark of a page has to be for the page to go.

    Processes refuse a message whose page is gone before its time. Their time may be a little behind the job's.
    """
    return int((beginning.now - (beginning.kept + CLOCK_TOLERANCE).total_seconds()) * 1000)


def judged(documents: DataFrame, job: Job, beginning: Beginning) -> DataFrame:
    """The verdict on each document of the library.

    Args:
        documents: `scan.candidates`: all documents that may be old, and the entities whose ledgers decide about some.
        beginning: the time, and the age from which documents are old.

    Returns:
        The columns of `JUDGED`. `partition` is the JSON array of the partition key's values.
    """
    known = documents.where(F.col("ledger").isNull()).join(_ledgers(documents), "entity", "left")
    age = F.lit(beginning.now) - F.col("ts")
    old = age > beginning.kept.total_seconds()
    is_entry = (F.col("kind") == "entry") & ~F.col("unreadable") & old
    newest = F.max(F.when(is_entry, F.col("version"))).over(Window.partitionBy("entity"))
    with_last = known.withColumn("newest", F.coalesce(newest, F.lit(0))).withColumn("last", _last())
    kind = F.col("kind")
    verdict = F.coalesce(
        F.when(F.col("unreadable"), Reason.UNREADABLE),
        F.when(kind == "parked", Reason.PARKED),
        F.when(kind == "book", _of_book(age, old)),
        F.when(~_is_known(job), Reason.NO_TYPE),
        F.when(kind == "staged", _of_staged(age > job.horizon.total_seconds())),
        F.when(kind == "page", _of_page(old, oldest_page(beginning))),
        F.when(kind == "unparked", _of_note(age > (beginning.kept + NOTES_STAY).total_seconds())),
        F.when((kind == "request") & F.col("answered"), Reason.ANSWERED),
        F.when(~old, Reason.TOO_YOUNG),
        F.when(F.col("container") == job.library, GOES),
        F.when(F.col("owes"), Reason.OWES),
        F.when(F.col("holds"), Reason.WAITS),
        F.when((kind != "processed") & (_place() > F.col("last")), Reason.NEEDED),
        F.lit(GOES),
    )
    of_library = F.col("container") == job.library
    partition = F.when(of_library, _library_partition("entity")).otherwise(_entity_partition("entity"))
    return with_last.withColumns({"verdict": verdict, "partition": partition}).select(*JUDGED)


def _ledgers(documents: DataFrame) -> DataFrame:
    """The ledgers by `entity`."""
    readable = documents.where(F.col("ledger").isNotNull() & ~F.col("unreadable"))
    return readable.select("entity", F.col("ledger").alias("its"))


def _last() -> Column:
    """The last version or number that may go."""
    every = F.col("its.snapshot_every")
    whole = F.floor(F.col("newest") / every) * every
    entry = F.when(every.isNull(), 0).when(F.col("its.event_sourced"), whole).otherwise(F.col("newest"))
    of_channel = F.filter("its.receptions", lambda item: item.getField("channel") == F.col("channel"))
    numbered = F.coalesce(of_channel.getItem(0).getField("next"), F.lit(1)) - 1
    return F.when(F.col("kind") == "entry", entry).when(F.col("kind") == "numbered", numbered)


def _place() -> Column:
    return F.when(F.col("kind") == "entry", F.col("version")).otherwise(F.col("number"))


def _of_staged(old: Column) -> Column:
    is_named = F.coalesce(F.array_contains("its.kept.tx", F.col("tx")), F.lit(False))
    return F.when(~old, Reason.TOO_YOUNG).when(is_named, Reason.NAMED).otherwise(GOES)


def _of_page(old: Column, oldest: int) -> Column:
    """Answers and blobs are proved for the retention after their page was written, which is once."""
    return F.when((F.col("until") < oldest) & (~F.col("lasting") | old), GOES).otherwise(Reason.TOO_YOUNG)


def _of_note(old: Column) -> Column:
    return F.when(old, GOES).otherwise(Reason.TOO_YOUNG)


def _of_book(age: Column, old: Column) -> Column:
    is_over = age > BOOKS_STAY.total_seconds()
    return F.when(is_over & old, GOES).when(old, Reason.PROVES).otherwise(Reason.TOO_YOUNG)


def _is_known(job: Job) -> Column:
    """Whether the entity is of a type of the job file, with as many partition key values. Only an outbox keeps messages."""
    parts = F.from_json("entity", "array<string>")

    def is_of(type: str, width: int, *, keeps: bool) -> Column:
        same = (parts[0] == type) & (F.size(parts) == width + 2)
        return same if keeps else same & (F.col("kind") != "staged")

    types = (
        is_of(entity.type, len(entity.partition_key), keeps=entity.protocol == "outbox") for entity in job.entities
    )
    return F.coalesce(reduce(or_, types), F.lit(False))


@by_row(StringType())
def _library_partition(entity: str | None) -> str | None:
    return json.dumps([entity])


@by_row(StringType())
def _entity_partition(entity: str | None) -> str | None:
    """The partition key in the key of an entity; None if it is no such key."""
    try:
        _, *partition, _ = json.loads(entity or "")
    except ValueError:
        return None
    return json.dumps(partition)
