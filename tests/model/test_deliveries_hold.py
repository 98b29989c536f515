"""Deliveries that come again, go back to their queues, are parked, put aside, sent again or renewed; and their broken twins."""

from __future__ import annotations

import pytest

from tests.model.broken_hosting import BROKEN_DELIVERIES, BROKEN_RENEWING, BROKEN_RETURNING, PARKED_FOR_EVER
from tests.model.searches import assert_falls, assert_holds, assert_stuck, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios import deliveries, renewals, returns
from verification.world.scenario import Scenario


@pytest.mark.parametrize("scenario", [*deliveries.SMALL, *returns.SMALL, *renewals.SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", [*BROKEN_DELIVERIES, *BROKEN_RETURNING, *BROKEN_RENEWING], ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin)


def test_a_host_that_leaves_parked_what_it_processed_is_found() -> None:
    assert_stuck(PARKED_FOR_EVER.scenario_with_twin())


def test_a_message_is_parked_and_returned_where_only_the_answer_to_parking_is_missed() -> None:
    twin = next(item for item in BROKEN_RETURNING if item.name.startswith("what was just parked"))
    report = explore(twin.scenario_with_twin())
    assert report.violation == "parked_is_unprocessed: web/m0 is committed, but it lies parked"
    assert "A parks web/m0; the reply is lost" in report.story
    assert "A returns web/m0 to its queue" in report.story


def test_a_delivery_that_is_given_back_is_committed_by_a_driver_that_forgets_it() -> None:
    twin = next(item for item in BROKEN_DELIVERIES if item.scenario.name == "a group gives a delivery back")
    report = explore(twin.scenario_with_twin())
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
