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
STEPS: dict[str, int] = {
    "complete is not raised": 11,
    "complete is raised to the oldest mark that leaves": 13,
    "nobody looks for pages": 11,
    "only strictly older messages are looked for": 11,
    "pages are looked for without the token": 10,
    "the token of a page is not carried": 10,
    "the page is not written": 9,
    "the page is written after the commit": 9,
    "an unknown page is taken for written": 10,
    "the page is not written, and nobody misses it": 10,
    "one page, written over": 13,
    "the page has the marks of the attempt": 12,
    "a page lives by its oldest mark": 17,
    "the age is judged before the look": 19,
    "messages are judged up to the retention": 16,
    "nobody judges": 16,
    "marks are forgotten before the retention": 12,
    "saved without a condition": 6,
    "an unknown save is taken for done": 4,
    "a conflict is taken for a copy": 3,
    "a number is closed before it is sent": 6,
    "any view closes a number": 9,
    "a conflict closes a number": 5,
    "an unknown save closes a number": 5,
    "what has no book is taken for sent": 7,
    "numbers of others are taken for sent": 7,
    "a book says only how far": 7,
    "a process that begins anew takes the same book": 8,
    "entries of others are dropped": 7,
    "what copies owe is not sent": 5,
    "a settler tells its book a part of the outbox": 11,
    "copies have another time": 12,
}
"""Of the shortest story of each twin."""


@pytest.mark.parametrize("twin", [*broken_memory.TWINS, *broken_books.TWINS], ids=name_of)
def test_a_broken_twin_is_found(twin: Broken[Scenario]) -> None:
    assert_falls(twin, LIMIT, STEPS.get(twin.name))


@pytest.mark.parametrize("twin", broken_books.LEFT_TO_NOBODY, ids=name_of)
def test_what_nobody_finds_is_never_finished(twin: Broken[Scenario]) -> None:
    report = explore(twin.scenario_with_twin(), LIMIT, liveness=True)
    assert report.violation is None
    assert report.stuck
