"""The published algorithm in the zoo: each of its faults has a shortest story, and with all repairs none is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Attempts
from tests.model.searches import assert_holds
from verification.checker.search import explore
from verification.mutants.quiet_outbox import QuietWorld, handled_in_turn
from verification.published.algorithm import AS_PUBLISHED, REPAIRED, Deletion, PublishedAlgorithm, Repairs
from verification.published.faults import FAULTS, PAGE, Fault, playing, with_stories
from verification.world.scenario import Budget, Scenario


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_has_a_shortest_story(fault: Fault) -> None:
    report = explore(fault.scenario_with(fault.repairs))
    assert report.violation is not None
    assert report.violation.startswith(fault.falls), report.violation
    assert len(report.story) == fault.steps


REPAIRS = {(fault.scenario, fault.ends): fault for fault in FAULTS}


@pytest.mark.parametrize("fault", REPAIRS.values(), ids=lambda fault: fault.name)
def test_its_repair_ends_it(fault: Fault) -> None:
    assert_holds(fault.scenario_with(fault.ends))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_algorithm_as_published_falls_wherever_one_of_its_faults_shows(fault: Fault) -> None:
    # A second message, since the first save of an entity, which has no condition, cannot end in a conflict.
    scenario = replace(fault.scenario, copies=(*fault.scenario.copies, 1))
    assert explore(playing(scenario, AS_PUBLISHED)).violation is not None


def test_an_update_is_lost_without_any_failure() -> None:
    report = explore(playing(Scenario("two messages, each delivered once", (1, 1)), AS_PUBLISHED))
    assert report.violation is not None
    assert "a commit was overwritten by one that did not know of it" in report.violation


@pytest.mark.parametrize(
    ("copies", "budget"),
    [
        ((2,), Budget(crashes=1)),
        ((2,), Budget(unknown=1)),
        ((2,), Budget(repeated=1)),
        ((2,), Budget(stale=1)),
    ],
    ids=str,
)
def test_repaired_it_holds(copies: tuple[int, ...], budget: Budget) -> None:
    assert_holds(playing(Scenario("repaired", copies, budget=budget), REPAIRED))


@pytest.mark.parametrize(
    ("repairs", "quiet", "finishing"),
    [
        (AS_PUBLISHED, 8, 17),
        (replace(AS_PUBLISHED, conditional_create=True), 8, 17),
        (replace(AS_PUBLISHED, deletion=Deletion.NEVER), 8, 16),
        (replace(AS_PUBLISHED, staged_token=True), 8, 17),
        (replace(AS_PUBLISHED, record_token=True), 8, 17),
        (replace(AS_PUBLISHED, record_again=True), 8, 17),
        (replace(AS_PUBLISHED, fresh_etag=True), 8, 12),
        (REPAIRED, 8, 12),
    ],
)
def test_no_repair_costs_a_store_operation(repairs: Repairs, quiet: int, finishing: int) -> None:
    strategy = PublishedAlgorithm(repairs)
    assert requests_of_the_next_message(strategy, handled_in_turn(strategy, [0])) == quiet
    crashed = handled_in_turn(strategy, [0])
    crashed.stopped_after_commit(strategy, 1)
    assert requests_of_the_next_message(strategy, crashed) == finishing


@pytest.mark.parametrize(("outbox", "requests"), [(Outbox.transaction_id(), 6), (Outbox(), 3)], ids=str)
def test_what_the_shipped_presets_take_for_the_same(outbox: Outbox, requests: int) -> None:
    first, both = handled_in_turn(outbox, [0]), handled_in_turn(outbox, [0, 1])
    assert both.requests.total() - first.requests.total() == requests


def requests_of_the_next_message(strategy: Attempts, world: QuietWorld) -> int:
    before = world.requests.total()
    handled_in_turn(strategy, [2], world)
    return world.requests.total() - before


def test_the_page_has_the_stories_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_stories(page) == page, "To write them anew: python -m verification.published.faults"
