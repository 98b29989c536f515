"""The result of each document, counted by reading again, since deletes may be unanswered; and the files of the results."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.cleaner.verdicts import GOES, Reason
from spark_jobs.source.port import Outcome, shown_units
from spark_jobs.spark.folder import Folder, results_folder
from spark_jobs.spark.frames import capped

TABLE, SUMMARY, BLOBS = "documents.parquet", "summary.json", "blobs.txt"

REMOVED: Final = "removed"
GONE: Final = "gone"
"""It was to be deleted, and was absent: another program deleted it, or an earlier send of a request of this run."""

AGES: Final = (
    (1, "under a day"),
    (7, "under a week"),
    (30, "under 30 days"),
    (60, "under 60 days"),
    (365, "under a year"),
)
_OLDER: Final = "a year or more"
_DAY: Final = 86_400
_MOST_COUNTS: Final = 10_000
"""Most combinations of container, kind, result and age: there are never nearly as many."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The documents of one kind in one container.

    Attributes:
        results: number of each result: `goes` (a dry run), `removed`, `gone`, or a `verdicts.Reason`.
        ages: number of each age, of the documents with the verdict that they may go.
    """

    container: str
    kind: str
    results: Mapping[str, int]
    ages: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a clean-up.

    Attributes:
        mode: "dry run" or "delete".
        at: the service's time at the beginning, ISO 8601.
        retention, horizon: in seconds.
        counts: by container and kind.
        blobs: results of blobs, as `Counts.results`; None if no container of blobs was named.
        units: RU spent; None if the source does not report all.
        archive: folder of the archive; None without one.
        pages: whether the clean-up reads pages; if not, the store deletes them.
    """

    database: str
    mode: str
    at: str
    retention: float
    horizon: float
    counts: tuple[Counts, ...]
    blobs: Mapping[str, int] | None
    units: float | None
    seconds: float
    archive: str | None = None
    pages: bool = True

    def total(self, result: str) -> int:
        """Number of documents with a result."""
        return sum(count.results.get(result, 0) for count in self.counts)

    def lines(self) -> Iterable[str]:
        """Lines for an operator: documents by kind, result and age."""
        for count in self.counts:
            yield f"{count.container}, {count.kind}: {_listed(count.results)}"
            if count.ages:
                yield f"    by age: {_listed(count.ages)}"
        if self.blobs is not None:
            yield f"blobs: {_listed(self.blobs) or 'nothing to judge'}"
        if not self.pages:
            yield "pages: left to the store, which deletes them (EXACTLYONCE__expiry)"
        verb = (
            f"{self.total(GOES):,} documents would go" if self.mode == "dry run" else f"{self.total(REMOVED):,} removed"
        )
        yield f"{self.mode} of {self.database}: {verb}, {shown_units(self.units)}, {self.seconds:.1f} s"


def results(judged: DataFrame, outcomes: DataFrame, there: DataFrame, *, deleted: bool) -> DataFrame:
    """The result of each judged document: the columns of `verdicts.JUDGED`, and `result`.

    Args:
        outcomes: `removal.OUTCOMES`.
        there: the documents that are there now: `Scan.there`.
        deleted: whether the clean-up deletes; if not, it is a dry run.
    """
    now = there.select("container", "id", F.col("entity").alias("whose"), F.col("etag").alias("now"))
    same = F.col("entity").eqNullSafe(F.col("whose"))
    seen = judged.alias("it").join(
        now.alias("there"),
        same & (F.col("it.id") == F.col("there.id")) & (F.col("it.container") == F.col("there.container")),
        "left",
    )
    ended = seen.select("it.*", "now").join(outcomes, ["container", "entity", "id"], "left")
    return ended.withColumn("result", F.coalesce(*_result(deleted=deleted))).drop("now", "outcome")


def _result(*, deleted: bool) -> Iterable[Column]:
    """The first that is not null is the result. A changed document has another ETag than the judged one."""
    verdict, outcome, now = F.col("verdict"), F.col("outcome"), F.col("now")
    yield F.when(verdict != GOES, verdict)
    yield F.when(outcome.isin([item.value for item in Reason]), outcome)
    if not deleted:
        yield verdict
    yield F.when(outcome == Outcome.DELETED, REMOVED)  # The primary answered so; a replica may lag.
    yield F.when(now.isNull() & (outcome == Outcome.UNKNOWN), REMOVED)
    yield F.when(now.isNull(), GONE)
    yield F.when(now != F.col("etag"), Reason.CHANGED)
    yield F.lit(Reason.LEFT)


def counted(results: DataFrame, there: DataFrame, now: int) -> tuple[Counts, ...]:
    """Count the results of judged documents, and the documents that were too young to be read.

    Args:
        now: the service's time at the beginning.
    """
    keys = ("container", "kind", "result", "age")
    done = results.withColumn("age", F.when(F.col("verdict") == GOES, _age(now))).groupBy(*keys).count()
    judged = results.select("container", "id", "entity")
    same = [there[name].eqNullSafe(judged[name]) for name in judged.columns]
    young = there.join(judged, same, "left_anti").groupBy("container", "kind").count()
    why = F.when(F.col("kind") == "parked", Reason.PARKED).otherwise(Reason.TOO_YOUNG)
    others = young.select("container", "kind", why.alias("result"), F.lit(None).alias("age"), "count")
    rows, _ = capped(done.unionByName(others), _MOST_COUNTS)
    found: dict[tuple[str, str], tuple[Counter[str], Counter[str]]] = defaultdict(lambda: (Counter(), Counter()))
    for container, kind, result, age, number in rows:
        by_result, by_age = found[container, kind or "of no kind"]
        by_result[result] += number
        if age:
            by_age[age] += number
    return tuple(
        Counts(
            *key, _ordered(by_result, (GOES, REMOVED, GONE)), _ordered(by_age, [*(name for _, name in AGES), _OLDER])
        )
        for key, (by_result, by_age) in sorted(found.items())
    )


def _age(now: int) -> Column:
    days = (F.lit(now) - F.col("ts")) / _DAY
    return F.coalesce(*(F.when(days < bound, name) for bound, name in AGES), F.lit(_OLDER))


def _ordered(numbers: Mapping[str, int], first: Sequence[str]) -> dict[str, int]:
    """The numbers by name: some names first, the others sorted."""
    return {name: numbers[name] for name in (*first, *sorted(numbers.keys() - {*first})) if name in numbers}


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in numbers.items())


def destination(spark: SparkSession, place: str) -> Folder:
    """The folder of the clean-up's results. Raises as `results_folder`."""
    return results_folder(spark, place, "a clean-up", {TABLE, SUMMARY})


def write(folder: Folder, summary: Summary, documents: DataFrame, blobs: Iterable[str]) -> None:
    """Replace the results.

    Args:
        documents: the documents with the verdict that they may go: the columns of `verdicts.JUDGED`, and `result`.
        blobs: names of the blobs that go.
    """
    with folder.replaced() as unfinished:
        documents.write.parquet(unfinished.place(TABLE))
        unfinished.write(SUMMARY, json.dumps(asdict(summary), indent=2) + "\n")
        if summary.blobs is not None:
            unfinished.write(BLOBS, "".join(f"{name}\n" for name in blobs))
