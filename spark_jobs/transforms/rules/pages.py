"""Rules about pages: the marks that have left a ledger."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before
from spark_jobs.transforms.rules.findings import findings, sentence
from spark_jobs.transforms.rules.sightings import counted

_COPIES: Final = "A copy of a message in it would be applied again, unless it is refused for its age. "


def page_missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A page is gone, though its newest mark is younger than the retention. Grace and limits: see `missing`."""
    return findings(
        facts.without_unreadable(missing(facts, thresholds, now)),
        "page_missing",
        subject=F.concat(F.lit("page:"), "number"),
        detail=sentence("Page %d is gone before its time.", "number"),
        advice=_COPIES
        + "Restore the library's container from a backup, or wait until the retention is over. Then find out "
        "what deletes documents there: a time to live of the container, another program, a clean-up of another application.",
        since="at",
    )


def missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Pages that are gone before their time: `entity, number, until` (milliseconds), `at`.

    A ledger names its newest page, and each page has the time of the newest mark of the one before. Clean-up takes a page when
    that time is older than the retention. A page is written before the commit that names it, and entities are read before
    pages, so no grace is needed. What it cannot see: a page below one that is gone.
    """
    pages = counted(facts)
    by_pages = pages.select("entity", (F.col("number") - 1).alias("number"), F.col("before").alias("until"), "ts")
    by_ledgers = facts.entities.select("entity", F.col("cut").alias("number"), F.col("complete").alias("until"), "ts")
    young = (F.col("number") > 0) & (F.col("until") >= before(now, thresholds.retention) * 1000)
    each = by_ledgers.unionByName(by_pages).where(young).groupBy("entity", "number")
    named = each.agg(F.max("until").alias("until"), F.min("ts").alias("ts"))
    gone = named.join(pages.select("entity", "number"), ["entity", "number"], "left_anti")
    return gone.select("entity", "number", "until", F.timestamp_seconds("ts").alias("at"))


def history_taken_back(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A page is of no history that its entity has: the document was put back to an earlier version, and went on from there.

    A commit on the version that a page was cut from names the page. So a page between the newest that the ledger names and the
    ledger's own version is of another history. Pages above the version of the ledger are for `document_lost`. The library
    deletes such a page when the next one is to take its place. So an entity that was put back for long shows nothing.
    Grace: the page is older than the grace, by the service's time of writing.
    """
    other = (F.col("number") > F.col("cut")) & (F.col("version") < F.col("stored"))
    return findings(
        facts.without_unreadable(facts.pages.where(other & (F.col("ts") <= before(now, thresholds.grace)))),
        "history_taken_back",
        versions=F.array("version"),
        detail=sentence(
            "A page was cut from version %d of the ledger, and the ledger, which has version %d, never had it: the entity was "
            "put back to an earlier version.",
            "version",
            "stored",
        ),
        advice="What was processed in between is undone, and the messages of the page may be applied again; what it had sent "
        "was sent all the same. Ask who restored the document, and process again what is missing; see output_unknown and "
        "output_lost.",
        since=F.timestamp_seconds("ts"),
    )
