"""Judges the rules of an application's own, each by reads of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.errors import ConfigurationError
from exactlyonce.records.ledger import LEDGER
from spark_jobs.auditor.judgement import confirmed
from spark_jobs.report.contents import ReadResult, RuleResult
from spark_jobs.rules import OwnRule
from spark_jobs.source.port import Query, literal
from spark_jobs.spark.frames import kept, none
from spark_jobs.transforms.names import entity_key
from spark_jobs.transforms.rules import ALL
from spark_jobs.transforms.rules.findings import findings
from spark_jobs.transforms.schemas import FINDING, IDENTITY, partition_of
from spark_jobs.work import Work

GRACE: Final = "the rule's own"
_ONLY_FULL: Final = "it reads all entities; full audits run it"
_NEEDED: Final = ("entity", "detail")


@dataclass
class OwnRules:
    """The rules of an application's own in one audit.

    Attributes:
        results: the result of each rule that ran.

    Raises:
        ConfigurationError: two rules have one name, or a rule reads a type that is not in the job file.
    """

    work: Work
    rules: Sequence[OwnRule]
    results: list[RuleResult] = field(default_factory=list)
    reads: list[ReadResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [*(rule.name for rule in ALL), *(rule.name for rule in self.rules)]
        self._places = {place.type: place for place in self.work.job.entities}
        for rule in self.rules:
            if names.count(rule.name) > 1:
                raise ConfigurationError(f"There are two rules with the name {rule.name}: rename yours.")
            for type in rule.reads:
                if type not in self._places:
                    raise ConfigurationError(
                        f"The rule {rule.name} reads entities of type {type!r}: add it to the job file."
                    )

    def findings(self) -> DataFrame:
        """What the rules find, and find again: `schemas.FINDING`. Raises as `Source.read`."""
        found = none(self.work.spark, FINDING)
        for rule in self.rules:
            self.work.progress.begin(f"rule {rule.name}")
            first = self._look(rule, "first look")
            suspects = first.count()
            again = kept(confirmed(first, self._look(rule, "second look"))) if suspects else first
            self.results.append(self._result(rule, None, suspects, again.count()))
            self.work.progress.done(f"{self.results[-1].findings:,} findings")
            found = found.unionByName(again)
        return found

    def skip(self) -> None:
        """Note that no rule runs in an incremental audit."""
        self.results = [self._result(rule, _ONLY_FULL, 0, 0) for rule in self.rules]

    def _look(self, rule: OwnRule, purpose: str) -> DataFrame:
        found = rule.judge(*(self._entities(rule, type, purpose) for type in rule.reads))
        if missing := [name for name in _NEEDED if name not in found.columns]:
            raise ConfigurationError(f"The frame of rule {rule.name} lacks the column {missing[0]!r}: add it.")
        subject = F.col("subject") if "subject" in found.columns else None
        made = findings(found, rule.name, detail=F.col("detail"), advice=rule.advice, subject=subject)
        return kept(made.dropDuplicates([*IDENTITY]))

    def _entities(self, rule: OwnRule, type: str, purpose: str) -> DataFrame:
        """The entities of a type: `entity, version`, and the properties that the rule reads."""
        place, begun = self._places[type], self.work.clock()
        properties = self._properties(rule, type)
        ledger = f"c[{literal(LEDGER)}]"
        columns = (
            'c["id"] AS _id',
            f"{partition_of(place.partition_key)} AS _partition",
            f'{ledger}["version"] AS _version',
            *(f"c[{literal(name)}]" for name in properties),
        )
        query = Query.of(
            place.container, columns, f'{ledger}["type"] = {literal(type)}', f'NOT IS_DEFINED({ledger}["deleted"])'
        )
        schema = ", ".join(filter(None, ("_id string, _partition string, _version bigint", rule.reads[type])))
        with self.work.source.read(query) as read:
            rows = read.rows.select(F.from_json("raw", schema).alias("row")).select("row.*")
            found = kept(
                rows.dropDuplicates(["_id", "_partition"]).select(
                    entity_key(F.lit(type), "_partition", "_id").alias("entity"),
                    F.col("_version").alias("version"),
                    *properties,
                )
            )
        seconds = self.work.clock() - begun
        what = f"{rule.name}, {purpose}"
        self.reads.append(ReadResult(place.container, what, read.number, read.spent.units, seconds))
        return found

    def _properties(self, rule: OwnRule, type: str) -> list[str]:
        """The names of the properties that a rule reads."""
        try:
            return self.work.spark.createDataFrame([], rule.reads[type]).schema.fieldNames()
        except PySparkException as error:
            raise ConfigurationError(
                f"The properties that rule {rule.name} reads of {type!r}, {rule.reads[type]!r}, are not like 'balance bigint': "
                f"{str(error).strip().splitlines()[0]}"
            ) from None

    @staticmethod
    def _result(rule: OwnRule, skipped: str | None, suspects: int, number: int) -> RuleResult:
        return RuleResult(rule.name, rule.title, rule.severity, GRACE, skipped, suspects, number)
