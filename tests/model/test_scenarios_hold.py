"""The outbox as it ships, in every interleaving of small worlds with every kind of fault."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds, name_of
from verification.scenarios import books, outbox, outbox_ages, restores
from verification.world.scenario import Scenario


@pytest.mark.parametrize("scenario", [*outbox.SMALL, *outbox_ages.SMALL, *books.SMALL, *restores.SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario)
