"""The rule about unreadable documents."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.rules.findings import findings, sentence


def unreadable(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A document that does not fit the schema: damaged, or of a newer version of the library.

    Rules about absence skip its entity, since the missing fact may be in the document; rules about the messages that consumers
    of a type know skip the type, and nothing is said of marks that no entity explains. It needs no grace: documents are written
    whole.
    """
    del thresholds, now
    return findings(
        facts.unreadable,
        "unreadable",
        message="message",
        subject=F.concat_ws("/", "place", "id"),
        detail=sentence(
            "The document %s in %s is unreadable: %s. Rules about absence skipped its entity.",
            "id",
            "place",
            "problem",
        ),
        advice="If it is of a newer version, run the audit of that version. Else restore it from a backup; do not delete it, "
        "or duplicates of its message become unknown.",
        since=F.timestamp_seconds("ts"),
    )
