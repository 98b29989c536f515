"""All that is planted is judged in one go, since Spark takes longer for a run than for a hundred entities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.auditor.judgement import suspects
from spark_jobs.transforms.facts import SEEN, Facts, Thresholds, facts_in
from spark_jobs.transforms.rules import ALL, Rule
from tests.spark.transforms import cases, healthy_cases, unsent_cases
from tests.spark.transforms.dumping import Stored, parsed, rows
from tests.spark.transforms.planting import LIMITS, Planted, book, seconds


@dataclass(frozen=True)
class Finding:
    """What tests look at of a finding."""

    rule: str
    entity: str | None
    message: str | None
    versions: tuple[int, ...]
    subject: str | None
    detail: str
    advice: str
    since: datetime | None

    @property
    def case(self) -> str:
        """The entity is called by its case, and in parts."""
        name = json.loads(self.entity)[-1] if self.entity else (self.subject or "").split("/")[-1]
        return str(name).split(":")[0]


Found = dict[str, list[Finding]]
"""What the rules find, by case."""
Kept = Callable[[Iterable[tuple[str, str]]], DataFrame]


@pytest.fixture(scope="package")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Parses rows, and keeps the documents as a file, which many rules can go through."""

    def keep(found: Iterable[tuple[str, str]]) -> DataFrame:
        path = str(Path(tmp_path_factory.mktemp("documents"), "parquet"))
        parsed(spark, found).coalesce(2).write.parquet(path)
        return spark.read.parquet(path)

    return keep


def all_findings(facts: Facts, thresholds: Thresholds, now: int, rules: Iterable[Rule] = ALL) -> DataFrame:
    """What rules find, as one frame."""
    return reduce(DataFrame.unionByName, (rule.judge(facts, thresholds, now) for rule in rules))


def as_findings(frame: DataFrame) -> list[Finding]:
    """The same, here."""
    rows = (row.asDict() for row in frame.collect())
    return [Finding(**{**item, "versions": tuple(item["versions"])}) for item in rows]


def judged(facts: Facts, thresholds: Thresholds, now: int) -> list[Finding]:
    """What all rules find, as an audit runs them: behind the screen."""
    return as_findings(suspects(facts, thresholds, now, ALL, 1))


@pytest.fixture(scope="package")
def stored() -> list[Stored]:
    """The documents of all cases."""
    return documents_of({**cases.CASES, **healthy_cases.CASES})


def documents_of(all_cases: Mapping[str, Callable[[str], list[Planted]]]) -> list[Stored]:
    """The documents of cases, and the book that their entities share."""
    return [book(), *(item for case, plant in all_cases.items() for entity in plant(case) for item in entity.stored())]


@pytest.fixture(scope="package")
def planted_documents(stored: list[Stored], kept: Kept) -> DataFrame:
    """The same, parsed."""
    return kept(rows(stored))


@pytest.fixture(scope="package")
def planted_facts(spark: SparkSession, planted_documents: DataFrame) -> Facts:
    """The facts in them, and in what earlier audits saw."""
    return facts_in(planted_documents, spark.createDataFrame(cases.SEEN_BEFORE, SEEN))


@pytest.fixture(scope="package")
def planted(planted_facts: Facts) -> Found:
    """What the rules find in them."""
    return by_case(planted_facts)


@pytest.fixture(scope="package")
def unsent(kept: Kept) -> Found:
    """What the rules find in what nobody sent, among what is in order."""
    return by_case(facts_in(kept(rows(documents_of({**unsent_cases.CASES, **healthy_cases.CASES})))))


def by_case(facts: Facts) -> Found:
    """What the rules find, by case."""
    found: Found = {}
    for item in judged(facts, LIMITS, seconds()):
        found.setdefault(item.case, []).append(item)
    return found
