"""The rule about what cannot be judged."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.rules.findings import findings, said


def unreadable(facts: Facts, thresholds: Thresholds, now: int) -> DataFrame:
    """A document that the schema does not explain: damaged, or of a newer version of the library.

    Rules that find something absent do not accuse its entity, as what they miss may stand there; those that ask what the
    consumers of a type know keep silent on the type. It needs no grace: documents are written whole.
    """
    del thresholds, now
    return findings(
        facts.unreadable,
        "unreadable",
        message="message",
        subject=F.concat_ws("/", "place", "id"),
        detail=said(
            "The document %s in %s cannot be explained: %s. What is absent beside it was not judged.",
            "id",
            "place",
            "problem",
        ),
        advice="If it is of a newer version, run the audit of that version. Else restore it from a backup; do not just delete "
        "it, or duplicates will no longer be known.",
        since=F.timestamp_seconds("ts"),
    )
