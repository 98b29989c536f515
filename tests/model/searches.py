"""What tests expect of a search: that a scenario holds, that a broken twin falls, or that it never comes to an end."""

from __future__ import annotations

from typing import Any, Final

from tests.model.zoo import Broken
from verification.checker.search import Report, explore
from verification.world.scenario import Scenario

LONGEST_STORY: Final = 25
LIMIT: Final = 100_000
"""More states than any twin takes to fall."""


def assert_holds(scenario: Scenario) -> None:
    """No property falls, the work can be finished from every state, and these are as many as ever."""
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert report.states == (scenario.states or report.states)


def assert_falls(twin: Broken[Any]) -> Report:
    """The property falls after as many steps as ever, by a story short enough to read."""
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert len(report.story) == twin.steps <= LONGEST_STORY
    return report


def assert_stuck(scenario: Scenario) -> None:
    """No property falls, but there are states from which the work is never finished."""
    report = explore(scenario, liveness=True)
    assert report.violation is None
    assert report.stuck


def name_of(value: object) -> str:
    """The name of a scenario or of a twin, for the ids of tests."""
    return str(getattr(value, "name", value))
