"""What a message costs: counted exactly, for the strategies of the library. `make bench` counts it for what competes, too."""

from __future__ import annotations

import pytest

from benchmarks import answers
from benchmarks.answers import answer_costs
from benchmarks.cleaning import clean_up_costs
from benchmarks.contenders import contenders
from benchmarks.cost import QUICK, costs
from benchmarks.spread import spread_costs
from benchmarks.subjects import TIMED, UNTIMED
from exactlyonce import Outbox

pytestmark = pytest.mark.acceptance

BY_NAME = {contender.name: contender for contender in contenders()}
SITUATIONS = (
    "first",
    "entity unknown to the process",
    "first of an entity",
    "duplicate of the newest",
    "duplicate of the oldest",
    "duplicate in a fresh process",
    "hot entity",
)
REQUESTS: dict[str, tuple[float, ...]] = {
    TIMED: (1 + 1 / 20, 2 + 1 / 20, 3, 0, 0, 1, 3 / 64),
    UNTIMED: (2 + 1 / 20, 3 + 1 / 20, 3, 0, 0, 1, 3 / 64),
    "Colocated()": (4, 4, 4, 2, 2, 2, 4 / 32),
    "VersionStream()": (3, 3, 3, 3, 3, 3, 3 / 32),
    "VersionStream(), event-sourced": (3, 3, 3, 3, 3, 3, 3 / 32),
    "Resequencer()": (2, 2, 2, 2, 2, 2, 4 / 64),
}
"""Requests for a message, in each of `SITUATIONS`. One of 20 messages of an outbox writes a page. Now and then one waits for
the book of its process, and one does not start from what the process remembers."""
NOW_AND_THEN = 0.2
SENT_AFTER = {
    TIMED: 1,
    UNTIMED: 2,
    "Colocated()": 2,
    "VersionStream()": 2,
    "VersionStream(), event-sourced": 2,
}
"""After how many round trips nearly all new messages are sent; the read model sends nothing."""
UNITS = {
    TIMED: 13.05,
    UNTIMED: 13.0,
    "Colocated()": 29.7,
    "VersionStream()": 18.52,
    "VersionStream(), event-sourced": 18.52,
    "Resequencer()": 17.67,
}
"""Request units for a message, on many entities. A book is written now and then."""


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_message_makes_as_many_requests_as_is_said_of_it(name: str) -> None:
    measured = await costs(BY_NAME[name], QUICK)
    counted = [measured[situation]["requests"] for situation in SITUATIONS]
    assert counted == pytest.approx(REQUESTS[name], abs=NOW_AND_THEN)
    sent = measured["first"]["round trips"]["before sending"]
    assert max(sent, key=sent.get, default="") == str(SENT_AFTER.get(name, ""))
    assert sum(item["conflicts"] for item in measured.values()) == 0
    assert measured["many entities"]["request units"] == pytest.approx(UNITS[name], rel=0.03)
    assert measured["first"]["bytes written"] > 0
    assert measured["duplicate of the newest"]["bytes written"] == 0


async def test_messages_of_many_sources_and_for_several_instances_are_counted() -> None:
    measured = await spread_costs(BY_NAME[TIMED], dealt=40, sources=200, counted=68)
    dealt, first, later = measured.values()
    assert list(measured)[1:] == ["200 sources, first contact", "200 sources, later"]
    assert 2 <= dealt["requests"] <= 2.2, "a load and a save, and the page"
    assert dealt["conflicts"] <= 6
    for item in (first, later):
        assert 1 <= item["requests"] <= 1.2, "a save, and the page: a source is not remembered"
    assert 500 < first["ledger bytes"] < 2_000


async def test_clean_up_costs_less_than_a_request_unit_for_each_message() -> None:
    measured = await clean_up_costs(BY_NAME[TIMED], 170)
    assert measured["pages"] == 7
    assert 0 < measured["request units"] < 1


async def test_a_large_answer_is_written_twice_and_not_with_every_commit() -> None:
    costs = await answer_costs(Outbox(), requests=4)
    assert not list(answers.missed({"Outbox()": costs}))
    assert costs["16 KiB"]["first"]["requests"] == 3
    assert costs["1 KiB"]["first"]["requests"] <= 2.5
