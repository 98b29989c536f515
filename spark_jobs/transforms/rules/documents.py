"""The rule about entity documents that another program deleted or restored."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, type_of
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sequences import receptions

_LOST = "document_lost"
_ADVICE = (
    "The messages in the lost ledger are unknown now: a copy of one would be applied again. Restore the document from a backup "
    "if no message was processed since. Then find out which program deletes documents of entities, or restores old ones. To "
    "delete an entity, let a handler call context.delete()."
)


def document_lost(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A commit is proven, and no ledger of its entity contains it: the document is gone, was made anew, or is an old copy.

    The library deletes no entity document, and no ledger of its own ever falls behind: `context.delete()` and a fence leave a
    tombstone, whose ledger goes on. So each of these proves a version of the ledger:

    - A record, and an entry of a stream, which were written in the commit's own batch.
    - A page, which names the version of the ledger that it was cut from.
    - A number of a channel, which was written in one batch with the read model: the number is below the next one, or held.
    - An earlier audit saw the entity at the version (`Facts.seen`).

    Kept and parked messages prove no commit. Entities of a type whose container the job does not read are not
    judged. It cannot see an entity without such a proof: all its commits were in its ledger, and no audit saw it; nor one that
    was made anew and has as many versions as before: for that see `two_owners` and `history_taken_back`.
    Grace: the proof is older than the grace by the service's time of writing, or of that audit.
    """
    old = before(now, thresholds.grace)
    ledgers = facts.entities.select("entity", F.col("version").alias("stored"))
    proven = _proven(facts, old).join(ledgers, "entity", "left")
    lost = proven.where(F.col("stored").isNull() | (F.col("stored") < F.col("version")))
    lost = lost.groupBy("entity").agg(
        F.max("version").alias("version"), F.first("stored").alias("stored"), F.max("at").alias("at")
    )
    gone = sentence("The entity had version %d, and it has no document, or none with a ledger.", "version")
    fallen = sentence("The entity had version %d, and its ledger has version %d.", "version", "stored")
    judged = _judged(facts, thresholds)
    versions = findings(
        judged(lost),
        _LOST,
        detail=F.when(F.col("stored").isNull(), gone).otherwise(fallen),
        advice=_ADVICE,
        since=F.timestamp_seconds("at"),
    )
    numbers = findings(
        judged(_beyond(facts, old)),
        _LOST,
        subject=F.col("channel"),
        detail=sentence(
            "The read model received number %d in channel %s of %s, and its ledger does not contain it.",
            "number",
            "channel",
            "source",
        ),
        advice=_ADVICE,
        since=F.timestamp_seconds("at"),
    )
    return versions.unionByName(numbers)


def _proven(facts: Facts, old: int) -> DataFrame:
    """Versions that ledgers had: `entity, version, at`, the second of the proof."""
    records = facts.transactions.where(F.col("ts") <= old)
    nothing = F.lit(0).cast("bigint").alias("version")  # A read model may have received numbers and handled none.
    proofs = [
        records.select("entity", "version", F.col("ts").alias("at")),
        facts.pages.where(F.col("ts") <= old).select("entity", "version", F.col("ts").alias("at")),
        facts.numbered.where(F.col("ts") <= old).select("entity", nothing, F.col("ts").alias("at")),
    ]
    if facts.seen is not None:
        seen = facts.seen.where(F.col("seen_at") <= old)
        proofs.append(seen.select("entity", "version", F.col("seen_at").alias("at")))
    return reduce(DataFrame.unionByName, proofs)


def _beyond(facts: Facts, old: int) -> DataFrame:
    """The highest number of each channel that a read model received and its ledger does not contain."""
    received = receptions(facts).select("entity", "channel", "next", "held")
    numbers = facts.numbered.where(F.col("ts") <= old).select("entity", "channel", "number", "source", "ts")
    numbers = numbers.join(facts.entities.select("entity"), "entity", "left_semi")
    places = numbers.join(received, ["entity", "channel"], "left")
    held = F.exists("held", lambda run: (run[0] <= F.col("number")) & (F.col("number") <= run[1]))
    beyond = places.where(F.col("next").isNull() | ((F.col("number") >= F.col("next")) & ~held))
    return beyond.groupBy("entity", "channel").agg(
        F.max("number").alias("number"), F.min("source").alias("source"), F.max("ts").alias("at")
    )


def _judged(facts: Facts, thresholds: Thresholds) -> Callable[[DataFrame], DataFrame]:
    """Leaves the rows of entities whose absence can be judged."""
    type = type_of("entity")
    known = type.isNotNull() if thresholds.types is None else type.isin(*thresholds.types)
    return lambda frame: facts.without_unreadable(frame.where(known))
