"""The outbox as it ships, in every interleaving of small worlds with every kind of fault."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds, name_of
from verification.scenarios import books, outbox, outbox_ages, restores
from verification.world.scenario import Scenario

STATES: dict[str, int] = {
    "put back: three messages": 723,
    "put back: lost writes": 2_184,
    "put back: room for one": 3_068,
    "put back: two workers": 12_290,
    "put back: stale reads": 1_652,
    "put back: one message has no time": 739,
    "put back twice": 973,
    "removed: three messages": 505,
    "removed: room for one": 1_528,
    "removed: the sweeper": 6_882,
    "pages are lost": 440,
    "books: one process, then another, every fault": 3_498,
    "books: two processes": 21_866,
    "books: two messages, and the sweeper": 7_450,
    "books: the settler": 3_673,
    "books: from memory": 13_473,
    "books: clients leave": 1_970,
    "pages go with age, a sender's clock a day ahead": 3_077,
    "pages go with age, three messages": 16_646,
    "pages go with age, clean-up": 3_664,
    "pages go with age, the present half a day behind": 3_929,
    "pages go with age, one message has no stable time": 19_160,
    "marks go with age": 1_337,
    "a retention is shortened": 3_526,
    "a retention is lengthened": 2_228,
    "what is owed grows too old": 17_228,
    "duplicates, crash, lost and repeated writes": 53_616,
    "stale reads": 6_169,
    "several messages in a commit": 3_565,
    "processes that remember tokens": 2_989,
    "an entity is deleted and comes back": 17_213,
    "the sweeper during processing": 30_131,
}
"""Where a scenario has other numbers of states, the world, or what ships, has changed."""


@pytest.mark.parametrize("scenario", [*outbox.SMALL, *outbox_ages.SMALL, *books.SMALL, *restores.SMALL], ids=name_of)
def test_no_property_falls_and_the_work_can_always_be_finished(scenario: Scenario) -> None:
    assert_holds(scenario, STATES.get(scenario.name))
