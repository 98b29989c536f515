"""Messages that were given up go back to their queues, are processed, given up once more, parked or put aside."""

from __future__ import annotations

import pytest

from tests.model.broken_returning import BROKEN_RETURNING, PARKED_FOR_EVER, BrokenReturning
from tests.model.searches import assert_falls, assert_holds, name_of
from verification.checker.search import explore
from verification.explorers.settlement import ReturningScenario
from verification.scenarios.returns import SMALL

LIMIT = 20_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: ReturningScenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", BROKEN_RETURNING, ids=name_of)
def test_a_broken_twin_is_found(twin: BrokenReturning) -> None:
    assert_falls(twin, LIMIT, twin.steps)


def test_a_host_that_leaves_parked_what_it_processed_is_found() -> None:
    report = explore(PARKED_FOR_EVER.scenario_with_twin(), LIMIT, liveness=True)
    assert report.violation is None
    assert report.stuck


def test_a_message_is_parked_and_returned_where_only_the_answer_to_parking_is_missed() -> None:
    twin = next(item for item in BROKEN_RETURNING if item.name.startswith("what was just parked"))
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.violation == "parked_is_unprocessed: web/m0 is committed, but it lies parked"
    assert "A parks web/m0; the reply is lost" in report.story
    assert "A returns web/m0 to its queue" in report.story
