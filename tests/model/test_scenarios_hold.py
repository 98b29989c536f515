"""The shipped protocols, in every interleaving of small worlds with every kind of fault, and in an endless one."""

from __future__ import annotations

import pytest

from devtools.modelcheck.catalogue import SMALL, STREAM
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import explore

STATES = {
    "endless stream, inline: 2 workers, 2 messages": 174_503,
    "duplicates, crash, lost and repeated writes": 75_856,
    "stale reads": 19_182,
    "a window of two": 76_615,
    "a window of three": 43_938,
    "several messages in a commit": 9_529,
    "staged outputs, lost writes": 34_972,
    "staged outputs, repeated writes": 48_465,
    "marking by idle workers": 9_705,
    "processes that remember tokens": 8_445,
    "an entity is deleted and comes back": 34_812,
    "everything embedded": 52_676,
    "the sweeper beside processing": 28_665,
    "the settler beside processing": 44_055,
    "clean-up beside processing": 244_487,
    "retention beside processing": 9_844,
    "two entities that feed a third": 30_784,
}
"""Pinned: a scenario that suddenly has fewer states shows less than it did."""


@pytest.mark.parametrize("scenario", [STREAM, *SMALL], ids=lambda scenario: scenario.name)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    report = explore(scenario, liveness=True)
    assert report.violation is None, "\n".join(report.ending)
    assert report.complete
    assert report.stuck == 0, "\n".join(report.ending)
    assert scenario.witnesses <= report.witnessed
    assert report.states == STATES[scenario.name]
