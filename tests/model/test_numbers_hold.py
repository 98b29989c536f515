"""The outbox by numbers, in every interleaving of small worlds, chains of it, forgetting; and every broken twin is found."""

from __future__ import annotations

import pytest

from tests.model import broken_chains, broken_forgetting, broken_numbers
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.scenarios import chains, numbers
from verification.world.scenario import Scenario

FOUND_HERE = (*broken_chains.TWINS, *broken_forgetting.TWINS)
"""The others are in `test_reproduction.py`, which plays what it finds."""
TWINS = (*broken_numbers.TWINS, *FOUND_HERE)
LIMIT = 30_000
"""More states than any twin takes to fall."""

STATES = {
    "endless stream with channels: 2 workers, 2 messages": 22_263,
    "numbers: every fault": 75_026,
    "numbers in the wrong order": 5_169,
    "numbers: several messages in a commit": 28_243,
    "numbers: a channel leaves": 14_533,
    "numbers: a channel leaves and comes back": 3_361,
    "numbers: a channel leaves, lost writes and stale reads": 6_131,
    "numbers beside foreign messages": 5_806,
    "numbers: marking by idle workers": 3_739,
    "numbers: the sweeper": 15_902,
    "numbers: the settler": 35_956,
    "numbers: from memory": 10_807,
    "numbers: from memory, stale reads": 120_153,
    "numbers: from memory, a channel leaves": 60_409,
    "numbers: from memory, marking": 34_778,
    "numbers: staged outputs": 4_725,
    "chain: crashes and stale reads": 5_075,
    "chain: unknown replies": 9_458,
    "chain: two workers": 33_672,
    "chain: foreign messages first": 1_146,
    "forgetting: two channels, every fault": 53_072,
    "forgetting: a channel with a gap survives": 48_175,
    "forgetting: from memory": 24_792,
}


@pytest.mark.parametrize("scenario", [numbers.STREAM, *numbers.SMALL, *chains.SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES[scenario.name])


@pytest.mark.parametrize("twin", FOUND_HERE, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("scenario", dict.fromkeys(twin.scenario for twin in TWINS), ids=name_of)
def test_the_shipped_strategy_stands_where_its_twins_fall(scenario: Scenario) -> None:
    assert_holds(scenario)
