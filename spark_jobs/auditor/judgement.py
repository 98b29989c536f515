"""Runs the rules: on the documents of the first look, and on those of the second.

The second look confirms suspects of the first: a document that seemed missing may have been on the way, since the containers
are read in turn, and replicas lag. So the audit reads suspects again, the entities before the library's container, and reports
findings of both looks. For a suspect the audit reads all documents of the entity, and of the consumer whose key is the subject;
for rules about two entities all documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.account_reader import Chosen, DocumentsRead
from spark_jobs.job.configuration import Job
from spark_jobs.report.contents import RuleResult
from spark_jobs.source.account import Beginning
from spark_jobs.spark.frames import capped, kept, none, packed, suited
from spark_jobs.transforms.facts import FRAMES, Facts, Thresholds, facts_in
from spark_jobs.transforms.rules import ALL, Judge, Rule
from spark_jobs.transforms.rules.outputs import output_lost
from spark_jobs.transforms.rules.staging import garbage
from spark_jobs.transforms.rules.unsent import output_unknown
from spark_jobs.transforms.schemas import FINDING, IDENTITY
from spark_jobs.transforms.screen import screened
from spark_jobs.work import Work

MOST_CHOSEN: Final = 10_000
"""Most entities that are read one by one: beyond, reading everything is cheaper."""
ACROSS: Final = tuple(rule.__name__ for rule in (output_lost, output_unknown))
"""Rules whose suspects any entity may acquit: a sender, or one that knows an output."""
ONLY_FULL: Final = "it judges absence, which a look at changes cannot show; full audits run it"


@dataclass
class Judgement:
    """The judgement of one audit.

    Attributes:
        suspects: number of suspects of each rule that runs.
    """

    work: Work
    rules: Sequence[Rule]
    suspects: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.thresholds = thresholds_of(self.work.job, self.work.beginning)

    def first(self, facts: Facts, rows: int) -> DataFrame:
        """The suspects that all rules find in the first look, at so many documents: `schemas.FINDING`."""
        self.work.progress.begin(f"{len(self.rules)} rules")
        found = suspects(facts, self.thresholds, self.work.beginning.now, self.rules, rows)
        self.suspects.update({rule.name: 0 for rule in self.rules} | _numbers(found))
        self.work.progress.done(f"{sum(self.suspects.values()):,} to look at again")
        for name, number in self.suspects.items():
            self.work.progress.begin(f"rule {name}")
            self.work.progress.done(f"{number:,} to look at again" if number else "nothing")
        return found

    def second(self, facts: Facts, rows: int, first: DataFrame) -> DataFrame:
        """The suspects of the first look that the second look, at so many documents, finds again: the findings."""
        self.work.progress.begin("rules with suspects, again")
        # Made before it is compared: else the comparison would be planned anew for every part of every rule.
        judges = (rule.judge for rule in self.rules if self.suspects[rule.name])
        found = _found(judges, facts, self.thresholds, self.work.beginning.now, rows)
        again = kept(confirmed(first, found).dropDuplicates([*IDENTITY]))
        self.work.progress.done(f"{again.count():,} findings")
        return again

    def results(self, findings: DataFrame) -> tuple[RuleResult, ...]:
        """The result of each rule, also of those that did not run."""
        found = _numbers(findings)
        ran = {rule.name for rule in self.rules}
        return tuple(
            RuleResult(
                rule.name,
                rule.title,
                rule.severity,
                rule.grace,
                None if rule.name in ran else ONLY_FULL,
                self.suspects.get(rule.name, 0),
                found.get(rule.name, 0),
            )
            for rule in ALL
        )

    def garbage(self, facts: Facts) -> int:
        """Number of documents of messages that no entity keeps, with those of findings: clean-up takes all of them."""
        return garbage(facts, self.thresholds, self.work.beginning.now).count()

    def facts(self, found: DocumentsRead, seen: DataFrame | None) -> Facts:
        """The facts in the documents of a look, made now."""
        self.work.progress.begin("facts")
        facts = facts_in(found.documents, seen)
        self.work.progress.done("sorted")
        return facts


def suspects(facts: Facts, thresholds: Thresholds, now: int, rules: Sequence[Rule], rows: int) -> DataFrame:
    """The findings of rules in facts of so many documents: `schemas.FINDING`. Rules about one entity alone judge only the
    entities that the screen does not clear."""
    entities = facts.once(screened, thresholds, now).where("doubtful").select("entity")
    doubts = entities.count()
    parts = [part for rule in rules for part in rule.across.items()]
    if not doubts and not parts and facts.unreadable.isEmpty():
        return none(entities.sparkSession, FINDING)
    sizes = sizes_of(facts)
    across = (judge for judge, needs in parts if any(name in sizes for name in needs))
    found = _found(across, facts, thresholds, now, rows)
    if not doubts and "unreadable" not in sizes:
        return found
    some = facts.of_entities(F.broadcast(entities) if doubts <= MOST_CHOSEN else entities).made(sizes)
    few = sum(sizes_of(some).values())
    about = some.packed(few)
    with suited(entities.sparkSession, few):
        return found.unionByName(_found((rule.alone for rule in rules), about, thresholds, now, few))


def _found(judges: Iterable[Judge | None], facts: Facts, thresholds: Thresholds, now: int, rows: int) -> DataFrame:
    """The findings of judges, made at once: in turn they would leave most of a small cluster idle."""
    frames = [judge(facts, thresholds, now) for judge in judges if judge is not None]
    if not frames:
        return none(facts.entities.sparkSession, FINDING)
    return kept(packed(reduce(DataFrame.unionByName, frames), rows * len(frames)))  # Each goes through all of them.


def sizes_of(facts: Facts) -> dict[str, int]:
    """Number of rows of each frame that has any."""
    marked = [getattr(facts, name).select(F.lit(name).alias("name")) for name in FRAMES]
    rows, _ = capped(reduce(DataFrame.unionByName, marked).groupBy("name").count(), len(FRAMES))
    return {row["name"]: row["count"] for row in rows}


def _numbers(findings: DataFrame) -> dict[str, int]:
    """Number of findings of each rule that has any."""
    rows, _ = capped(findings.groupBy("rule").count(), len(ALL))
    return {row["rule"]: row["count"] for row in rows}


def to_look_at_again(facts: Facts, first: DataFrame) -> Chosen | None:
    """The entities and documents that a second look reads to judge the suspects again; None for everything.

    The subject of a suspect may name another entity, a consumer: the second look reads it, too.
    """
    if capped(first.where(F.col("rule").isin(*ACROSS)), 1)[0]:
        return None
    others = first.where(F.col("subject").startswith("[")).select(F.col("subject").alias("entity"))
    entities = first.select("entity").unionByName(others)
    return chosen(entities, facts.unreadable)


def chosen(entities: DataFrame, documents: DataFrame) -> Chosen | None:
    """These entities, and those of the documents that name none; None if there are so many that reading everything is cheaper.

    Args:
        entities: with a column `entity`; null for none.
        documents: with columns `entity, id`.
    """
    keys = entities.where(F.col("entity").isNotNull()).select(F.lit(True).alias("is_key"), F.col("entity").alias("one"))
    ids = documents.where(F.col("entity").isNull()).select(F.lit(False).alias("is_key"), F.col("id").alias("one"))
    found, more = capped(keys.unionByName(ids).distinct(), MOST_CHOSEN)
    if more:
        return None
    return Chosen(
        tuple(row["one"] for row in found if row["is_key"]), tuple(row["one"] for row in found if not row["is_key"])
    )


def thresholds_of(job: Job, beginning: Beginning) -> Thresholds:
    """The thresholds of a job file, and those that follow from the application's retention."""
    names = {item.name for item in fields(Thresholds)} & Job.model_fields.keys()
    given = {name: getattr(job, name) for name in names}
    types = frozenset(entity.type for entity in job.entities)
    return Thresholds(
        **given, retention=beginning.judged, arrival=beginning.arrival, types=types, all_types=beginning.whole
    )


def confirmed(first: DataFrame, second: DataFrame) -> DataFrame:
    """The findings of the second look that the first look had, too. Both are `schemas.FINDING`."""
    before = first.select(*IDENTITY).distinct().alias("before")
    same = reduce(and_, (F.col(f"before.{name}").eqNullSafe(F.col(f"now.{name}")) for name in IDENTITY))
    return second.alias("now").join(before, same, "left_semi")
