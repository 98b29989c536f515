"""How twins of the outbox are found. That all of them are, is in `test_reproduction.py`, which plays what it finds."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce import Outbox
from tests.model.broken_chores import BROKEN_CHORES
from tests.model.broken_strategies import TWINS
from verification.checker.search import explore
from verification.world.scenario import Budget, Scenario


def test_a_settler_without_a_fence_is_found_without_a_crash() -> None:
    """The delivery goes back to its queue because its worker gave up, with a save still under way."""
    twin = next(twin for twin in BROKEN_CHORES if twin.name == "a settler without a fence")
    scenario = replace(twin.scenario_with_twin(), budget=Budget(unknown=1, poisoned=1))
    report = explore(scenario)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls)
    assert "A gives back what it holds" in report.story


def test_records_that_go_before_the_last_copy_lose_the_guarantee() -> None:
    scenario = Scenario("hasty", (2, 1), Outbox(window=1), budget=Budget(forgotten=1), hasty=True)
    report = explore(scenario)
    assert report.violation == "at_most_one_state_change: web/m0 is committed a second time"
    assert explore(replace(scenario, hasty=False)).violation is None


def test_a_story_says_who_did_what() -> None:
    twin = next(twin for twin in TWINS if twin.name == "publish before commit")
    report = explore(twin.scenario_with_twin())
    assert report.violation == "no_ghost_output: web/m0 is published, but was never committed"
    assert report.ending == (
        "A takes web/m0 and loads version 0",
        "A finds 0 of 1 records in view 0 of 0",
        "A publishes out:web/m0",
        "  entity: nothing in its state; nothing in its ledger",
        "  entity's partition of the library: nothing",
        "  published: outputs of web/m0",
    )
