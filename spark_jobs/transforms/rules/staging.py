"""Rules about the documents of kept messages."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, kept_messages
from spark_jobs.transforms.rules.findings import findings, sentence


def orphan_staged(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Garbage that clean-up has not deleted, see `garbage`: clean-up has not run for long, or cannot judge that entity.

    Grace: `garbage_after`, by the service's time of writing, and no less than the horizon.
    """
    oldest = before(now, max(thresholds.garbage_after, thresholds.horizon))
    return findings(
        garbage(facts, thresholds, now).where(F.col("ts") <= oldest),
        "orphan_staged",
        message="message",
        subject=F.col("tx"),
        detail=sentence("The document %s holds messages that the entity does not keep.", "tx"),
        advice="Was the entity restored from a backup? Then the messages are lost: process again what sent them. Else run "
        "clean-up, which fences the entity and then deletes the document. If it runs daily, look why it keeps it.",
        since=F.timestamp_seconds("ts"),
    )


def garbage(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Documents of kept messages beyond the horizon that no ledger names: `Facts.staged`.

    A crash before the commit leaves such a document, and so does the commit that releases or cancels the last message in it. No
    attempt lives longer than the horizon, so no commit that the read of the entity missed can name it. It violates nothing:
    clean-up deletes it, behind a fence.
    """
    staged = facts.staged.where(F.col("ts") <= before(now, thresholds.horizon))
    named = kept_messages(facts).select("entity", "tx")
    return facts.without_unreadable(staged.join(named, ["entity", "tx"], "left_anti"))


def staged_missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """An entity keeps a message, and the document that holds it is gone.

    The document is written before the commit that keeps the message, and goes only behind a fence where nothing names it.
    Grace: the last write of the entity is older than the grace. Between the reads of the entity and of the library's container
    the
    message may have been released, and the document gone: the second look, which reads the entity again, acquits it.
    """
    kept = kept_messages(facts).where(F.col("ts") <= before(now, thresholds.grace))
    return findings(
        facts.without_unreadable(kept.join(facts.staged.select("entity", "tx"), ["entity", "tx"], "left_anti")),
        "staged_missing",
        subject=F.col("id"),
        detail=sentence(
            "The entity keeps the message until %s, and its document %s is gone.", F.col("due").cast("string"), "tx"
        ),
        advice="Restore the document from a backup: until then the message is not sent. Then find out which program deletes "
        "documents of the library.",
        since=F.timestamp_seconds("ts"),
    )
