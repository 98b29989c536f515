"""Calls and their replies, in every interleaving of small worlds; and every broken twin is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.broken_calls import AWAITED_FOR_EVER, TWINS
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.calls import SECOND, SMALL
from verification.world.scenario import Scenario

LIMIT = 20_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_every_reply_is_handled_once_and_at_the_end_none_is_awaited(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", TWINS, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


def test_a_call_that_stays_in_the_ledger_is_found_even_if_no_copy_of_its_reply_comes() -> None:
    report = explore(AWAITED_FOR_EVER.scenario_with_twin(), liveness=True)
    assert report.violation is None
    assert report.stuck


def test_a_reply_that_never_comes_is_found() -> None:
    report = explore(replace(AWAITED_FOR_EVER.scenario, replies=(None, SECOND)), liveness=True)
    assert report.violation is None
    assert report.stuck


def test_what_ships_awaits_nothing_in_the_end() -> None:
    assert_holds(AWAITED_FOR_EVER.scenario)
