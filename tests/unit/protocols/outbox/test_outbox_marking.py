"""Marking: what this process published is not published again, and the document learns of it as cheaply as possible."""

from __future__ import annotations

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Finished, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import WriteRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.frozen_json import Json
from tests.samples import breaking, deposit
from tests.unit.script import ENTITY, Played, Script, attempt


def mark(script: Script, memory: Memory, **replies: object) -> Played:
    return script.play(Outbox().mark(ENTITY, memory), {kinds[name]: reply for name, reply in replies.items()})


kinds = {"load": LoadEntity, "save": SaveEntity}


def published_one() -> tuple[Script, Memory]:
    script = Script()
    return script, script.play(attempt(Outbox(), deposit("m-1"))).finished.memory


def test_a_commit_remembers_what_it_published_and_the_document_it_saved() -> None:
    script, memory = published_one()
    assert memory.published == {"tx-1"}
    assert memory.saved is not None
    assert (memory.saved.document, memory.saved.etag) == (script.document, '"1"')


def test_a_commit_that_owes_nothing_leaves_nothing_to_mark() -> None:
    memory = Script().play(attempt(Outbox(), deposit("m-1", answers=0))).finished.memory
    assert memory.published == frozenset()


def test_the_next_commit_marks_for_nothing() -> None:
    script, memory = published_one()
    played = script.play(attempt(Outbox(), deposit("m-2"), memory=memory))
    assert played.kinds == [Together, Begin, SaveEntity, Publish]
    assert [entry.owed is None for entry in script.entries] == [True, False]
    assert played.finished.memory.published == {"tx-2"}


def test_without_that_memory_the_next_commit_leaves_what_is_owed() -> None:
    script, _ = published_one()
    script.play(attempt(Outbox(), deposit("m-2")))
    assert [entry.owed is None for entry in script.entries] == [False, False]


def test_what_this_process_published_is_not_published_again_for_a_duplicate() -> None:
    script, memory = published_one()
    played = script.play(attempt(Outbox(), deposit("m-1"), memory=memory))
    assert played.kinds == [Together]
    assert played.finished.memory.published == {"tx-1"}
    assert played.finished.memory.saved is not None


def test_what_this_process_published_is_not_published_again_when_it_leaves() -> None:
    strategy, script = Outbox(window=1), Script()
    memory = script.play(attempt(strategy, deposit("m-1"))).finished.memory
    played = script.play(attempt(strategy, deposit("m-2"), memory=memory))
    assert played.kinds == [Together, Begin, WriteRecords, SaveEntity, Publish]
    assert played.finished.memory.published == {"tx-2"}


def test_a_message_that_fails_does_not_forget_what_is_to_be_marked() -> None:
    script, memory = published_one()
    played = script.play(attempt(Outbox(), breaking("m-2"), memory=memory))
    assert played.finished.memory.published == {"tx-1"}
    assert played.finished.memory.saved is not None


def test_marking_with_the_remembered_document_is_one_conditional_save() -> None:
    script, memory = published_one()
    played = mark(script, memory)
    assert played.kinds == [SaveEntity]
    assert played.only(SaveEntity).etag == '"1"'
    assert script.ledger.owing == frozenset()
    assert script.ledger.version == 1
    assert script.document is not None
    assert script.document.value["total"] == 1
    remembered = played.finished.memory
    assert remembered.published == frozenset()
    assert remembered.saved is not None
    assert (remembered.saved.document, remembered.saved.etag) == (script.document, '"2"')


def test_marking_without_it_loads_first() -> None:
    script, memory = published_one()
    played = mark(script, Memory(entity_token="0:-1#1", published=memory.published))
    assert played.kinds == [LoadEntity, SaveEntity]
    assert played.only(LoadEntity).token == "0:-1#1"
    assert script.ledger.owing == frozenset()


def test_marking_leaves_alone_what_others_owe() -> None:
    script, memory = published_one()
    script.play(attempt(Outbox(), deposit("m-2")))
    mark(script, Memory(published=memory.published))
    assert script.ledger.owing == {"tx-2"}


def test_nothing_is_saved_when_a_later_commit_has_marked_already() -> None:
    script, memory = published_one()
    script.play(attempt(Outbox(), deposit("m-2"), memory=memory))
    assert mark(script, Memory(published=memory.published)).kinds == [LoadEntity]


def test_there_is_nothing_to_mark_in_an_absent_document() -> None:
    assert mark(Script(), Memory(published=frozenset({"tx-1"}))).kinds == [LoadEntity]


def test_after_a_conflict_marking_loads_at_the_conflicts_token() -> None:
    script, memory = published_one()
    script.play(attempt(Outbox(), deposit("m-2")))
    first = mark(script, memory, save=Conflict("0:-1#2"))
    assert first.kinds == [SaveEntity]
    second = mark(script, first.again.memory)
    assert second.kinds == [LoadEntity, SaveEntity]
    assert second.only(LoadEntity).token == "0:-1#2"
    assert script.ledger.owing == {"tx-2"}


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_marking_starts_over_when_the_entity_cannot_be_read(reply: NoAnswer) -> None:
    memory = Memory(published=frozenset({"tx-1"}))
    played = mark(Script(), memory, load=reply)
    assert played.again.memory == memory


def test_a_mark_of_unknown_outcome_starts_over_from_load() -> None:
    script, memory = published_one()
    assert mark(script, memory, save=UNKNOWN).again.memory.saved is None


def test_a_staged_entry_that_is_marked_still_shows_that_there_is_a_document_to_delete() -> None:
    script, strategy = Script(), Outbox(inline_limit=0)
    memory = script.play(attempt(strategy, deposit("m-1"))).finished.memory
    script.play(strategy.mark(ENTITY, memory))
    (entry,) = script.entries
    assert (entry.staged, entry.owed) == (True, None)


def test_published_outputs_stay_named_for_good() -> None:
    script, memory = published_one()
    named = script.entries[0].outputs
    mark(script, memory)
    assert script.entries[0].outputs == named != ()


def test_a_mark_never_publishes() -> None:
    script, memory = published_one()
    assert mark(script, Memory(published=memory.published)).all(Publish) == []


def test_a_document_that_lost_its_ledger_has_nothing_to_mark() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1")))
    assert script.document is not None
    properties = script.document.value
    del properties[LEDGER]
    script.put(Json.of(properties))
    played = script.play(Outbox().mark(ENTITY, Memory(published=frozenset({"tx-1"}))))
    assert played.result == Finished(Memory())
    assert played.all(SaveEntity) == []
