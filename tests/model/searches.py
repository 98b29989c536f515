"""What tests expect of a search: that a scenario holds, or that a broken twin falls."""

from __future__ import annotations

from typing import Final, Protocol

from tests.model.counts import STATES, STEPS
from verification.checker.search import Report, explore
from verification.world.scenario import Scenario

LONGEST_STORY: Final = 25


class Twin(Protocol):
    """A broken twin, and the property that falls."""

    @property
    def falls(self) -> str:
        """Name of the property, or the beginning of what is said of it."""

    def scenario_with_twin(self) -> Scenario:
        """A scenario in which it shows, with the twin in it."""


def assert_holds(scenario: Scenario, states: int | None = None) -> None:
    """No property falls, and the work can be finished from every state.

    Args:
        scenario: to search completely.
        states: how many it has; those of `counts` unless given, and any number if it is not counted there. A world that
            suddenly has fewer shows less than it did.
    """
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert report.states == (states or STATES.get(scenario.name, report.states))


def assert_falls(twin: Twin, limit: int, steps: int | None = None) -> Report:
    """The property falls after so many steps, by a story short enough to read.

    Args:
        twin: to search.
        limit: more states than any twin takes to fall.
        steps: of the shortest story; those of `counts` unless given.
    """
    scenario = twin.scenario_with_twin()
    report = explore(scenario, limit)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert len(report.story) <= LONGEST_STORY
    assert len(report.story) == (steps or STEPS[scenario.name])
    return report


def name_of(value: object) -> str:
    """The name of a scenario or of a twin, for the ids of tests."""
    return str(getattr(value, "name", value))
