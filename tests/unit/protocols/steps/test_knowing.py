"""Asking a protocol whether it knows a message: what operators see before they send a parked message as a new one."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce.attempt import Memory
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import LoadEntity
from tests.samples import deposit
from tests.unit.boards import BOARD, scored
from tests.unit.protocols.by_protocol import COMPANIONS, PROTOCOLS
from tests.unit.protocols.steps.test_settling import nothing_yet, processed
from tests.unit.script import ENTITY, Played

MEMORY = Memory(entity_token="0:-1#0")
NO_ANSWER = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])


def asked(protocol: str, script: Any, message: Any, replies: dict[Any, Any] | None = None) -> Played:
    entity = BOARD if protocol == "resequencer" else ENTITY
    played: Played = script.play(PROTOCOLS[protocol].knows(entity, message, MEMORY), replies)
    return played


@COMPANIONS
class TestKnowing:
    def test_a_message_that_was_processed_is_known(self, protocol: str) -> None:
        script, message = processed(protocol)
        played = asked(protocol, script, message)
        assert played.result is True
        assert played.kinds == [LoadEntity, LoadCompanions]

    def test_one_that_never_came_is_not_known(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)
        played = asked(protocol, script, message)
        assert played.result is False
        assert played.kinds == [LoadEntity, LoadCompanions]
        assert played.only(LoadEntity).token == "0:-1#0"
        assert all(effect.token == "0:-1#0" for effect in played.all(LoadCompanions))

    def test_another_message_shows_nothing_of_it(self, protocol: str) -> None:
        script, _ = processed(protocol)
        other = scored(2, answers=1) if protocol == "resequencer" else deposit("m-2")
        assert asked(protocol, script, other).result is False

    @NO_ANSWER
    @pytest.mark.parametrize("kind", [LoadEntity, LoadCompanions])
    def test_without_an_answer_it_is_asked_again(self, protocol: str, kind: Any, reply: Any) -> None:
        script, message = nothing_yet(protocol)
        played = asked(protocol, script, message, {kind: reply})
        assert played.kinds[-1] is kind
        assert played.again.reason


def test_a_read_model_knows_no_message_without_a_number() -> None:
    script, _ = nothing_yet("resequencer")
    played = asked("resequencer", script, deposit("m-1"))
    assert (played.result, played.kinds) == (False, [LoadEntity])
