"""Time passes: records, entries and debts grow old, and a copy may come at any age."""

from __future__ import annotations

import pytest

from tests.model.broken_ages import BROKEN_AGES, BrokenAges
from tests.model.searches import assert_falls, assert_holds, name_of
from verification.checker.search import explore
from verification.scenarios.outbox_ages import SMALL
from verification.world.scenario import Scenario

LIMIT = 20_000
"""More states than any twin takes to fall."""
STATES = {
    "records go with age, a sender's clock a day ahead": 4_371,
    "records go with age, the present half a day behind": 6_652,
    "records go with age, the sweeper": 9_346,
    "a retention is shortened": 4_028,
    "a retention is lengthened": 2_308,
    "entries go with age": 3_227,
    "entries go while a retention is shortened": 9_324,
    "entries go while a retention is lengthened": 7_052,
    "entries that owe stay": 34_125,
    "what is owed grows too old": 24_372,
    "a channel is new, and began long ago": 2_618,
}


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES[scenario.name])


@pytest.mark.parametrize("twin", BROKEN_AGES, ids=name_of)
def test_a_broken_twin_is_found(twin: BrokenAges) -> None:
    assert_falls(twin, LIMIT)


def test_a_late_copy_is_applied_again_where_nobody_judges_it() -> None:
    report = explore(BROKEN_AGES[0].scenario_with_twin(), LIMIT)
    assert report.violation == "at_most_one_state_change: web/m0 is committed a second time"
    assert report.story.count("Twelve hours pass") == 4  # The retention is two days.
    assert "A forgets web/m0 and deletes the records of web/m0" in report.story
