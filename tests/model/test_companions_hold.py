"""The protocols of one partition as they ship, in every interleaving of small worlds; and every broken twin is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.broken_companions import BROKEN_AGES_OF_COMPANIONS, BROKEN_REQUESTS_OF_COMPANIONS, BrokenCompanions
from tests.model.broken_read_models import BROKEN_RESEQUENCERS, HARMLESS, ZOO
from tests.model.searches import assert_falls, assert_holds, name_of
from verification.checker.search import explore
from verification.scenarios import companions, companions_ages, requests
from verification.world.scenario import Scenario

SMALL = (*companions.SMALL, *companions_ages.SMALL, *requests.IN_ONE_PARTITION)


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize(
    "twin",
    [*ZOO, *BROKEN_AGES_OF_COMPANIONS, *BROKEN_REQUESTS_OF_COMPANIONS],
    ids=lambda twin: f"{twin.scenario.protocol}, {twin.name}",
)
def test_a_broken_twin_is_found(twin: BrokenCompanions) -> None:
    assert_falls(twin)


@pytest.mark.parametrize("scenario", dict.fromkeys(twin.scenario for twin in ZOO), ids=name_of)
def test_the_shipped_protocol_stands_where_its_twins_fall(scenario: Scenario) -> None:
    assert_holds(replace(scenario, traceless=False))


@pytest.mark.parametrize(("variant", "reason"), HARMLESS, ids=lambda item: getattr(item, "name", item))
def test_a_harmless_variant_holds_and_gets_stuck_nowhere(variant: BrokenCompanions, reason: str) -> None:
    assert_holds(variant.scenario_with_twin())
    assert reason.endswith(".")


def test_a_duplicate_is_refused_alone_when_clean_up_has_taken_its_way_back() -> None:
    twin = next(item for item in BROKEN_AGES_OF_COMPANIONS if item.name.endswith("refused where its way back is gone"))
    report = explore(twin.scenario_with_twin())
    assert report.story.count("Twelve hours pass") == 4  # The retention is two days.
    assert "if clean-up has taken them" in str(report.violation).lower()


def test_a_story_says_who_did_what_and_what_lies_in_the_partition() -> None:
    twin = next(twin for twin in BROKEN_RESEQUENCERS if twin.name.startswith("messages that were released meanwhile"))
    report = explore(twin.scenario_with_twin())
    assert report.ending == (
        "A takes web/m1 and loads version 0",
        "A holds web/m1",
        "B takes web/m0 and loads version 1",
        "A takes web/m0 and loads version 1",
        "B reads the companions web/m1, held",
        "B commits web/m0, web/m1",
        "A reads the companions web/m1",
        "  entity: version 2, >m0>m1 in its state; b0.0000001, b0.0000002 owes; 3 is next in web1",
        "  entity, companions: web/m1 as number 2, web/m0 as number 1",
        "  published: outputs of nothing",
    )
