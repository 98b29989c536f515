"""The shipped protocols of one partition, in every interleaving of small worlds with every kind of fault."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds, name_of
from verification.scenarios.companions import SMALL
from verification.world.scenario import Scenario


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)
