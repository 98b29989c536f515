"""Where the application is younger than the retention, nothing may have expired; where it is older, anything may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame

from spark_jobs.transforms.facts import facts_in
from spark_jobs.transforms.rules import ALL
from tests.spark.transforms.conftest import Kept, all_findings, as_findings
from tests.spark.transforms.dumping import rows
from tests.spark.transforms.planting import LIMITS, NOW, channel_of, colocated, reader, seconds
from tests.spark.transforms.reader_cases import ONE

RULES = [rule for rule in ALL if rule.name in ("ledger_hole", "dedup_expired_early")]
Findings = Callable[[timedelta], set[tuple[str, tuple[int, ...], str | None]]]


@pytest.fixture(scope="module")
def documents(kept: Kept) -> DataFrame:
    """An entity whose first records are gone, and a read model whose first numbers are."""
    shop, board = colocated("shop"), reader("board")
    del shop.companions[:2], board.companions[:2]
    return kept(rows([item for planted in (shop, board) for item in planted.stored()]))


@pytest.fixture
def found(documents: DataFrame) -> Findings:
    """What the rules find if the application went live so long ago."""

    def find(age: timedelta) -> set[tuple[str, tuple[int, ...], str | None]]:
        limits = replace(LIMITS, live_since=NOW - age)
        frame = all_findings(facts_in(documents), limits, seconds(), RULES)
        return {(finding.rule, finding.versions, finding.subject) for finding in as_findings(frame)}

    return find


def test_within_the_retention_what_is_missing_from_the_beginning_is_found(found: Findings) -> None:
    assert found(timedelta(days=20)) == {
        ("dedup_expired_early", (1, 2), None),
        ("ledger_hole", (), f"{channel_of(ONE)} 1-2"),
    }


def test_before_the_retention_it_may_have_expired(found: Findings) -> None:
    assert found(timedelta(days=31)) == set()
