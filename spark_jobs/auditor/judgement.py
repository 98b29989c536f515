"""Lets the rules judge, at a first and at a second look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.look import Chosen, Looked
from spark_jobs.job.configuration import Job
from spark_jobs.report.contents import Mode, RuleTold
from spark_jobs.report.progress import Telling
from spark_jobs.source.application import Beginning
from spark_jobs.spark.frames import kept, packed
from spark_jobs.transforms.facts import Facts, Thresholds
from spark_jobs.transforms.head import capped
from spark_jobs.transforms.recheck import confirmed
from spark_jobs.transforms.rules import ALL, Rule
from spark_jobs.transforms.rules.outputs import output_lost
from spark_jobs.transforms.rules.staging import garbage
from spark_jobs.transforms.schemas import FINDING, IDENTITY

MOST_CHOSEN: Final = 10_000
"""Entities that are read one by one. If there are more, it is cheaper to read everything."""
ONLY_FULL: Final = "it judges what is absent, which a look at changes cannot show; full audits run it"


@dataclass
class Judging:
    """The judgement of one audit.

    Attributes:
        spark: the session.
        thresholds: of the job.
        now: the service's time in seconds since 1970.
        telling: told of each rule.
        mode: of the audit: rules about absence judge in full ones only.
        suspects: by rule how much the first look found.
    """

    spark: SparkSession
    thresholds: Thresholds
    now: int
    telling: Telling
    mode: Mode = "full"
    suspects: dict[str, int] = field(default_factory=dict)

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules that run."""
        return [rule for rule in ALL if self.mode == "full" or rule.incremental]

    def first(self, facts: Facts) -> DataFrame:
        """What all rules find in the facts of the first look: `schemas.FINDING`."""
        self.telling.begin(f"{len(self.rules)} rules")
        # All at once: by itself each rule would leave most of a small cluster idle, and pay for planning what others share.
        found = kept(self._union([rule.judge(facts, self.thresholds, self.now) for rule in self.rules]))
        self.suspects.update({rule.name: 0 for rule in self.rules} | self._numbers(found))
        self.telling.done(f"{sum(self.suspects.values()):,} to look at again")
        for name, number in self.suspects.items():
            self.telling.begin(f"rule {name}")
            self.telling.done(f"{number:,} to look at again" if number else "nothing")
        return found

    def second(self, facts: Facts, first: DataFrame) -> DataFrame:
        """What the rules with suspects find again in the facts of the second look."""
        self.telling.begin("rules with suspects, again")
        rules = [rule for rule in self.rules if self.suspects[rule.name]]
        # Made before it is compared: else the comparison would be planned anew for every part of every rule.
        found = kept(self._union([rule.judge(facts, self.thresholds, self.now) for rule in rules]))
        again = kept(confirmed(first, found).dropDuplicates([*IDENTITY]))
        self.telling.done(f"{again.count():,} findings")
        return again

    def told(self, findings: DataFrame) -> tuple[RuleTold, ...]:
        """What became of each rule."""
        found = self._numbers(findings)
        ran = {rule.name for rule in self.rules}
        return tuple(
            RuleTold(
                rule.name,
                rule.grace,
                None if rule.name in ran else ONLY_FULL,
                self.suspects.get(rule.name, 0),
                found.get(rule.name, 0),
            )
            for rule in ALL
        )

    def garbage(self, facts: Facts) -> int:
        """How much there is for clean-up to take that belongs to no commit: staged documents, those of findings among them."""
        return garbage(facts, self.thresholds, self.now).count()

    def facts(self, looked: Looked, seen: DataFrame | None) -> Facts:
        """The facts that documents tell."""
        self.telling.begin("facts")
        facts = made(Facts.of(looked.documents, seen), looked.rows)
        self.telling.done("sorted")
        return facts

    @staticmethod
    def _numbers(findings: DataFrame) -> dict[str, int]:
        """How many findings each rule has that has any."""
        rows, _ = capped(findings.groupBy("rule").count(), len(ALL))
        return {row["rule"]: row["count"] for row in rows}

    def _union(self, frames: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.unionByName, frames, self.spark.createDataFrame([], FINDING))


def made(facts: Facts, rows: int) -> Facts:
    """The same facts, of so many documents, each frame made now: a dozen rules go over them."""
    names = (one.name for one in fields(Facts) if one.name != "seen")
    frames: dict[str, Any] = {name: kept(packed(getattr(facts, name), rows)) for name in names}
    return replace(facts, **frames)


def to_look_at_again(facts: Facts, first: DataFrame) -> Chosen | None:
    """What a second look has to read to judge the findings of the first again. None if that is everything.

    A finding may be about another entity as well, which its subject names: a consumer.
    """
    if capped(first.where(F.col("rule") == output_lost.__name__), 1)[0]:
        return None  # Any entity of the consumer's type may know the output.
    others = first.where(F.col("subject").startswith("[")).select(F.col("subject").alias("entity"))
    entities = first.select("entity").unionByName(others).where(F.col("entity").isNotNull())
    return chosen(entities, facts.unreadable.where(F.col("entity").isNull()))


def chosen(entities: DataFrame, nameless: DataFrame) -> Chosen | None:
    """These entities, and documents that say of no entity. None if they are so many that everything had better be read.

    Args:
        entities: with a column `entity`.
        nameless: with a column `id`.
    """
    keys, more_keys = capped(entities.select("entity").distinct(), MOST_CHOSEN)
    ids, more_ids = capped(nameless.select("id").distinct(), MOST_CHOSEN)
    if more_keys or more_ids:
        return None
    return Chosen(tuple(row["entity"] for row in keys), tuple(row["id"] for row in ids))


def thresholds_of(job: Job, beginning: Beginning) -> Thresholds:
    """The thresholds that a job file names, and those that the application's retention gives."""
    names = {one.name for one in fields(Thresholds)} & Job.model_fields.keys()
    told = {name: getattr(job, name) for name in names}
    types = frozenset(one.type for one in job.entities)
    return Thresholds(**told, retention=beginning.judged, arrival=beginning.arrival, types=types)
