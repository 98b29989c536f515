"""The shipped protocols, in every interleaving of small worlds with every kind of fault, and in an endless one."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds, name_of
from verification.scenarios.outbox import SMALL, STREAM
from verification.world.scenario import Scenario

STATES = {
    "endless stream, inline: 2 workers, 2 messages, copies of one": 149_601,
    "duplicates, crash, lost and repeated writes": 120_443,
    "stale reads": 21_436,
    "a window of two": 108_912,
    "a window of three, one worker": 1_306,
    "several messages in a commit": 8_992,
    "staged outputs, lost writes": 41_892,
    "staged outputs, repeated writes": 49_431,
    "marking by idle workers": 11_295,
    "processes that remember tokens": 10_358,
    "an entity is deleted and comes back": 44_104,
    "everything embedded": 75_026,
    "the sweeper beside processing": 43_984,
    "the settler beside processing": 73_558,
    "clean-up, lost and repeated writes": 45_891,
    "clean-up, lost writes and stale loads": 44_271,
    "clean-up, repeated writes and stale loads": 11_946,
    "retention beside processing": 11_152,
    "two entities that feed a third": 35_366,
}


@pytest.mark.timeout(600)  # The endless stream takes twenty seconds of a core, and a core may be shared.
@pytest.mark.parametrize("scenario", [STREAM, *SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES[scenario.name])
