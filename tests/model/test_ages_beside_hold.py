"""Time passes in one partition: companions grow old, and a copy may come at any age."""

from __future__ import annotations

import pytest

from tests.model.broken_ages_beside import BROKEN_AGES_BESIDE, BrokenAgesBeside
from verification.checker.search import explore
from verification.scenarios.companions_ages import SMALL
from verification.world.scenario import Scenario

LIMIT = 40_000
"""More states than any twin takes to fall."""
STATES = {
    "co-located: records go with age": 4_617,
    "co-located: records go with age, any view": 5_170,
    "co-located: a retention is shortened": 397,
    "co-located: a retention is lengthened": 251,
    "co-located: what is owed grows too old": 28_958,
    "stream: entries go with age": 5_644,
    "stream: entries go with age, any view": 5_362,
    "stream: a way back goes with age": 2_028,
    "stream: events go with age": 10_288,
    "stream: what is computed again is too old": 1_280,
}
"""Pinned: a scenario that suddenly has fewer states shows less than it did."""


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert report.states == STATES[scenario.name]


@pytest.mark.parametrize("twin", BROKEN_AGES_BESIDE, ids=lambda twin: twin.name)
def test_a_broken_twin_is_found(twin: BrokenAgesBeside) -> None:
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert len(report.story) == twin.steps


def test_a_duplicate_is_refused_alone_when_clean_up_has_taken_its_way_back() -> None:
    twin = next(one for one in BROKEN_AGES_BESIDE if one.name == "no duplicate is refused where its way back is gone")
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.story.count("Twelve hours pass") == 4  # The retention is two days.
    assert "if clean-up has taken them" in str(report.violation).lower()
