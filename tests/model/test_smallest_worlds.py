"""The smallest worlds, and of each zoo the twins that fall soonest: what every change explores. The others have verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.model import (
    broken_ages_of_companions,
    broken_books,
    broken_calls,
    broken_cleaners,
    broken_companions,
    broken_deliveries,
    broken_kept,
    broken_memory,
    broken_opened,
    broken_renewing,
    broken_replays,
    broken_requests,
    broken_requests_of_companions,
    broken_resequencers,
    broken_returning,
    broken_streams,
)
from tests.model.counts import STATES, STEPS
from tests.model.searches import Twin, assert_falls, assert_holds, name_of
from verification.scenarios.catalogue import CATALOGUE
from verification.world.scenario import Scenario

FEW = 2_500
"""States of a world that takes less than a second."""
WORLDS = {
    family: [item for item in scenarios.small if STATES.get(item.name, FEW + 1) <= FEW]
    for family, scenarios in CATALOGUE.items()
}
ZOOS: Sequence[Sequence[Twin]] = (
    broken_ages_of_companions.BROKEN_AGES_OF_COMPANIONS,
    broken_books.TWINS,
    broken_calls.TWINS,
    broken_cleaners.BROKEN_CLEANERS,
    broken_companions.BROKEN_COLOCATED,
    broken_deliveries.BROKEN_DELIVERIES,
    broken_kept.TWINS,
    broken_memory.TWINS,
    broken_opened.TWINS,
    broken_renewing.BROKEN_RENEWING,
    broken_replays.BROKEN_REPLAYS,
    broken_requests.TWINS,
    broken_requests_of_companions.TWINS,
    broken_resequencers.BROKEN_RESEQUENCERS,
    broken_returning.BROKEN_RETURNING,
    broken_streams.BROKEN_STREAMS,
)
SOONEST = 3
LIMIT = 10_000
"""More states than any of these twins takes to fall."""


def steps(twin: Twin) -> int:
    """Of the shortest story of a twin."""
    return getattr(twin, "steps", None) or STEPS[twin.scenario_with_twin().name]


def test_every_family_has_a_world_that_is_small() -> None:
    assert [family for family, worlds in WORLDS.items() if not worlds] == []


@pytest.mark.parametrize("scenario", [world for worlds in WORLDS.values() for world in worlds], ids=name_of)
def test_a_small_world_holds_and_has_as_many_states_as_it_had(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", [twin for zoo in ZOOS for twin in sorted(zoo, key=steps)[:SOONEST]], ids=name_of)
def test_a_twin_with_a_short_story_falls(twin: Twin) -> None:
    assert_falls(twin, LIMIT, steps(twin))
