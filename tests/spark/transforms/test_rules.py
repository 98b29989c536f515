"""Every rule finds what was planted for it, says where and what to do, and nothing else; what is healthy is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.auditor.judgement import confirmed
from spark_jobs.transforms.facts import Facts, facts_in
from spark_jobs.transforms.rules import ALL
from spark_jobs.transforms.rules.documents import document_lost
from spark_jobs.transforms.schemas import FINDING
from spark_jobs.transforms.screen import screened
from tests.spark.transforms import cases, healthy_cases, unsent_cases
from tests.spark.transforms.conftest import Found, Kept, all_findings, as_findings
from tests.spark.transforms.dumping import rows
from tests.spark.transforms.planting import DAY, LIMITS, NOW, Named, channel_of, colocated, reader, seconds
from tests.spark.transforms.reader_cases import ONE


@pytest.mark.parametrize("case", cases.CASES)
def test_damage_is_found_where_it_is_and_nothing_else(planted: Found, case: str) -> None:
    _, expected = cases.EXPECTED[case]
    assert named(planted, case) == sorted(expected(case), key=str)


def named(found: Found, case: str) -> list[Named]:
    """What is found of a case."""
    findings = ((item.rule, item.message, item.versions, item.subject) for item in found.get(case, ()))
    return sorted(findings, key=str)


@pytest.mark.parametrize("case", unsent_cases.CASES)
def test_messages_without_a_sender_are_found_where_they_came_and_nothing_else(unsent: Found, case: str) -> None:
    _, expected = unsent_cases.EXPECTED[case]
    assert named(unsent, case) == sorted(expected(case), key=str)


@pytest.mark.parametrize("case", healthy_cases.CASES)
def test_entities_in_order_are_not_accused(planted: Found, unsent: Found, case: str) -> None:
    assert (planted.get(case), unsent.get(case)) == (None, None)


def test_no_document_is_missed_whose_container_the_job_does_not_read(planted_documents: DataFrame) -> None:
    limits = replace(LIMITS, types=frozenset({"reader", "mailer"}))
    found = as_findings(document_lost(Facts.of(planted_documents), limits, seconds()))
    assert {item.case for item in found} == {"read model gone", "number above the next"}


def test_every_rule_is_shown_by_a_case(planted: Found, unsent: Found) -> None:
    found = {finding.rule for world in (planted, unsent) for findings in world.values() for finding in findings}
    assert found == {rule.name for rule in ALL}


def test_every_finding_says_what_is_so_and_what_to_do_and_since_when(planted: Found, unsent: Found) -> None:
    findings = [item for world in (planted, unsent) for found in world.values() for item in found]
    for finding in findings:
        assert finding.entity is not None
        assert finding.detail.endswith(".")
        assert "null" not in finding.detail
        assert finding.advice.endswith((".", "?"))
        assert finding.since is not None
        assert finding.since.replace(tzinfo=NOW.tzinfo) <= NOW


def test_no_finding_has_a_body(planted: Found) -> None:
    assert "secret" not in str(planted)


def test_every_rule_states_its_grace() -> None:
    assert all(rule.grace for rule in ALL)
    assert all(rule.judge.__doc__ for rule in ALL)


def test_of_what_is_in_order_the_screen_clears_most(planted_facts: Facts) -> None:
    doubts = screened(planted_facts, LIMITS, seconds()).where("doubtful")
    doubted = {json.loads(row["entity"])[-1] for row in doubts.collect()}
    assert len(doubted & set(healthy_cases.CASES)) < len(healthy_cases.CASES) / 2, sorted(
        doubted & set(healthy_cases.CASES)
    )


SINCE = datetime(2026, 1, 1)  # noqa: DTZ001  # As Spark takes times.


def finding(entity: str, message: str | None, versions: list[int], detail: str = "d") -> tuple[object, ...]:
    return ("two_owners", entity, message, versions, None, detail, "a", SINCE)


def test_only_what_both_looks_found_is_reported_as_the_second_saw_it(spark: SparkSession) -> None:
    first = [finding("e", None, [1]), finding("e", None, [1]), finding("e", "m", [1]), finding("f", None, [2, 3])]
    second = [finding("e", None, [1], "later"), finding("f", None, [2, 4]), finding("g", "m", [1])]
    frames = [spark.createDataFrame(rows, FINDING) for rows in (first, second)]
    assert [row["detail"] for row in confirmed(*frames).collect()] == ["later"]


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (20 * DAY, {("dedup_expired_early", (1, 2), None), ("ledger_hole", (), f"{channel_of(ONE)} 1-2")}),
        (31 * DAY, set()),
    ],
    ids=["within the retention", "before"],
)
def test_records_that_are_missing_from_the_beginning_are_found_if_the_application_went_live_within_the_retention(
    kept: Kept, age: timedelta, expected: set[object]
) -> None:
    shop, board = colocated("shop"), reader("board")
    del shop.companions[:2], board.companions[:2]
    facts = facts_in(kept(rows([item for planted in (shop, board) for item in planted.stored()])))
    rules = [rule for rule in ALL if rule.name in ("ledger_hole", "dedup_expired_early")]
    found = as_findings(all_findings(facts, replace(LIMITS, live_since=NOW - age), seconds(), rules))
    assert {(finding.rule, finding.versions, finding.subject) for finding in found} == expected
