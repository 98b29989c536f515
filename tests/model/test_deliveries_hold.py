"""Deliveries that are given back under an attempt, come again with their batch, or are sent again by an operator."""

from __future__ import annotations

import pytest

from tests.model.broken_deliveries import BROKEN_DELIVERIES, BrokenDelivery
from tests.model.searches import assert_falls, assert_holds, name_of
from verification.checker.search import explore
from verification.scenarios.deliveries import SMALL
from verification.world.scenario import Scenario

LIMIT = 20_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", BROKEN_DELIVERIES, ids=lambda twin: f"{twin.name}, {twin.scenario.name}")
def test_a_broken_twin_is_found(twin: BrokenDelivery) -> None:
    assert_falls(twin, LIMIT)


def test_a_delivery_that_is_given_back_is_committed_by_a_driver_that_forgets_it() -> None:
    twin = next(delivery for delivery in BROKEN_DELIVERIES if delivery.scenario.name == "a group gives a delivery back")
    report = explore(twin.scenario_with_twin(), LIMIT)
    assert report.violation == "parked_is_unprocessed: web/m0 is committed, but it lies parked"
    assert report.story == (
        "A takes web/m0 and loads version 0",
        "A looks for any page, and finds none",
        "A has to give back a delivery, and goes on",
        "The host gives up on web/m0",
        "B settles web/m0 and loads version 0",
        "B creates the entity",
        "A creates the entity: conflict",
        "A loads version 1",
        "B parks web/m0",
        "A looks for any page, and finds none",
        "A saves the entity",
    )
