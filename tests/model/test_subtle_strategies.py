"""Twins that show only in the right world are found there; and what is harmless holds, so that nobody guards against it."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_falls_alone, assert_holds, name_of
from tests.model.subtle_strategies import HARMLESS, SUBTLE
from tests.model.zoo import Broken
from verification.world.scenario import Scenario

LIMIT = 5_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("twin", SUBTLE, ids=name_of)
def test_a_subtle_twin_is_found_and_the_shipped_strategy_stands(twin: Broken[Scenario]) -> None:
    assert_falls_alone(twin, LIMIT)


@pytest.mark.parametrize("twin", HARMLESS, ids=name_of)
def test_a_harmless_variant_holds_and_gets_stuck_nowhere(twin: Broken[Scenario]) -> None:
    assert_holds(twin.scenario_with_twin())
