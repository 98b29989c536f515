"""An operator sends a parked message that is too old as a new one, twice, with crashes and lost replies in between."""

from __future__ import annotations

import pytest

from tests.model.broken_renewing import BROKEN_RENEWING, BrokenRenewing
from tests.model.searches import assert_falls, assert_holds, name_of
from verification.explorers.renewal import RenewingScenario
from verification.scenarios.renewals import SMALL

LIMIT = 5_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("scenario", SMALL, ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: RenewingScenario) -> None:
    assert_holds(scenario)


@pytest.mark.parametrize("twin", BROKEN_RENEWING, ids=name_of)
def test_a_broken_twin_is_found(twin: BrokenRenewing) -> None:
    assert_falls(twin, LIMIT, twin.steps)
