"""The shipped outbox, in every interleaving of small worlds with every kind of fault."""

from __future__ import annotations

import pytest

from devtools.modelcheck.catalogue import SMALL
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import explore

STATES = {
    "duplicates, crash, lost and repeated writes": 123_026,
    "stale reads": 14_766,
    "a window of two": 92_124,
    "several messages in a commit": 13_678,
    "staged outputs, crash": 349_110,
    "staged outputs, lost writes": 47_920,
    "marking by idle workers": 8_506,
    "processes that remember tokens": 7_481,
    "an entity is deleted and comes back": 52_845,
    "everything embedded": 97_941,
}
"""Pinned: a scenario that suddenly has fewer states shows less than it did."""


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.story)
    assert report.complete
    assert report.stuck == 0
    assert scenario.witnesses <= report.witnessed
    assert report.states == STATES[scenario.name]
