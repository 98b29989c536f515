"""For how many round trips the outputs of a message wait, and what is published before its entry leaves."""

from __future__ import annotations

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Begin
from exactlyonce.effects.publish import Publish
from tests.samples import deposit
from tests.unit.script import Played, Script, attempt


def rounds_before_outputs(played: Played) -> list[str]:
    """The requests, one after the other, that the outputs of a message wait for."""
    last = max(index for index, effect in enumerate(played.effects) if isinstance(effect, Publish))
    return [kind.__name__ for kind in played.kinds[:last] if kind is not Begin]


def test_outputs_wait_for_two_rounds_and_for_three_when_records_are_written() -> None:
    script, memory, rounds = Script(), Memory(), []
    for number in range(40):
        played = script.play(attempt(Outbox(), deposit(f"m-{number}"), memory=memory))
        memory = played.finished.memory
        rounds.append(rounds_before_outputs(played))
    usual, full = ["Together", "SaveEntity"], ["Together", "WriteRecords", "SaveEntity"]
    assert rounds == [full if number in (16, 32) else usual for number in range(40)]


def test_staged_outputs_wait_for_one_round_more() -> None:
    script, memory = Script(), Memory()
    for number in range(3):
        played = script.play(attempt(Outbox.transaction_id(), deposit(f"m-{number}"), memory=memory))
        memory = played.finished.memory
    assert rounds_before_outputs(played) == ["Together", "WriteRecords", "Stage", "SaveEntity"]


def test_a_new_process_that_remembers_nothing_publishes_what_is_owed_before_it_leaves() -> None:
    script, strategy = Script(), Outbox(window=1)
    for number in (1, 2):
        script.play(attempt(strategy, deposit(f"m-{number}")))
    ids = [output.id for output in script.published]
    assert (len(ids), len(set(ids))) == (3, 2)
