"""What tests expect of a search: that a scenario holds, or that a broken twin falls."""

from __future__ import annotations

from functools import cache
from typing import Final, Protocol

from tests.model.zoo import Broken
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
        states: how many it has, where that is known: one that suddenly has fewer shows less than it did.
    """
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert states in (None, report.states)


def assert_falls(twin: Twin, limit: int, steps: int | None = None) -> Report:
    """The property falls after so many steps; where none are given, by a story short enough to read.

    Args:
        twin: to search.
        limit: more states than any twin takes to fall.
        steps: of the shortest story.
    """
    report = explore(twin.scenario_with_twin(), limit)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert 0 < len(report.story) <= LONGEST_STORY
    assert steps in (None, len(report.story))
    return report


def assert_falls_alone(twin: Broken[Scenario], limit: int) -> Report:
    """The property falls, and what ships breaks none as far as that takes to find. The catalogue has complete searches.

    Args:
        twin, limit: as for `assert_falls`.
    """
    report = assert_falls(twin, limit)
    _assert_stands(twin.scenario, 1 << report.states.bit_length())
    return report


@cache
def _assert_stands(scenario: Scenario, states: int) -> None:
    """What ships breaks no property in so many states: a power of two, so that twins of one scenario share a search."""
    shipped = explore(scenario, states)
    assert shipped.violation is None, "\n".join(shipped.story)


def name_of(one: object) -> str:
    """The name of a scenario or of a twin, for the ids of tests."""
    return str(getattr(one, "name", one))
