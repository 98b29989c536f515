"""What became of it: counted by reading again, since deletes may not be answered, and what answers may not be deletes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.cleaner.verdicts import GOES, Reason
from spark_jobs.source.port import Outcome
from spark_jobs.transforms.head import capped

REMOVED: Final = "removed"
GONE: Final = "gone"
"""It was to be deleted, and was not there any more: others did it, or an earlier send of a request of this run."""

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
"""Containers, kinds, results and ages: never nearly as many."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The documents of one kind in one container.

    Attributes:
        container, kind: which.
        results: how many of each result: `goes` (a dry run), `removed`, `gone`, or a `verdicts.Reason`.
        ages: how many of those that go, went or should have gone are of which age.
    """

    container: str
    kind: str
    results: Mapping[str, int]
    ages: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a clean-up did, or would do.

    Attributes:
        database: its name.
        mode: "dry run" or "delete".
        at: the service's time at the beginning, ISO 8601.
        retention, horizon: in seconds.
        counts: by container and kind.
        blobs: results of blobs, as `Counts.results`; None if no container of blobs was named.
        units: RU spent, as far as the service told.
        seconds: how long it took.
        archive: where the archive is; None without one.
    """

    database: str
    mode: str
    at: str
    retention: float
    horizon: float
    counts: tuple[Counts, ...]
    blobs: Mapping[str, int] | None
    units: float
    seconds: float
    archive: str | None = None

    def total(self, result: str) -> int:
        """How many documents have a result."""
        return sum(one.results.get(result, 0) for one in self.counts)

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def lines(self) -> Iterable[str]:
        """For people: what goes or went, by kind and age, and what is kept and why."""
        for one in self.counts:
            yield f"{one.container}, {one.kind}: {_listed(one.results)}"
            if one.ages:
                yield f"    by age: {_listed(one.ages)}"
        if self.blobs is not None:
            yield f"blobs: {_listed(self.blobs) or 'nothing to judge'}"
        verb = (
            f"{self.total(GOES):,} documents would go" if self.mode == "dry run" else f"{self.total(REMOVED):,} removed"
        )
        yield f"{self.mode} of {self.database}: {verb}, {self.units:,.0f} RU, {self.seconds:.1f} s"


@dataclass
class _Counted:
    results: dict[str, int] = field(default_factory=dict)
    ages: dict[str, int] = field(default_factory=dict)


def results(judged: DataFrame, outcomes: DataFrame, there: DataFrame, *, deleted: bool) -> DataFrame:
    """What became of each document that was judged: the columns of `verdicts.JUDGED`, and `result`.

    Args:
        judged: the verdicts.
        outcomes: `container, entity, id, outcome` of what was looked after.
        there: what is there now, as `Looks.there` gives it.
        deleted: whether anything was deleted, or it was a dry run.
    """
    now = there.select("container", "id", F.col("entity").alias("whose"), F.col("etag").alias("now"))
    same = F.col("entity").eqNullSafe(F.col("whose"))
    seen = judged.alias("it").join(
        now.alias("there"),
        same & (F.col("it.id") == F.col("there.id")) & (F.col("it.container") == F.col("there.container")),
        "left",
    )
    known = seen.select("it.*", "now")
    told = known.join(outcomes, ["container", "entity", "id"], "left")
    return told.withColumn("result", F.coalesce(*_result(deleted=deleted))).drop("now", "outcome")


def _result(*, deleted: bool) -> Iterable[Column]:
    """The first that is not null. A changed document has another ETag, so that it was not what was deleted."""
    verdict, outcome, now = F.col("verdict"), F.col("outcome"), F.col("now")
    yield F.when(verdict != GOES, verdict)
    yield F.when(outcome.isin([one.value for one in Reason]), outcome)
    if not deleted:
        yield verdict
    yield F.when(outcome == Outcome.DELETED, REMOVED)  # The primary said so; a replica may not know yet.
    yield F.when(now.isNull() & (outcome == Outcome.UNKNOWN), REMOVED)
    yield F.when(now.isNull(), GONE)
    yield F.when(now != F.col("etag"), Reason.CHANGED)
    yield F.lit(Reason.LEFT)


def counted(results: DataFrame, there: DataFrame, now: int) -> tuple[Counts, ...]:
    """Count what became of what was judged, and what was too young to be.

    Args:
        results: as `results` gives them.
        there: as for `results`.
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
    found: dict[tuple[str, str], _Counted] = {}
    for container, kind, result, age, number in rows:
        one = found.setdefault((container, kind or "of no kind"), _Counted())
        one.results[result] = one.results.get(result, 0) + number
        if age:
            one.ages[age] = one.ages.get(age, 0) + number
    return tuple(Counts(*key, _sorted(one.results), _by_age(one.ages)) for key, one in sorted(found.items()))


def _age(now: int) -> Column:
    days = (F.lit(now) - F.col("ts")) / _DAY
    return F.coalesce(*(F.when(days < bound, name) for bound, name in AGES), F.lit(_OLDER))


def _by_age(ages: Mapping[str, int]) -> dict[str, int]:
    return {name: ages[name] for name in (*(name for _, name in AGES), _OLDER) if name in ages}


def _sorted(results: Mapping[str, int]) -> dict[str, int]:
    """What goes or went first."""
    first = (GOES, REMOVED, GONE)
    return {name: results[name] for name in (*first, *sorted(results.keys() - set(first))) if name in results}


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in numbers.items())
