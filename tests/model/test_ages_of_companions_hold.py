"""Time passes in one partition: companions grow old, and a copy may come at any age."""

from __future__ import annotations

import pytest

from tests.model.broken_ages_of_companions import BROKEN_AGES_OF_COMPANIONS
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.companions_ages import SMALL
from verification.world.scenario import Scenario

LIMIT = 40_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", BROKEN_AGES_OF_COMPANIONS, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT, twin.steps)


def test_a_duplicate_is_refused_alone_when_clean_up_has_taken_its_way_back() -> None:
    twin = next(
        companion
        for companion in BROKEN_AGES_OF_COMPANIONS
        if companion.name == "no duplicate is refused where its way back is gone"
    )
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.story.count("Twelve hours pass") == 4  # The retention is two days.
    assert "if clean-up has taken them" in str(report.violation).lower()
