"""The smallest worlds, and of each zoo the twins that fall soonest: what every change explores. The others have verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.broken_companions import (
    BROKEN_AGES_OF_COMPANIONS,
    BROKEN_COLOCATED,
    BROKEN_REQUESTS_OF_COMPANIONS,
    BROKEN_STREAMS,
)
from tests.model.broken_hosting import BROKEN_DELIVERIES, BROKEN_RENEWING, BROKEN_RETURNING
from tests.model.broken_memory import BROKEN_BOOKS, BROKEN_MEMORY
from tests.model.broken_read_models import BROKEN_CLEANERS, BROKEN_REPLAYS, BROKEN_RESEQUENCERS
from tests.model.broken_requests import BROKEN_CALLS, BROKEN_KEPT, BROKEN_OPENED, BROKEN_REQUESTS
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.scenarios.catalogue import CATALOGUE
from verification.world.scenario import Scenario

FEW = 2_500
"""States of a world that takes less than a second."""
WORLDS = {
    family: [item for item in scenarios.small if 0 < item.states <= FEW] for family, scenarios in CATALOGUE.items()
}
ZOOS: tuple[tuple[Broken[Any], ...], ...] = (
    *(BROKEN_MEMORY, BROKEN_BOOKS, BROKEN_CALLS, BROKEN_KEPT, BROKEN_OPENED, BROKEN_REQUESTS),
    *(BROKEN_COLOCATED, BROKEN_STREAMS, BROKEN_REQUESTS_OF_COMPANIONS, BROKEN_AGES_OF_COMPANIONS),
    *(BROKEN_CLEANERS, BROKEN_REPLAYS, BROKEN_RESEQUENCERS),
    *(BROKEN_DELIVERIES, BROKEN_RENEWING, BROKEN_RETURNING),
)
SOONEST = [twin for zoo in ZOOS for twin in sorted(zoo, key=lambda twin: twin.steps)[:3]]


def test_every_family_has_a_world_that_is_small() -> None:
    assert [family for family, worlds in WORLDS.items() if not worlds] == []


@pytest.mark.parametrize("scenario", [world for worlds in WORLDS.values() for world in worlds], ids=name_of)
def test_a_small_world_holds_and_has_as_many_states_as_it_had(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", SOONEST, ids=name_of)
def test_a_twin_with_a_short_story_falls(twin: Broken[Any]) -> None:
    assert_falls(twin)
