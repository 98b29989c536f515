"""What a duplicate costs and does: inside the window, outside of it, and with stale views of either partition."""

from __future__ import annotations

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import FindProcessed, Found, FoundStaged, LoadStaged, Stage, WriteRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.records.library import StagedOutputs
from tests.samples import deposit
from tests.unit.script import AT, ENTITY, Script, attempt

WINDOW = Outbox(window=2)
STAGING = Outbox(inline_limit=0)


def left_the_window() -> Script:
    """m-1 and m-2 have left; m-3 is in the document."""
    script = Script()
    for number in (1, 2, 3):
        script.play(attempt(WINDOW, deposit(f"m-{number}")))
    return script


def test_a_duplicate_inside_the_window_publishes_what_is_owed_and_nothing_else() -> None:
    script = Script()
    first = script.play(attempt(Outbox(), deposit("m-1", answers=2)))
    again = script.play(attempt(Outbox(), deposit("m-1", answers=2)))
    assert again.kinds == [Together, Publish]
    assert again.only(Publish) == Publish(first.only(Publish).outputs, ENTITY)
    assert again.finished.processed == ()


def test_a_duplicate_that_owes_nothing_does_nothing() -> None:
    script = Script()
    first = script.play(attempt(Outbox(), deposit("m-1")))
    script.play(Outbox().mark(ENTITY, first.finished.memory))
    assert script.play(attempt(Outbox(), deposit("m-1"))).kinds == [Together]


def test_a_duplicate_outside_the_window_finds_its_record_and_does_nothing() -> None:
    played = left_the_window().play(attempt(WINDOW, deposit("m-1")))
    assert played.kinds == [Together]
    assert played.finished.processed == ()


def test_a_group_of_old_and_new_messages_commits_the_new_ones_only() -> None:
    script = left_the_window()
    played = script.play(attempt(WINDOW, deposit("m-1"), deposit("m-4"), deposit("m-3")))
    assert played.finished.processed == ("web/m-4",)
    assert played.only(Begin).count == 1
    assert [entry.message for entry in script.entries] == ["web/m-3", "web/m-4"]


@pytest.mark.parametrize("token", ["0:-1#1", None, "1:-1#9", "0:0#9", "unreadable"])
def test_a_find_that_may_be_older_than_the_ledger_is_made_again_with_its_token(token: str | None) -> None:
    script = left_the_window()
    stale = Found(frozenset(), token)
    played = script.play(attempt(WINDOW, deposit("m-1")), {FindProcessed: [stale]})
    assert played.kinds == [Together, FindProcessed]
    assert played.only(FindProcessed).token == script.ledger.token == "0:-1#3"
    assert played.finished.processed == ()


@pytest.mark.parametrize("token", ["0:-1#3", "0:-1#4", "0:-1#30#1=7"])
def test_a_find_at_or_after_the_ledgers_token_is_not_made_again(token: str) -> None:
    played = left_the_window().play(attempt(WINDOW, deposit("m-4")), {FindProcessed: Found(frozenset(), token)})
    assert played.kinds[:2] == [Together, Begin]


def test_a_second_find_asks_only_for_what_the_ledger_does_not_know() -> None:
    stale = Found(frozenset(), None)
    played = left_the_window().play(attempt(WINDOW, deposit("m-3"), deposit("m-1")), {FindProcessed: [stale]})
    assert played.only(FindProcessed).messages == ("web/m-1",)


def test_a_ledger_that_never_let_go_of_an_entry_needs_no_second_find() -> None:
    script = Script()
    script.play(attempt(STAGING, deposit("m-1")))
    assert script.ledger.token is not None
    played = script.play(attempt(STAGING, deposit("m-2")), {FindProcessed: Found(frozenset(), None)})
    assert played.all(FindProcessed) == []


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_a_find_without_an_answer_is_never_taken_as_absent(reply: NoAnswer) -> None:
    first = left_the_window().play(attempt(WINDOW, deposit("m-1")), {FindProcessed: reply})
    assert first.kinds == [Together]
    assert first.again.reason
    stale = Found(frozenset(), None)
    second = left_the_window().play(attempt(WINDOW, deposit("m-1")), {FindProcessed: [stale, reply]})
    assert second.kinds == [Together, FindProcessed]
    assert second.again.reason


def test_reads_carry_the_tokens_that_are_remembered() -> None:
    memory = Memory(entity_token="0:-1#4", library_token="0:-1#5")
    look = Script().play(attempt(Outbox(), deposit("m-1"), memory=memory), {LoadEntity: UNKNOWN}).only(Together)
    assert isinstance(look.first, LoadEntity)
    assert isinstance(look.second, FindProcessed)
    assert (look.first.token, look.second.token) == ("0:-1#4", "0:-1#5")


def test_the_tokens_of_the_replies_are_remembered() -> None:
    script = left_the_window()
    memory = script.play(attempt(WINDOW, deposit("m-1"))).finished.memory
    assert (memory.entity_token, memory.library_token) == ("0:-1#3", "0:-1#3")
    memory = script.play(attempt(WINDOW, deposit("m-4"))).finished.memory
    assert (memory.entity_token, memory.library_token) == ("0:-1#4", "0:-1#3")


def test_a_duplicate_with_staged_outputs_reads_and_publishes_them() -> None:
    script = Script()
    first = script.play(attempt(STAGING, deposit("m-1")))
    (document,) = first.only(Stage).documents
    again = script.play(attempt(STAGING, deposit("m-1")), {LoadStaged: FoundStaged((document,))})
    assert again.kinds == [Together, LoadStaged, Publish]
    assert (again.only(LoadStaged).transactions, again.only(LoadStaged).token) == (("tx-1",), "0:-1#1")
    assert again.only(Publish) == Publish(first.only(Publish).outputs, ENTITY)


def test_a_staged_document_that_is_gone_was_published() -> None:
    script = Script()
    script.play(attempt(STAGING, deposit("m-1")))
    again = script.play(attempt(STAGING, deposit("m-1")), {LoadStaged: FoundStaged(())})
    assert again.kinds == [Together, LoadStaged]
    assert again.finished.memory.published == {"tx-1"}


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_staged_outputs_that_cannot_be_read_are_not_taken_as_published(reply: NoAnswer) -> None:
    script = Script()
    script.play(attempt(STAGING, deposit("m-1")))
    again = script.play(attempt(STAGING, deposit("m-1")), {LoadStaged: reply})
    assert again.kinds == [Together, LoadStaged]
    assert again.again.memory.published == frozenset()


def test_leaving_publishes_inline_and_staged_outputs_before_their_records_are_written() -> None:
    script, mixed = Script(), Outbox(window=2, inline_limit=900)
    script.play(attempt(mixed, deposit("m-1")))
    large = script.play(attempt(mixed, deposit("m-2", padding="x" * 900)))
    documents: tuple[StagedOutputs, ...] = large.only(Stage).documents
    played = script.play(attempt(mixed, deposit("m-3")), {LoadStaged: FoundStaged(documents)})
    assert played.kinds[2:5] == [LoadStaged, Publish, WriteRecords]
    causes = [output.envelope.value["data"]["padding"] for output in played.all(Publish)[0].outputs]
    assert causes == ["", "x" * 900]
    assert played.kinds.index(WriteRecords) < played.kinds.index(SaveEntity)
