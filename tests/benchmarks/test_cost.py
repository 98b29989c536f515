"""What a message costs: counted exactly, for the strategies of the library. `make bench` counts it for what competes, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks import answers
from benchmarks.accounting import RoundTrips
from benchmarks.answers import answer_costs
from benchmarks.channels import channel_costs
from benchmarks.contenders import contenders
from benchmarks.cost import QUICK, costs
from benchmarks.subjects import FOREIGN, NUMBERED
from benchmarks.targets import cost_targets, missed
from exactlyonce import Outbox
from exactlyonce.effects.effect import Effect, Together
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import HasRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

pytestmark = pytest.mark.acceptance

BY_NAME = {one.name: one for one in contenders()}
REQUESTS = {
    NUMBERED: (1 + 3 / 16, 2 + 3 / 16, 1, 0, 1, 3 / 64),
    FOREIGN: (3.0625, 4.0625, 2, 2, 2, 0.25),
    "Outbox.transaction_id()": (6, 7, 2, 2, 2, 6),
    "Colocated()": (4, 4, 2, 2, 2, 4 / 32),
    "VersionStream()": (3, 3, 3, 3, 3, 3 / 32),
    "VersionStream(), event-sourced": (3, 3, 3, 3, 3, 3 / 32),
    "Outbox.embedded()": (2.0625, 3.0625, 1, 1, 1, 3 / 64),
    "Resequencer()": (2, 2, 2, 2, 2, 4 / 64),
}
"""Requests for a message, in each of `SITUATIONS`. One of the few numbered messages, and of those of an embedded outbox, writes
the seal; and before the third one a process does not start from what it remembers."""

SITUATIONS = (
    "first",
    "first, quiet entity",
    "duplicate in the window",
    "duplicate outside the window",
    "duplicate in a fresh process",
    "hot entity",
)
SENT_AFTER: dict[str, dict[str, float]] = {
    NUMBERED: {"1": 0.875, "2": 0.0625, "3": 0.0625},
    FOREIGN: {"2": 0.9375, "3": 0.0625},
    "Outbox.transaction_id()": {"4": 1.0},
    "Colocated()": {"2": 1.0},
    "VersionStream()": {"2": 1.0},
    "VersionStream(), event-sourced": {"2": 1.0},
    "Outbox.embedded()": {"2": 0.9375, "3": 0.0625},
    "Resequencer()": {},
}
"""Which part of new messages is sent after how many round trips; the read model sends nothing."""


UNITS = {
    NUMBERED: 12.7,
    FOREIGN: 22.1,
    "Outbox.transaction_id()": 29.5,
    "Colocated()": 29.6,
    "VersionStream()": 18.5,
    "VersionStream(), event-sourced": 18.5,
    "Outbox.embedded()": 16.3,
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


async def test_messages_of_many_sources_and_for_several_instances_are_counted() -> None:
    measured = await channel_costs(BY_NAME[NUMBERED], dealt=40, sources=200, counted=64)
    dealt, first, later = measured.values()
    assert list(measured)[1:] == ["200 sources, first contact", "200 sources, later"]
    assert 2 <= dealt["requests"] <= 2.2, "a load and a save, and the seal"
    assert dealt["conflicts"] <= 6
    assert 2 <= first["requests"] <= 2 + 4 / 64, "a look for the channel, a save; and what leaves, with a load"
    assert 3 <= later["requests"] <= 3 + 4 / 64, "and the document of the channel that came back goes"
    assert 1_000 < first["ledger bytes"] < 10_000


def costing(requests: float, units: float, sent_after: dict[str, float]) -> dict[str, Any]:
    trips = {"before sending": sent_after, "until acknowledged": sent_after}
    one = {"requests": requests, "request units": units, "round trips": trips}
    return dict.fromkeys((*SITUATIONS, "many entities"), one)


def result(**changed: dict[str, Any]) -> dict[str, Any]:
    """What reaches every target just so, but for the situations of `Outbox()` that are changed."""
    ours = costing(0.05, 11.8, {"1": 0.9, "2": 0.1}) | {name.replace("_", " "): one for name, one in changed.items()}
    many = {"requests": 2.1, "request units": 14.2, "ledger bytes": 5_000}
    situations = ("dealt to 4 instances", "10,000 sources, first contact", "10,000 sources, later")
    others = {FOREIGN: costing(3.1, 21.8, {"2": 1.0}), "seven steps": costing(7, 41.5, {"5": 1.0})}
    return {"contenders": {NUMBERED: ours, **others}, "channels": dict.fromkeys(situations, many)}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"first": costing(1.2, 11.0, {"1": 1.0})["first"]}, "Busy entity: requests per message: 1.20; at most 1.1"),
        ({"first": costing(1.0, 11.9, {"1": 1.0})["first"]}, "Busy entity: request units: 11.90; at most 11.8"),
        (
            {"first": costing(1.0, 11.8, {"1": 0.8, "2": 0.2})["first"]},
            "Busy entity: round trips before it sends: 1.20",
        ),
        ({"hot_entity": {"requests": 0.06}}, "One hot entity, 64 in flight: requests: 0.06; at most 0.05"),
        ({"many_entities": {"request units": 14.0}}, "Many entities: request units, times the seven steps': 0.34"),
        (
            {"duplicate_in_the_window": {"requests": 1.1}},
            "A duplicate of the newest message: requests: 1.10; at most 1",
        ),
    ],
)
def test_each_missed_target_is_reported(changed: dict[str, Any], sentence: str) -> None:
    assert list(missed(cost_targets(result()))) == []
    (reported,) = missed(cost_targets(result(**changed)))
    assert reported.startswith(sentence)


def test_targets_of_many_sources_and_of_foreign_messages_are_checked() -> None:
    measured = result()
    measured["channels"]["10,000 sources, later"] = {"requests": 3.07, "request units": 21.9, "ledger bytes": 1}
    measured["contenders"][FOREIGN] = costing(3.2, 22.7, {"2": 1.0})
    assert len(list(missed(cost_targets(measured)))) == 4


async def test_a_large_answer_is_written_twice_and_not_with_every_commit() -> None:
    costs = await answer_costs(Outbox(), requests=4)
    assert not list(answers.missed({"Outbox()": costs}))
    assert costs["16 KiB"]["first"]["requests"] == 4
    assert costs["1 KiB"]["first"]["requests"] == 3


def test_an_answer_that_is_written_too_often_is_reported() -> None:
    often = {"16 KiB": {"first": {"bytes written": answers.MOST_BYTES + 1}}}
    (reported,) = answers.missed({"Outbox()": often})
    assert reported.startswith("Outbox() writes 49153 bytes for an answer of 16 KiB")


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
