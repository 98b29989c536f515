"""Sending a parked message again: in which order, and when not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce.drivers.blocking_driver import BlockingDriver
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.effects import (
    BEHIND,
    PUBLISHED,
    UNKNOWN,
    DeleteParked,
    FoundParked,
    LoadParked,
    NoAnswer,
    Park,
    Publish,
)
from exactlyonce.handling.attempts import Memory
from exactlyonce.records import Output, ParkedMessage
from exactlyonce.stores.memory import MemoryStore
from exactlyonce.strategies.settling import Requeued, requeue
from exactlyonce.transports.port import SendReply
from tests.samples import deposit
from tests.unit.playing import AT, ENTITY, Played, Script

POISON = deposit("m-9")
PARKED = ParkedMessage(ENTITY.key, "web/m-9", "its handler raised ValueError", AT, POISON.to_json())
FOUND = FoundParked(PARKED, '"7"', 60.0)
WEEK = timedelta(days=7)


def requeued(script: Script, replies: dict[Any, Any]) -> Played:
    return script.play(requeue(ENTITY, "web/m-9", "accounts", WEEK, Memory(library_token="0:-1#5")), replies)


def test_a_parked_message_is_sent_and_then_deleted_as_it_was_read() -> None:
    played = requeued(Script(), {LoadParked: FOUND})
    assert played.kinds == [LoadParked, Publish, DeleteParked]
    assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#5")
    assert played.only(Publish).outputs == (Output("m-9", "accounts", POISON.to_json()),)
    assert played.only(DeleteParked) == DeleteParked(ENTITY, "web/m-9", '"7"')
    assert played.result == Requeued("sent", Memory(library_token="0:-1#5"))


@pytest.mark.parametrize(("age", "outcome"), [(WEEK.total_seconds(), "sent"), (WEEK.total_seconds() + 1, "too old")])
def test_one_that_is_too_old_stays_parked(age: float, outcome: str) -> None:
    played = requeued(Script(), {LoadParked: FoundParked(PARKED, '"7"', age)})
    assert played.result.outcome == outcome
    assert len(played.all(Publish)) == len(played.all(DeleteParked)) == (outcome == "sent")


def test_one_that_is_not_parked_is_told() -> None:
    played = requeued(Script(), {})
    assert played.kinds == [LoadParked]
    assert played.result.outcome == "not parked"


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_one_that_cannot_be_read_is_tried_again(reply: NoAnswer) -> None:
    assert requeued(Script(), {LoadParked: reply}).again.reason


def test_one_that_may_not_have_been_sent_stays_parked() -> None:
    played = requeued(Script(), {LoadParked: FOUND, Publish: UNKNOWN})
    assert played.kinds == [LoadParked, Publish]
    assert played.again.reason


def test_a_message_that_comes_back_while_it_is_requeued_stays_parked() -> None:
    """It was sent, failed once more and was parked anew before the requeuing came to its deletion."""
    store = MemoryStore(lambda: AT)
    store.park(Park(ENTITY, PARKED))

    def comes_back(_: Publish) -> SendReply:
        store.park(Park(ENTITY, replace(PARKED, reason="it failed again")))
        return PUBLISHED

    driver = BlockingDriver(store, comes_back, Surroundings())
    assert driver.run(requeue(ENTITY, "web/m-9", "accounts", WEEK, Memory())) == Requeued("sent", Memory())
    found = store.load_parked(LoadParked(ENTITY, "web/m-9"))
    assert isinstance(found, FoundParked)
    assert found.message is not None
    assert found.message.reason == "it failed again"
