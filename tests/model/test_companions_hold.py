"""The shipped protocols of one partition, in every interleaving of small worlds with every kind of fault."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds, name_of
from verification.scenarios.companions import SMALL
from verification.world.scenario import Scenario

STATES = {
    "stream: all faults": 46_142,
    "stream: a whole state in every entry": 21_754,
    "stream: ways back only": 21_754,
    "stream: distinct attempts": 45_320,
    "stream: a message that changes nothing": 21_754,
    "stream: a message that deletes": 21_754,
    "stream: groups of two": 37_180,
    "stream: event-sourced": 21_754,
    "stream: event-sourced, three messages": 4_066,
    "stream: three messages": 1_181,
    "stream: tokens remembered": 53_767,
    "stream: a document without a ledger": 1_837,
    "stream: sent again": 5_695,
    "stream: sent again, a crash": 920,
    "stream: asked for what is missing": 3_976,
    "stream: the settler": 10_594,
    "co-located: all faults": 90_780,
    "co-located: distinct attempts": 19_582,
    "co-located: groups of two": 63_189,
    "co-located: keeping and deleting": 40_208,
    "co-located: tokens remembered": 43_890,
    "co-located: a document without a ledger": 3_639,
    "co-located: the sweeper": 34_080,
    "co-located: the settler": 21_013,
    "resequencer: all faults": 8_416,
    "resequencer: a handler that raises": 6_544,
    "resequencer: a document without a ledger": 3_193,
    "resequencer: copies": 9_388,
    "resequencer: distinct attempts": 10_481,
    "resequencer: two channels of one source": 5_334,
    "resequencer: released one by one": 4_974,
    "stream: clean-up": 31_057,
    "stream: clean-up, three messages": 21_185,
    "stream: clean-up of events": 12_894,
    "stream: clean-up of events, stale reads": 9_111,
    "co-located: clean-up": 7_280,
    "co-located: clean-up, sweeper and settler": 4_905,
}


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES.get(scenario.name))
