"""An operator sends a parked message that is too old as a new one, twice, with crashes and lost replies in between."""

from __future__ import annotations

import pytest

from tests.model.broken_renewing import BROKEN_RENEWING, BrokenRenewing
from verification.checker.search import explore
from verification.explorers.renewal import RenewingScenario
from verification.scenarios.renewals import SMALL

LIMIT = 5_000
"""More states than any twin takes to fall."""
STATES = {
    "a parked message is renewed beside a crash": 7_903,
    "a parked message is renewed, lost replies": 9_589,
    "a parked message is renewed by two": 4_470,
}
"""Pinned: a scenario that suddenly has fewer states shows less than it did."""


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: RenewingScenario) -> None:
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert report.states == STATES[scenario.name]


@pytest.mark.parametrize("twin", BROKEN_RENEWING, ids=lambda twin: twin.name)
def test_a_broken_twin_is_found(twin: BrokenRenewing) -> None:
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert len(report.story) == twin.steps
