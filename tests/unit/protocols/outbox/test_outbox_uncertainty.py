"""Replies that prove nothing: after each of them the attempt ends, and the next one starts over from load."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Effect, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import FindProcessed, LoadStaged, Stage, WriteRecords
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.script import Script, attempt

TALK = Outbox.transaction_id()


def owing() -> Script:
    """One entry in the document that owes inline outputs, and a window that the next message overflows."""
    script = Script()
    script.play(attempt(Outbox(window=1), deposit("m-1")))
    return script


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (LoadEntity, BEHIND),
        (LoadEntity, UNKNOWN),
        (FindProcessed, BEHIND),
        (FindProcessed, UNKNOWN),
        (LoadStaged, BEHIND),
        (LoadStaged, UNKNOWN),
        (WriteRecords, UNKNOWN),
        (Stage, UNKNOWN),
        (SaveEntity, UNKNOWN),
        (SaveEntity, Conflict("0:-1#9")),
        (Publish, UNKNOWN),
    ],
)
def test_an_effect_without_an_answer_is_the_last_one(kind: type[Effect[Any]], reply: Any) -> None:
    script = Script()
    script.play(attempt(TALK, deposit("m-1")))
    played = script.play(attempt(TALK, deposit("m-2")), {kind: reply})
    assert played.again.reason
    asked = played.kinds[-1]
    assert asked is (Together if kind in (LoadEntity, FindProcessed) else kind)
    assert played.again.memory.published <= {"tx-1"}


def test_owed_outputs_that_may_not_have_arrived_keep_their_entry_in_the_window() -> None:
    played = owing().play(attempt(Outbox(window=1), deposit("m-2")), {Publish: UNKNOWN})
    assert played.kinds == [Together, Begin, Publish]
    assert played.again.memory.published == frozenset()


def test_owed_outputs_of_a_duplicate_that_may_not_have_arrived_are_tried_again() -> None:
    script = owing()
    played = script.play(attempt(Outbox(), deposit("m-1")), {Publish: UNKNOWN})
    assert played.again.memory.published == frozenset()
    assert script.play(attempt(Outbox(), deposit("m-1"), memory=played.again.memory)).kinds == [Together, Publish]


def test_after_a_conflict_the_next_load_carries_its_token() -> None:
    script = Script(Json.of({"id": "a", "owner": "a"}))
    memory = Memory(entity_token="0:-1#0")
    informed = script.play(attempt(Outbox(), deposit("m-1"), memory=memory), {SaveEntity: Conflict("0:-1#9")})
    assert informed.again.memory.entity_token == "0:-1#9"
    silent = script.play(attempt(Outbox(), deposit("m-1"), memory=memory), {SaveEntity: Conflict(None)})
    assert silent.again.memory.entity_token == "0:-1#1"


def test_what_leaving_entries_owed_stays_known_as_published_after_a_conflict() -> None:
    script = owing()
    first = script.play(attempt(Outbox(window=1), deposit("m-2")), {SaveEntity: Conflict("0:-1#1")})
    assert first.again.memory.published == {"tx-1"}
    second = script.play(attempt(Outbox(window=1), deposit("m-2"), memory=first.again.memory))
    assert second.kinds == [Together, Begin, WriteRecords, SaveEntity, Publish]


def test_published_is_the_only_reply_that_counts_as_published() -> None:
    assert owing().play(attempt(Outbox(), deposit("m-1")), {Publish: PUBLISHED}).finished.memory.published
    assert owing().play(attempt(Outbox(), deposit("m-1")), {Publish: None}).again.reason
