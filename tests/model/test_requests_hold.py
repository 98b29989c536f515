"""Requests, in every interleaving of small worlds; and every broken twin is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model import broken_requests, broken_requests_of_companions
from tests.model.broken_requests import BODIES, ONE, TOGETHER
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.requests import IN_ONE_PARTITION, SMALL
from verification.world.scenario import Chores, Scenario

TWINS = (*broken_requests.TWINS, *broken_requests_of_companions.TWINS)
LIMIT = 100_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", [*SMALL, *IN_ONE_PARTITION], ids=name_of)
def test_every_client_gets_the_committed_answer_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", TWINS, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("scenario", [BODIES, TOGETHER], ids=name_of)
def test_a_door_that_compares_no_fingerprints_is_found(scenario: Scenario) -> None:
    report = explore(replace(scenario, chores=Chores(is_to=lambda _answer, _fingerprint: True)))
    assert report.violation is not None
    assert report.violation.startswith("fingerprint_decides")


def test_without_a_sweeper_the_outputs_of_a_client_that_left_are_owed_for_ever() -> None:
    report = explore(replace(ONE, budget=replace(ONE.budget, sweeps=0)), liveness=True)
    assert report.violation is None
    assert report.stuck
