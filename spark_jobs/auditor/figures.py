"""The figures of the report's charts, counted on the executors.

The number of duplicates over time is not among them: a duplicate leaves no trace in the store. The application's telemetry
counts them.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.report.contents import Pictures
from spark_jobs.spark.frames import capped, kept
from spark_jobs.transforms.facts import Facts, second
from spark_jobs.transforms.marks import instant_of, time_in
from spark_jobs.transforms.rules.sightings import marked, unpaid

SPANS: Final = (1, 10, 60, 600, 3600, 86_400, 604_800)
"""Seconds of time that one point of a chart may cover."""
MOST_POINTS: Final = 120
LONGEST: Final = timedelta(weeks=MOST_POINTS)
"""Older transactions are drawn at the left edge."""
AGES: Final = (("< 1 min", 60), ("1-10 min", 600), ("10-60 min", 3600), ("1-24 h", 86_400), ("> 1 d", None))
"""Names of ages, each with the second at which it ends."""
KINDS: Final = {"companion": "companion records", "stream": "stream entries"}
IN_LEDGERS, IN_PAGES = "marks in ledgers", "marks in pages"
WORST: Final = 10

_COMMITS, _OWED = "commits", "owed"


def pictures(facts: Facts, findings: DataFrame, now: int) -> Pictures:
    """The figures of an audit.

    Args:
        now: the service's time in seconds since 1970.
    """
    moments = kept(_moments(facts, now).groupBy("series", "second").count())
    ends, _ = capped(moments.where(F.col("series") != _OWED).agg(F.min("second"), F.max("second")), 1)
    first, last = ends[0][0], ends[0][1]
    span = next((span for span in SPANS if (last or 0) - (first or 0) < MOST_POINTS * span), SPANS[-1])
    begins = F.when(F.col("series") == _OWED, _age(now)).otherwise(F.col("second") - F.pmod("second", F.lit(span)))
    most = (len(KINDS) + 5) * (MOST_POINTS + 2) + len(AGES)
    counted, _ = capped(
        moments.groupBy("series", begins.alias("begin")).agg(F.sum("count").alias("count")).orderBy("begin"), most
    )
    series: dict[str, list[tuple[int, int]]] = {}
    for row in counted:
        series.setdefault(row["series"], []).append((row["begin"], row["count"]))
    owed = dict(series.pop(_OWED, []))
    timed = {name: tuple((instant(begin), number) for begin, number in points) for name, points in series.items()}
    worst, _ = capped(findings.groupBy("entity").count().orderBy(F.desc("count"), "entity"), WORST)
    return Pictures(
        backlog=tuple((name, owed.get(place, 0)) for place, (name, _) in enumerate(AGES)),
        span=span,
        commits=timed.pop(_COMMITS, ()),
        growth=dict(sorted(timed.items())),
        worst=tuple((row["entity"] or "of no known entity", row["count"]) for row in worst),
    )


def _moments(facts: Facts, now: int) -> DataFrame:
    """Rows to count: the `series`, and the `second` of writing, or of the message."""
    kinds = F.create_map(*(F.lit(text) for pair in KINDS.items() for text in pair))
    transactions, marks = facts.transactions, marked(facts)
    come = F.least(second(instant_of(time_in(F.col("mark")))), "ts")
    parts = [
        _series(marks, F.lit(_COMMITS), come),
        _series(transactions, F.lit(_COMMITS), second("at")),
        _series(unpaid(facts), F.lit(_OWED), second("at")),
        _series(transactions.where("owes"), F.lit(_OWED), second("at")),
        _series(marks, F.when(F.col("paged"), IN_PAGES).otherwise(IN_LEDGERS), F.col("ts")),
        _series(transactions, kinds[F.col("origin")], second("at")),
        _series(facts.staged, F.lit("kept messages"), F.col("ts")),
        _series(facts.numbered, F.lit("numbers"), F.col("ts")),
    ]
    oldest = now - int(LONGEST.total_seconds())
    moment = F.greatest(F.least("second", F.lit(now)), F.lit(oldest))
    return reduce(DataFrame.unionByName, parts).withColumn("second", moment)


def _series(frame: DataFrame, name: Column, moment: Column) -> DataFrame:
    return frame.select(name.alias("series"), moment.alias("second"))


def _age(now: int) -> Column:
    """The index in `AGES`."""
    age = F.lit(now) - F.col("second")
    limits = [limit for _, limit in AGES if limit is not None]
    return reduce(lambda place, limit: place + (age >= limit).cast("bigint"), limits, F.lit(0).cast("bigint"))


def instant(second: int) -> datetime:
    """A second of the service as a time in UTC."""
    return datetime.fromtimestamp(second, timezone.utc)
