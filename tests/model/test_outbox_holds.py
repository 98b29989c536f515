"""The outbox as it ships, in every interleaving of small worlds with every kind of fault; and every broken twin is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.broken_memory import BROKEN_BOOKS, BROKEN_CHORES, BROKEN_MEMORY, LEFT_TO_NOBODY, NEVER_CLEANED
from tests.model.broken_requests import (
    AWAITED_FOR_EVER,
    BODIES,
    BROKEN_CALLS,
    BROKEN_KEPT,
    BROKEN_OPENED,
    BROKEN_REQUESTS,
    LOST_REPLIES,
    NEVER_RELEASED,
    STALE_READS,
    TOGETHER,
)
from tests.model.searches import assert_falls, assert_holds, assert_stuck, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios import books, calls, kept, opened, outbox, outbox_ages, requests, restores
from verification.scenarios.calls import SECOND
from verification.world.scenario import Chores, Scenario

ROOMS = (outbox, outbox_ages, books, restores, kept, calls, opened, requests)
ZOO = (
    *(*BROKEN_MEMORY, *BROKEN_BOOKS, *BROKEN_CHORES, *BROKEN_KEPT, *BROKEN_CALLS),
    *(*BROKEN_REQUESTS, *BROKEN_OPENED),
)


@pytest.mark.parametrize("scenario", [scenario for room in ROOMS for scenario in room.SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", ZOO, ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin)


@pytest.mark.parametrize(
    "twin", [*LEFT_TO_NOBODY, *NEVER_CLEANED, *NEVER_RELEASED, AWAITED_FOR_EVER], ids=lambda twin: twin.name
)
def test_a_twin_that_does_nothing_wrong_and_never_ends_is_found(twin: Broken[Scenario]) -> None:
    assert_stuck(twin.scenario_with_twin())


def test_a_reply_that_never_comes_is_found() -> None:
    assert_holds(AWAITED_FOR_EVER.scenario)
    assert_stuck(replace(AWAITED_FOR_EVER.scenario, replies=(None, SECOND)))


@pytest.mark.parametrize("scenario", [LOST_REPLIES, STALE_READS], ids=name_of)
def test_without_a_sweeper_the_outputs_of_a_client_that_left_are_owed_for_ever(scenario: Scenario) -> None:
    assert_stuck(replace(scenario, budget=replace(scenario.budget, sweeps=0)))


@pytest.mark.parametrize("scenario", [BODIES, TOGETHER], ids=name_of)
def test_a_door_that_compares_no_fingerprints_is_found(scenario: Scenario) -> None:
    report = explore(replace(scenario, chores=Chores(is_to=lambda _answer, _fingerprint: True)))
    assert report.violation is not None
    assert report.violation.startswith("fingerprint_decides")
