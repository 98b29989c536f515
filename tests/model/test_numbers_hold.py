"""The outbox by numbers, in every interleaving of small worlds; and every broken twin of it is found."""

from __future__ import annotations

import pytest

from tests.model.broken_numbers import TWINS
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.numbers import SMALL
from verification.world.scenario import Scenario

LIMIT = 300_000
"""More states than any twin takes to fall."""

STATES = {
    "numbers: every fault": 75_026,
    "numbers in the wrong order": 5_169,
    "numbers: several messages in a commit": 28_243,
    "numbers: a channel leaves": 14_533,
    "numbers: a channel leaves and comes back": 1_478,
    "numbers: a channel leaves, lost writes and stale reads": 6_131,
    "numbers beside foreign messages": 3_247,
    "numbers: marking by idle workers": 3_739,
    "numbers: the sweeper": 9_691,
    "numbers: the settler": 35_956,
    "numbers: from memory": 11_077,
    "numbers: from memory, stale reads": 103_718,
    "numbers: from memory, a channel leaves": 48_455,
    "numbers: from memory, marking": 35_238,
    "numbers: staged outputs": 4_725,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES[scenario.name])


@pytest.mark.parametrize("twin", TWINS, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("scenario", dict.fromkeys(twin.scenario for twin in TWINS), ids=name_of)
def test_the_shipped_strategy_stands_where_its_twins_fall(scenario: Scenario) -> None:
    report = explore(scenario, LIMIT)
    assert report.violation is None, "\n".join(report.story)
