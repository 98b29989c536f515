"""A check that cannot fail is worth nothing: every broken twin is found, by a story short enough to read."""

from __future__ import annotations

import pytest

from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import explore
from devtools.modelcheck.twins import Change, broken_outbox
from tests.model.broken_strategies import TWINS, Twin

LONGEST_STORY = 20


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_broken_twin_is_found(twin: Twin) -> None:
    report = explore(twin.scenario_with_twin(), limit=100_000)
    assert report.violation is not None
    assert report.violation.startswith(twin.falls), report.violation
    assert 0 < len(report.story) <= LONGEST_STORY


@pytest.mark.parametrize("scenario", dict.fromkeys(twin.scenario for twin in TWINS), ids=str)
def test_the_shipped_strategy_stands_where_its_twins_fall(scenario: Scenario) -> None:
    report = explore(scenario, limit=100_000)
    assert report.violation is None, "\n".join(report.story)


def test_a_change_that_fits_nowhere_is_an_error_and_no_twin() -> None:
    with pytest.raises(ValueError, match="fits in 0 places"):
        broken_outbox("nothing", Change("there is no such line", ""))


def test_a_story_tells_who_did_what() -> None:
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
