"""Broken twins of what an entity remembers, and of books: each falls by the shortest story that there is."""

from __future__ import annotations

import pytest

from tests.model import broken_books, broken_memory
from tests.model.searches import assert_falls, name_of
from tests.model.zoo import Broken
from verification.checker.search import explore
from verification.world.scenario import Scenario

LIMIT = 60_000
"""More states than any twin takes to fall."""


@pytest.mark.parametrize("twin", [*broken_memory.TWINS, *broken_books.TWINS], ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT)


@pytest.mark.parametrize("twin", broken_books.LEFT_TO_NOBODY, ids=name_of)
def test_what_nobody_finds_is_never_finished(twin: Broken[Scenario]) -> None:
    report = explore(twin.scenario_with_twin(), LIMIT, liveness=True)
    assert report.violation is None
    assert report.stuck
