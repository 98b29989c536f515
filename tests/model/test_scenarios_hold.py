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
    "several messages in a commit": 6_366,
    "more messages than the window holds": 22_763,
    "staged outputs, lost writes": 41_892,
    "staged outputs, repeated writes": 48_087,
    "marking by idle workers": 11_295,
    "processes that remember tokens": 10_358,
    "an entity is deleted and comes back": 44_104,
    "everything embedded": 75_026,
    "the sweeper during processing": 43_984,
    "the settler during processing": 73_558,
    "clean-up, lost and repeated writes": 45_534,
    "clean-up, lost writes and stale loads": 44_271,
    "clean-up, repeated writes and stale loads": 11_830,
    "retention during processing": 11_152,
    "two entities that feed a third": 35_366,
}


@pytest.mark.parametrize("scenario", [STREAM, *SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES[scenario.name])
