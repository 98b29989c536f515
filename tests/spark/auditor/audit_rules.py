"""Rules of the sample's own."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.report.contents import Severity
from spark_jobs.rules import audit_rule


@audit_rule(
    "A board counts a streak that its hits do not allow",
    reads={"board": "hits bigint, best bigint"},
    advice="Rebuild the board under a new key.",
)
def streak_beyond_hits(boards: DataFrame) -> DataFrame:
    """No streak is longer than all hits."""
    detail = F.format_string("The best streak is %d, of %d hits.", "best", "hits")
    return boards.where("best > hits").select("entity", detail.alias("detail"))


@audit_rule(
    "More was counted than was fired",
    reads={"board": "hits bigint, misses bigint", "range": ""},
    advice="Compare the boards with the ranges.",
    severity=Severity.WATCH,
)
def counted_beyond_fired(boards: DataFrame, ranges: DataFrame) -> DataFrame:
    """A shot is one version of its range, and one hit or miss."""
    counted = boards.agg(F.coalesce(F.sum(F.col("hits") + F.col("misses")), F.lit(0)).alias("counted"))
    fired = ranges.agg(F.coalesce(F.sum("version"), F.lit(0)).alias("fired"))
    detail = F.format_string("Counted were %d shots, fired %d.", "counted", "fired")
    return counted.crossJoin(fired).where("counted > fired").select(F.lit(None).alias("entity"), detail.alias("detail"))
