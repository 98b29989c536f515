"""What the sweeper asks of the outbox, step by step, and what it makes of every reply."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import LedgerRemoved, Outbox
from exactlyonce.attempt import Finished, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import FoundStaged, HasRecords, LoadStaged, Stage
from exactlyonce.effects.publish import Publish
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.values.frozen_json import Json
from tests.asking import sweep
from tests.samples import accounts, deposit
from tests.unit.script import ENTITY, Played, Script, attempt

ABSENT = accounts().shape.tombstone(ENTITY)
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})
NO_ANSWERS = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
NOT_SAVED = pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#1"), Conflict(None)])


def committed(*numbers: int, strategy: Outbox | None = None) -> Script:
    """An entity that owes the output of each of these messages, as if every process had crashed before publishing."""
    script = Script()
    for number in numbers:
        script.play(attempt(strategy or Outbox(), deposit(f"m-{number}")))
    return script


def swept(script: Script, replies: dict[Any, Any] | None = None, memory: Memory | None = None) -> Played:
    return script.play(sweep(ENTITY, memory or Memory()), replies)


class TestTheSweeper:
    def test_it_publishes_all_that_is_owed_and_then_marks_it_as_it_was_loaded(self) -> None:
        script = committed(1, 2)
        owed = [output for entry in script.entries for output in entry.owed_outputs(ENTITY.source)]
        played = swept(script)
        assert played.kinds == [LoadEntity, Publish, SaveEntity]
        assert list(played.only(Publish).outputs) == owed
        assert played.only(SaveEntity).etag == '"2"'
        assert played.result == Finished(Memory())
        assert script.ledger.owing_since is None
        assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2"]

    def test_marking_changes_nothing_else(self) -> None:
        script = committed(1)
        before, ledger = script.document, script.ledger
        swept(script)
        assert before is not None
        assert script.document == entity_document(
            Json.of({name: value for name, value in before.value.items() if name != "_ledger"}),
            ledger.with_published({"tx-1"}),
        )

    def test_staged_outputs_are_read_at_the_ledgers_token_and_stay_known_as_staged(self) -> None:
        script, strategy = Script(), Outbox(inline_limit=0)
        staged = script.play(attempt(strategy, deposit("m-1"))).only(Stage).documents
        played = swept(script, {LoadStaged: FoundStaged(staged)})
        assert played.kinds == [LoadEntity, LoadStaged, Publish, SaveEntity]
        assert played.only(LoadStaged).token == script.ledger.token == "0:-1#1"
        assert played.only(Publish).outputs == staged[0].outputs
        assert [(entry.owed, entry.staged) for entry in script.entries] == [(None, True)]

    def test_a_staged_document_that_is_gone_was_published(self) -> None:
        script = committed(1, strategy=Outbox(inline_limit=0))
        played = swept(script, {LoadStaged: FoundStaged(())})
        assert played.kinds == [LoadEntity, LoadStaged, SaveEntity]
        assert script.ledger.owing_since is None

    @pytest.mark.parametrize("document", [None, entity_document(ABSENT, Ledger(1)), FOREIGN])
    def test_an_entity_that_owes_nothing_is_left_alone(self, document: Json | None) -> None:
        played = swept(Script(document))
        assert not played.all(SaveEntity)
        assert played.result == Finished(Memory())

    @NO_ANSWERS
    def test_without_an_answer_to_a_read_nothing_is_published(self, reply: NoAnswer) -> None:
        assert swept(committed(1), {LoadEntity: reply}).kinds == [LoadEntity]
        staged = swept(committed(1, strategy=Outbox(inline_limit=0)), {LoadStaged: reply})
        assert staged.kinds == [LoadEntity, LoadStaged]
        assert staged.again.memory.published == frozenset()

    def test_what_may_not_have_been_published_is_not_marked(self) -> None:
        played = swept(committed(1), {Publish: UNKNOWN})
        assert played.kinds == [LoadEntity, Publish]
        assert played.again.memory.published == frozenset()

    @NOT_SAVED
    def test_what_could_not_be_marked_is_marked_from_a_new_load_without_publishing_again(self, reply: Any) -> None:
        script = committed(1)
        first = swept(script, {SaveEntity: reply})
        memory = first.again.memory
        assert memory.published == {"tx-1"}
        assert swept(script, memory=memory).kinds == [LoadEntity, SaveEntity]

    def test_after_a_conflict_the_next_load_sees_what_won(self) -> None:
        first = swept(committed(1), {SaveEntity: Conflict("0:-1#1")})
        assert first.again.memory.entity_token == "0:-1#1"


class TestALedgerThatWasRemoved:
    def test_it_is_reported_and_nothing_is_changed_or_published(self) -> None:
        script = Script(FOREIGN)
        script.record("web/m-1")
        with pytest.raises(LedgerRemoved):
            swept(script)
        assert script.document == FOREIGN

    @pytest.mark.parametrize(
        "replies", [{HasRecords: UNKNOWN}, {HasRecords: True, SaveEntity: Conflict(None)}], ids=["not known", "stale"]
    )
    def test_it_is_not_reported_of_a_view_that_may_be_stale(self, replies: dict[Any, Any]) -> None:
        played = swept(Script(FOREIGN), replies)
        assert played.again.reason
        assert not played.all(Publish)
