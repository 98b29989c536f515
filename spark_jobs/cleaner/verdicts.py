"""The verdict on each document: the rules of `protocols.outbox.clean` and `protocols.steps.clean_companions`, on frames.

`clean_companions.may_go` and `last_entry` are the same rules for one document; a property test compares them. A view of any
age is enough for both, as is argued there, and for channels, see `_superseded`. For staged documents the view only decides
which are worth a fence.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType

from spark_jobs.job.configuration import Job
from spark_jobs.source.application import Beginning
from spark_jobs.spark.frames import by_row
from spark_jobs.transforms.facts import type_of
from spark_jobs.transforms.schemas import LIBRARY

GOES: Final = "goes"
"""Verdict on documents that may be deleted; other verdicts are a `Reason`."""


class Reason(StrEnum):
    """Why a document is kept."""

    TOO_YOUNG = "too young"
    OWES = "owes outputs"
    WAITS = "holds a message that waits"
    NEEDED = "needed by younger ones"
    """An entry of an interval that is not old as a whole, or of a stream that the ledger does not name; a number that its
    channel has not passed; a channel that nothing younger includes; the seal, for good."""
    NAMED = "named by its entity"
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


_OF_LEDGER: Final = ("version", "channels", "snapshot_every", "event_sourced", "receptions")
JUDGED: Final = ("container", "kind", "id", "partition", "etag", "ts", "entity", "message", "tx", "verdict")


def judged(documents: DataFrame, job: Job, beginning: Beginning) -> DataFrame:
    """The verdict on each document of the library.

    Args:
        documents: `schemas.DOCUMENT` with a column `container`: all entities, and all documents that may be old.
        job: limits and entity types.
        beginning: the time, and the age from which documents are old.

    Returns:
        The columns of `JUDGED`. `partition` is the JSON array of the partition key's values.
    """
    mine = documents.where(F.col("kind").isNull() | (F.col("kind") != "entity"))
    known = mine.join(_ledgers(documents), "entity", "left")
    age = F.lit(beginning.now) - F.col("ts")
    old = age > beginning.kept.total_seconds()
    is_entry = (F.col("kind") == "entry") & F.col("problem").isNull() & old
    newest = F.max(F.when(is_entry, F.col("version"))).over(Window.partitionBy("entity"))
    with_last = known.withColumn("newest", F.coalesce(newest, F.lit(0))).withColumn("last", _last())
    verdict = F.coalesce(
        F.when(F.col("problem").isNotNull(), Reason.UNREADABLE),
        F.when(F.col("kind") == "parked", Reason.PARKED),
        F.when(~_is_known(job), Reason.NO_TYPE),
        F.when(F.col("kind") == "staged", _of_staged(age > job.horizon.total_seconds())),
        F.when((F.col("kind") == "request") & F.col("answer").isNotNull(), Reason.ANSWERED),
        F.when(~old, Reason.TOO_YOUNG),
        F.when(F.col("kind") == "seal", Reason.NEEDED),
        F.when((F.col("kind") == "channel") & ~_superseded(), Reason.NEEDED),
        F.when(F.col("place") == LIBRARY, GOES),
        F.when(F.col("owes").isNotNull(), Reason.OWES),
        F.when(F.col("held"), Reason.WAITS),
        F.when((F.col("kind") != "processed") & (_place() > F.col("last")), Reason.NEEDED),
        F.lit(GOES),
    )
    partition = F.when(F.col("place") == LIBRARY, _library_partition("entity")).otherwise(_entity_partition("entity"))
    return with_last.withColumns({"verdict": verdict, "partition": partition}).select(*JUDGED)


def _ledgers(documents: DataFrame) -> DataFrame:
    """From the ledgers: `entity`, version, channels, kind of the stream, receptions, and the transactions of entries."""
    readable = documents.where((F.col("kind") == "entity") & F.col("problem").isNull() & F.col("ledger").isNotNull())
    return readable.select(
        "entity",
        *(F.col(f"ledger.{name}").alias(f"its_{name}") for name in _OF_LEDGER),
        F.col("ledger.entries.tx").alias("named"),
    )


def _last() -> Column:
    """The last version or number that may go."""
    every = F.col("its_snapshot_every")
    whole = F.floor(F.col("newest") / every) * every
    entry = F.when(every.isNull(), 0).when(F.col("its_event_sourced"), whole).otherwise(F.col("newest"))
    of_channel = F.filter("its_receptions", lambda one: one.getField("channel") == F.col("order.channel"))
    numbered = F.coalesce(of_channel.getItem(0).getField("next"), F.lit(1)) - 1
    return F.when(F.col("kind") == "entry", entry).when(F.col("kind") == "numbered", numbered)


def _place() -> Column:
    return F.when(F.col("kind") == "entry", F.col("version")).otherwise(F.col("order.number"))


def _superseded() -> Column:
    """Whether all numbers of a channel's document are in a younger ledger, or in a document of a younger one.

    A view of any age is enough. The version of a document is that of the ledger which it was read from, and a ledger knows all
    that an older one knew. So a younger ledger with the channel relies on no older document: when the channel leaves it, a
    document of its own version is written. A ledger of the same version may be about to lose the channel to this document. Of
    another turn no document is enough: it may not count.
    """
    of_ledger = F.filter("its_channels", lambda one: one.getField("id") == F.col("channel.id"))
    in_ledger = (F.col("its_version") > F.col("version")) & F.exists(of_ledger, _includes)
    documents = F.collect_list(F.when(F.col("kind") == "channel", F.struct("version", "channel.received")))
    of_channel = Window.partitionBy("entity", "kind", "channel.id", "turn")
    younger = F.exists(
        documents.over(of_channel), lambda one: (one.getField("version") > F.col("version")) & _includes(one)
    )
    return F.coalesce(in_ledger, F.lit(False)) | younger


def _includes(other: Column) -> Column:
    """Whether a channel has all numbers of the document's. Each range of the one lies in a range of the other."""
    return F.forall(
        "channel.received",
        lambda run: F.exists(other.getField("received"), lambda other: (other[0] <= run[0]) & (run[1] <= other[1])),
    )


def _of_staged(old: Column) -> Column:
    is_named = F.coalesce(F.array_contains("named", F.col("tx")), F.lit(False))
    return F.when(~old, Reason.TOO_YOUNG).when(is_named, Reason.NAMED).otherwise(GOES)


def _is_known(job: Job) -> Column:
    """Whether the entity is of a type of the job file, with as many partition key values. Only an outbox stages outputs."""
    parts = F.size(F.from_json("entity", "array<string>"))

    def is_of(type: str, width: int, *, stages: bool) -> Column:
        same = (type_of("entity") == type) & (parts == width + 2)
        return same if stages else same & (F.col("kind") != "staged")

    types = (is_of(one.type, len(one.partition_key), stages=one.protocol == "outbox") for one in job.entities)
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
