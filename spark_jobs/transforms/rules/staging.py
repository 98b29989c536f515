"""Rules about staged outputs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds, before, kept_messages, second
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
        detail=sentence("The staged outputs of transaction %s belong to no entry.", "tx"),
        advice="Run clean-up, which fences the entity and then deletes them. If it runs daily, look why it keeps them.",
        since=F.timestamp_seconds("ts"),
    )


def garbage(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """Staged documents beyond the horizon that neither an entry nor a kept message names: `Facts.staged`.

    A crash before the commit leaves such a document, and so does a lost reply, or a commit that drops its entry, since deleting
    is best effort. No attempt lives longer than the horizon, so no commit that the read of the entity missed can name it. It
    violates nothing: clean-up deletes it, behind a fence.
    """
    staged = facts.staged.where(F.col("ts") <= before(now, thresholds.horizon))
    named = facts.transactions.where(F.col("origin") == "entry").select("entity", "tx")
    named = named.unionByName(kept_messages(facts).select("entity", "tx"))
    return facts.without_unreadable(staged.join(named, ["entity", "tx"], "left_anti"))


def staged_missing(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """An entry owes staged outputs, and there is neither a staged document nor a record; or a kept message has no document.

    Staged documents go only after the commit that drops its entry, or that releases or cancels what it keeps, or behind a fence
    where nothing names it. Grace: the entry is older than the grace by the time of its attempt; where a message is kept, the
    entity by its last write. Between the reads of the entity and of the library's container the entry may have left, and the
    document gone: the second look, which reads the entity again, acquits it.
    """
    apart = (F.col("owes") == "staged") & (second("at") <= before(now, thresholds.grace))
    owing = facts.transactions.where((F.col("origin") == "entry") & apart)
    staged = facts.staged.select("entity", "tx")
    recorded = facts.transactions.where(F.col("origin") == "record").select("entity", "tx")
    lacking = owing.join(staged.unionByName(recorded), ["entity", "tx"], "left_anti")
    kept = kept_messages(facts).where(F.col("ts") <= before(now, thresholds.grace))
    return findings(
        facts.without_unreadable(kept.join(staged, ["entity", "tx"], "left_anti")),
        "staged_missing",
        subject=F.col("id"),
        detail=sentence(
            "The entity keeps the message until %s, and its document %s is gone.", F.col("due").cast("string"), "tx"
        ),
        advice="Restore the document from a backup: until then the message is not sent. Then find out which program deletes "
        "documents of the library.",
        since=F.timestamp_seconds("ts"),
    ).unionByName(
        findings(
            facts.without_unreadable(lacking),
            "staged_missing",
            message="message",
            versions=F.array("version"),
            subject=F.col("tx"),
            detail=sentence(
                "The commit owes outputs that transaction %s staged, and the staged document is gone.", "tx"
            ),
            advice="Restore the document from a backup before the entity's next message, which would take its outputs for "
            "published; or send them by hand, with the ids that the entry lists. Then find out which program deletes documents "
            "of the library.",
            since="at",
        )
    )
