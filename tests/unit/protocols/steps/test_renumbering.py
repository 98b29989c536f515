"""Renumbering: a source forgets its sequences under a conditional save, and begins fresh channels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox, VersionStream
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.protocols.outbox.repair import Renumbered, renumber
from tests.samples import deposit
from tests.unit.script import ENTITY, Script, attempt, receipt, receipts

KINDS = pytest.mark.parametrize("strategy", [Outbox(), VersionStream()])


def sent(strategy: Strategy, *messages: str) -> Script:
    script = Script()
    for message in messages:
        script.play(attempt(strategy, deposit(message)))
    return script


@KINDS
def test_the_sequences_go_and_nothing_else_is_changed(strategy: Strategy) -> None:
    script = sent(strategy, "m-1", "m-2")
    before = script.ledger
    played = script.play(renumber(ENTITY, strategy, Memory()))
    assert played.kinds == [LoadEntity, SaveEntity]
    owing = (item.without_sequences(ENTITY, before.to, before.sequences) for item in before.outbox)
    assert script.ledger == replace(before, sequences=(), outbox=tuple(owing))
    assert played.result.forgotten == before.sequences == (receipts(2, before.sequences[0].channel),)
    assert played.result.memory.saved is None


@KINDS
def test_the_next_output_begins_a_fresh_channel(strategy: Strategy) -> None:
    script = sent(strategy, "m-1", "m-2")
    (old,) = script.play(renumber(ENTITY, strategy, Memory())).result.forgotten
    script.play(attempt(strategy, deposit("m-3")))
    place = script.published[-1].place
    assert place is not None
    assert (place.number, place.channel == old.channel) == (1, False)


def test_what_is_owed_keeps_its_numbers() -> None:
    script = sent(Outbox(), "m-1")
    script.play(renumber(ENTITY, Outbox(), Memory()))
    (owed,) = script.entries[0].owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences)
    assert owed.place is not None
    assert owed.place == receipt(1, owed.place.channel)


@pytest.mark.parametrize("script", [Script(), sent(Outbox())])
def test_an_entity_that_has_sent_nothing_is_left_alone(script: Script) -> None:
    played = script.play(renumber(ENTITY, Outbox(), Memory()))
    assert played.kinds == [LoadEntity]
    assert played.result == Renumbered((), Memory("0:-1#0"))


def test_a_second_time_there_is_nothing_to_forget() -> None:
    script = sent(Outbox(), "m-1")
    script.play(renumber(ENTITY, Outbox(), Memory()))
    played = script.play(renumber(ENTITY, Outbox(), Memory()))
    assert (played.kinds, played.result.forgotten) == ([LoadEntity], ())


@pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#7")])
def test_a_save_that_was_not_acknowledged_leads_back_to_load(reply: Any) -> None:
    played = sent(Outbox(), "m-1").play(renumber(ENTITY, Outbox(), Memory()), {SaveEntity: reply})
    assert played.again.reason


@pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
def test_without_an_answer_nothing_is_saved(reply: Any) -> None:
    played = sent(Outbox(), "m-1").play(renumber(ENTITY, Outbox(), Memory()), {LoadEntity: reply})
    assert played.kinds == [LoadEntity]
    assert played.again.reason


def test_an_entity_of_another_protocol_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="processed by the protocol 'outbox'"):
        sent(Outbox(), "m-1").play(renumber(ENTITY, VersionStream(), Memory()))
