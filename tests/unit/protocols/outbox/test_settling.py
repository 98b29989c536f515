"""What the sweeper and the poison settler ask for, step by step, and what they make of every reply."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import LedgerRemoved, Outbox
from exactlyonce.attempt import Finished, Memory, Settled, key_of
from exactlyonce.drivers.blocking_driver import BlockingDriver
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FindProcessed, Found, FoundStaged, HasRecords, LoadStaged, Park, Stage
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ParkedMessage
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.frozen_json import Json
from tests.asking import settle, sweep
from tests.samples import accounts, deposit
from tests.unit.playing import AT, ENTITY, Played, Script, attempt

ABSENT = accounts().shape.tombstone(ENTITY)
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})
REASON = "its handler raised ValueError"
POISON = deposit("m-9")
PARKED = ParkedMessage(ENTITY.key, "web/m-9", REASON, AT, POISON.to_json())
NO_ANSWERS = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
NOT_SAVED = pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200"), Conflict(None)])


def committed(*numbers: int, strategy: Outbox | None = None) -> Script:
    """An entity that owes the output of each of these messages, as if every process had crashed before publishing."""
    script = Script()
    for number in numbers:
        script.play(attempt(strategy or Outbox(), deposit(f"m-{number}")))
    return script


def swept(script: Script, replies: dict[Any, Any] | None = None, memory: Memory | None = None) -> Played:
    return script.play(sweep(ENTITY, memory or Memory()), replies)


def settled(script: Script, replies: dict[Any, Any] | None = None, memory: Memory | None = None) -> Played:
    return script.play(settle(ENTITY, POISON, REASON, ABSENT, memory or Memory()), replies)


class TestTheSweeper:
    def test_it_publishes_all_that_is_owed_and_then_marks_it_as_it_was_loaded(self) -> None:
        script = committed(1, 2)
        owed = [output for entry in script.entries if isinstance(entry.owed, tuple) for output in entry.owed]
        played = swept(script)
        assert played.kinds == [LoadEntity, Publish, SaveEntity]
        assert list(played.only(Publish).outputs) == owed
        assert played.only(SaveEntity).etag == "etag-2"
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
        assert swept(script).kinds == [LoadEntity, LoadStaged, SaveEntity]
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
        first = swept(committed(1), {SaveEntity: Conflict("0:-1#200")})
        assert first.again.memory.entity_token == "0:-1#200"


class TestAMessageThatWasProcessed:
    def test_its_entry_proves_it_and_what_it_owes_is_published(self) -> None:
        script = committed(1, 9, 2)
        played = settled(script)
        assert played.kinds == [LoadEntity, Publish]
        (output,) = played.only(Publish).outputs
        assert output.id == script.entries[1].outputs[0].id
        assert played.result.outcome == "processed"

    def test_what_was_published_can_be_marked_without_another_read(self) -> None:
        script = committed(9)
        memory = settled(script).result.memory
        assert memory.published == {"tx-1"}
        assert script.play(Outbox().mark(ENTITY, memory)).kinds == [SaveEntity]
        assert script.ledger.owing_since is None

    def test_an_entry_that_owes_nothing_needs_nothing(self) -> None:
        script = committed(9)
        swept(script)
        assert settled(script).kinds == [LoadEntity]

    def test_its_staged_outputs_are_read_at_the_ledgers_token(self) -> None:
        script = committed(9, strategy=Outbox(inline_limit=0))
        played = settled(script)
        assert played.kinds == [LoadEntity, LoadStaged]
        assert played.only(LoadStaged).token == "0:-1#1"
        assert played.result.outcome == "processed"

    def test_its_record_proves_it(self) -> None:
        script = committed(9, 1, strategy=Outbox(window=1))
        played = settled(script)
        assert played.kinds == [LoadEntity, FindProcessed]
        assert (played.only(FindProcessed).messages, played.only(FindProcessed).token) == (("web/m-9",), "0:-1#1")
        assert played.result.outcome == "processed"

    def test_what_may_not_have_been_published_keeps_it_unsettled(self) -> None:
        played = settled(committed(9), {Publish: UNKNOWN})
        assert played.kinds == [LoadEntity, Publish]
        assert played.again.reason

    @NO_ANSWERS
    def test_staged_outputs_that_cannot_be_read_keep_it_unsettled(self, reply: NoAnswer) -> None:
        played = settled(committed(9, strategy=Outbox(inline_limit=0)), {LoadStaged: reply})
        assert played.kinds == [LoadEntity, LoadStaged]
        assert played.again.reason


class TestAMessageThatWasNeverProcessed:
    def test_it_is_parked_behind_a_fence_that_changes_nothing(self) -> None:
        script = committed(1)
        before = script.document
        played = settled(script)
        assert played.kinds == [LoadEntity, FindProcessed, SaveEntity, Begin, Park]
        assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (before, "etag-1")
        assert played.only(Park).message == PARKED
        assert played.result == Settled("parked", Memory(entity_token="0:-1#101"))

    def test_the_envelope_is_kept_as_it_will_be_sent_again(self) -> None:
        message = settled(Script()).only(Park).message
        assert type(POISON).read(message.envelope.text) == POISON
        assert message.message == key_of(POISON)

    def test_of_an_absent_entity_the_fence_is_a_tombstone_that_knows_nothing(self) -> None:
        script = Script()
        played = settled(script)
        assert played.only(SaveEntity).etag is None
        assert script.document == entity_document(ABSENT, Ledger(type="account", deleted=True))
        assert (script.ledger.version, script.entries) == (0, ())

    def test_a_document_that_has_no_ledger_yet_is_fenced_as_it_is(self) -> None:
        script = Script(FOREIGN)
        played = settled(script)
        assert played.kinds == [LoadEntity, HasRecords, FindProcessed, SaveEntity, Begin, Park]
        assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (FOREIGN, "etag-0")

    def test_a_tombstone_is_fenced_as_it_is(self) -> None:
        tombstone = entity_document(ABSENT, Ledger(3, deleted=True))
        assert settled(Script(tombstone)).only(SaveEntity).document == tombstone

    @NOT_SAVED
    def test_without_the_fence_nothing_is_parked(self, reply: Any) -> None:
        played = settled(committed(1), {SaveEntity: reply})
        assert played.kinds == [LoadEntity, FindProcessed, SaveEntity]
        assert played.again.reason

    def test_after_a_conflict_of_the_fence_the_next_load_sees_what_won(self) -> None:
        played = settled(committed(1), {SaveEntity: Conflict("0:-1#200")})
        assert played.again.memory.entity_token == "0:-1#200"

    @NO_ANSWERS
    def test_without_an_answer_to_a_read_nothing_is_fenced(self, reply: NoAnswer) -> None:
        assert settled(committed(1), {LoadEntity: reply}).kinds == [LoadEntity]
        unfound = settled(committed(1), {FindProcessed: reply})
        assert unfound.kinds == [LoadEntity, FindProcessed]
        assert unfound.again.reason

    def test_it_is_not_settled_before_it_is_known_to_be_parked(self) -> None:
        assert settled(committed(1), {Park: UNKNOWN}).again.reason

    def test_the_record_of_another_message_proves_nothing_about_it(self) -> None:
        found = Found(frozenset({"web/m-1"}), "0:-1#1")
        assert settled(committed(1), {FindProcessed: found}).result.outcome == "parked"

    def test_the_loads_token_is_carried_into_the_next_attempt(self) -> None:
        memory = Memory(entity_token="0:-1#90")
        played = settled(committed(1), {FindProcessed: UNKNOWN}, memory)
        assert played.only(LoadEntity).token == "0:-1#90"
        assert played.again.memory.entity_token == "0:-1#100"


class TestALedgerThatWasRemoved:
    @pytest.mark.parametrize("run", [swept, settled])
    def test_it_is_told_and_nothing_is_changed_parked_or_published(self, run: Any) -> None:
        script = Script(FOREIGN)
        script.records = frozenset({"web/m-1"})
        with pytest.raises(LedgerRemoved):
            run(script)
        assert script.document == FOREIGN

    @pytest.mark.parametrize("run", [swept, settled])
    @pytest.mark.parametrize(
        "replies", [{HasRecords: UNKNOWN}, {HasRecords: True, SaveEntity: Conflict(None)}], ids=["not known", "stale"]
    )
    def test_it_is_not_told_of_a_view_that_may_be_stale(self, run: Any, replies: dict[Any, Any]) -> None:
        played = run(Script(FOREIGN), replies)
        assert played.again.reason
        assert not played.all(Park)


def test_a_fence_forgets_the_document_it_made_outdated_and_nothing_else() -> None:
    script = Script()
    memory = script.play(attempt(Outbox(), deposit("m-1"))).finished.memory
    assert memory.saved is not None
    after = settled(script, {SaveEntity: Saved("etag-7", "0:-1#7")}, memory).result.memory
    assert (after.saved, after.entity_token, after.published) == (None, "0:-1#7", memory.published)


def test_a_message_parked_for_an_absent_entity_starts_it_when_it_is_sent_again() -> None:
    store = MemoryStore(lambda: AT)
    driver = BlockingDriver(store, lambda _: PUBLISHED, Runtime())
    assert isinstance(driver.run(settle(ENTITY, POISON, REASON, ABSENT, Memory())), Settled)
    finished = driver.run(attempt(Outbox(), POISON))
    assert isinstance(finished, Finished)
    assert finished.processed == ("web/m-9",)
    loaded = store.perform(LoadEntity(ENTITY))
    assert isinstance(loaded, Loaded)
    assert loaded.document is not None
    assert loaded.document.value["total"] == 1
    assert (loaded.document.value["_ledger"]["version"], loaded.document.value["_ledger"]["deleted"]) == (1, False)
