"""Every rule finds what was planted for it, says where and what to do, and nothing else; what is healthy is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.rules import ALL
from spark_jobs.transforms.rules.documents import document_lost
from tests.spark.transforms import cases, healthy_cases, unsent_cases
from tests.spark.transforms.conftest import Found, as_findings
from tests.spark.transforms.outbox_cases import Named
from tests.spark.transforms.planting import LIMITS, NOW, seconds


@pytest.mark.parametrize("case", cases.CASES)
def test_damage_is_found_where_it_is_and_nothing_else(planted: Found, case: str) -> None:
    _, expected = cases.EXPECTED[case]
    assert named(planted, case) == sorted(expected(case), key=str)


def named(found: Found, case: str) -> list[Named]:
    """What is found of a case."""
    findings = ((item.rule, item.message, item.versions, item.subject) for item in found.get(case, ()))
    return sorted(findings, key=str)


@pytest.mark.parametrize("case", unsent_cases.CASES)
def test_what_nobody_sent_is_found_where_it_came_and_nothing_else(unsent: Found, case: str) -> None:
    _, expected = unsent_cases.EXPECTED[case]
    assert named(unsent, case) == sorted(expected(case), key=str)


@pytest.mark.parametrize("case", healthy_cases.CASES)
def test_what_is_in_order_is_not_accused(planted: Found, unsent: Found, case: str) -> None:
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
