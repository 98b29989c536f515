"""What a message costs: counted exactly, for the strategies of the library. `make bench` counts it for what competes, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.accounting import RoundTrips
from benchmarks.contenders import contenders
from benchmarks.cost import QUICK, costs, missed_targets
from exactlyonce.effects.effect import Effect, Together
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import HasRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

pytestmark = pytest.mark.acceptance

BY_NAME = {one.name: one for one in contenders()}
REQUESTS = {
    "Outbox()": (3.0625, 4.0625, 2, 2, 0.25),
    "Outbox.transaction_id()": (6, 7, 2, 2, 6),
    "Colocated()": (4, 4, 2, 2, 4 / 32),
    "VersionStream()": (3, 3, 3, 3, 3 / 32),
    "VersionStream(), event-sourced": (3, 3, 3, 3, 3 / 32),
    "Outbox.embedded()": (2.0625, 3.0625, 1, 1, 3 / 64),
    "Resequencer()": (2, 2, 2, 2, 4 / 64),
}
"""Requests for a message, in each of `SITUATIONS`. One of the few messages of an embedded outbox writes the seal."""

SITUATIONS = (
    "first",
    "first, quiet entity",
    "duplicate in the window",
    "duplicate outside the window",
    "hot entity",
)
SENT_AFTER: dict[str, dict[str, float]] = {
    "Outbox()": {"2": 0.9375, "3": 0.0625},
    "Outbox.transaction_id()": {"4": 1.0},
    "Colocated()": {"2": 1.0},
    "VersionStream()": {"2": 1.0},
    "VersionStream(), event-sourced": {"2": 1.0},
    "Outbox.embedded()": {"2": 0.9375, "3": 0.0625},
    "Resequencer()": {},
}
"""Which part of new messages is sent after how many round trips; the read model sends nothing."""


UNITS = {
    "Outbox()": 23.1,
    "Outbox.transaction_id()": 29.5,
    "Colocated()": 29.6,
    "VersionStream()": 18.5,
    "VersionStream(), event-sourced": 18.5,
    "Outbox.embedded()": 17.3,
    "Resequencer()": 17.5,
}
"""Request units for a message, on many entities."""


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_message_makes_exactly_as_many_requests_as_is_said_of_it(name: str) -> None:
    measured = await costs(BY_NAME[name], QUICK)
    counted = [one["requests"] for situation, one in measured.items() if situation in SITUATIONS]
    assert counted == pytest.approx(REQUESTS[name], abs=0.0001)
    assert measured["first"]["round trips"]["before sending"] == SENT_AFTER[name]
    assert sum(one["conflicts"] for one in measured.values()) == 0
    assert measured["many entities"]["request units"] == pytest.approx(UNITS[name], rel=0.02)
    assert measured["first"]["bytes written"] > 0
    assert measured["duplicate in the window"]["bytes written"] == 0


def costing(requests: float, units: float, sent_after: dict[str, float]) -> dict[str, Any]:
    trips = {"before sending": sent_after, "until acknowledged": sent_after}
    one = {"requests": requests, "request units": units, "bytes written": 1_000, "conflicts": 0, "round trips": trips}
    return dict.fromkeys((*SITUATIONS, "many entities"), one)


def result(requests: float = 0.5, units: float = 24.0, sent_after: dict[str, float] | None = None) -> dict[str, Any]:
    outbox = costing(requests, units, sent_after or {"2": 0.9375, "3": 0.0625})
    return {"contenders": {"Outbox()": outbox, "seven steps": costing(7, 40.0, {"5": 1.0})}}


def test_each_missed_target_is_reported() -> None:
    assert list(missed_targets(result())) == []
    assert len(list(missed_targets(result(requests=4.2)))) == 3
    (sentence,) = missed_targets(result(units=24.4))
    assert sentence == "Outbox() takes 61% of the request units of the seven steps; at most 60% are wanted."
    for trips in ({"2": 0.9, "3": 0.1}, {"3": 1.0}, {"2": 0.99, "4": 0.01}):
        (sentence,) = missed_targets(result(sent_after=trips))
        assert sentence.startswith("Outbox() makes {'")
    slower = result()
    slower["contenders"]["seven steps"] = costing(8, 40.0, {"5": 1.0})
    (sentence,) = missed_targets(slower)
    assert sentence == "The algorithm of seven steps makes 8 requests."


ENTITY = EntityRef("range", ("game-1",), "game-1")


async def test_requests_side_by_side_are_one_round_trip() -> None:
    trips = RoundTrips()

    async def perform(effect: Effect[Any]) -> Any:
        if isinstance(effect, Together):
            return await asyncio.gather(*(trips.perform(one, perform) for one in (effect.first, effect.second)))
        await asyncio.sleep(0)
        return None

    looking = Together(LoadEntity(ENTITY), HasRecords(ENTITY))
    for effect in (looking, SaveEntity(ENTITY, Json("{}"), None), Publish(()), HasRecords(ENTITY)):
        await trips.perform(effect, perform)
    assert (trips.before_publishing, trips.taken) == (2, 3)
    trips.begin()
    assert (trips.before_publishing, trips.taken) == (None, 0)
