"""Messages that are kept until they are due, in every interleaving of small worlds; and every broken twin is found."""

from __future__ import annotations

import pytest

from tests.model import broken_chores
from tests.model.broken_kept import NEVER_RELEASED, TWINS
from tests.model.searches import assert_falls, assert_holds, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.scenarios.kept import SMALL
from verification.world.scenario import Scenario

LIMIT = 20_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_a_kept_message_is_released_once_or_cancelled_and_never_lost(scenario: Scenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", [*TWINS, *broken_chores.BROKEN_CHORES], ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("twin", [*NEVER_RELEASED, *broken_chores.NEVER_RELEASED], ids=name_of)
def test_a_message_that_is_never_released_is_found(twin: Broken[Scenario]) -> None:
    report = explore(twin.scenario_with_twin(), liveness=True)
    assert report.violation is None
    assert report.stuck
