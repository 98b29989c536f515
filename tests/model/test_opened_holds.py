"""Opened requests, in every interleaving of small worlds; and every broken twin is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.broken_opened import ONE, TWINS, WORLDS_THAT_FALL
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.opened import SMALL
from verification.world.scenario import Scenario

LIMIT = 20_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_every_request_is_carried_out_once_at_most_and_nothing_is_left_of_it(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", TWINS, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("world", WORLDS_THAT_FALL, ids=name_of)
def test_a_broken_world_is_found(world: Broken[Scenario]) -> None:
    report = explore(world.scenario_with_twin(), LIMIT)
    assert report.violation is not None
    assert report.violation.startswith(world.falls), report.violation


def test_without_a_sweeper_a_caller_that_closes_early_leaves_its_outputs_owed() -> None:
    report = explore(replace(ONE, budget=replace(ONE.budget, sweeps=0)), liveness=True)
    assert report.violation is None
    assert report.stuck
