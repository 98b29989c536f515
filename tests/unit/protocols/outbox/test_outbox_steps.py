"""First processing, step by step: which effects, in which order, and with what in them."""

from __future__ import annotations

from exactlyonce import Outbox
from exactlyonce.effects.effect import UNKNOWN, Begin, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import DeleteStaged, FindProcessed, LoadStaged, Stage, WriteRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.records.library import ProcessedRecord, Seal
from tests.samples import deposit
from tests.unit.script import AT, ENTITY, Script, attempt

STAGING = Outbox(inline_limit=0)


def test_the_commit_holds_the_entry_with_everything_it_owes() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1")))
    assert played.only(Together) == Together(LoadEntity(ENTITY), FindProcessed(ENTITY, ("web/m-1",)))
    (entry,) = script.entries
    assert entry.at == AT
    assert entry.owed_outputs(ENTITY.source) == played.only(Publish).outputs
    assert script.ledger.owing_since == AT


def test_when_the_window_overflows_owed_outputs_and_records_come_before_the_commit() -> None:
    strategy, script = Outbox(window=2), Script()
    for number in (1, 2):
        script.play(attempt(strategy, deposit(f"m-{number}")))
    owed = [entry.owed_outputs(ENTITY.source) for entry in script.entries]
    played = script.play(attempt(strategy, deposit("m-3")))
    assert played.kinds == [Together, Begin, Publish, WriteRecords, SaveEntity, Publish]
    first, _ = played.all(Publish)
    assert [(output,) for output in first.outputs] == owed
    *records, seal = played.only(WriteRecords).records
    assert [record.message for record in records if isinstance(record, ProcessedRecord)] == ["web/m-1", "web/m-2"]
    assert seal == Seal(ENTITY.key)
    assert [entry.message for entry in script.entries] == ["web/m-3"]
    assert (script.ledger.version, script.ledger.token) == (3, "0:-1#3")


def test_a_full_window_writes_records_once_in_as_many_commits_as_it_holds() -> None:
    strategy, script, wrote = Outbox(window=4), Script(), []
    for number in range(13):
        played = script.play(attempt(strategy, deposit(f"m-{number}")))
        wrote.append(len(played.all(WriteRecords)))
    assert wrote == [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]


def test_outputs_over_the_limit_are_staged_before_the_commit_that_names_them() -> None:
    script = Script()
    played = script.play(attempt(STAGING, deposit("m-1")))
    assert played.kinds == [Together, Begin, Stage, SaveEntity, Publish]
    (staged,) = played.only(Stage).documents
    assert (staged.tx, staged.message, staged.entity) == ("tx-1", "web/m-1", ENTITY.key)
    assert staged.outputs == played.only(Publish).outputs
    assert (script.entries[0].staged, script.entries[0].owed) == (True, "staged")
    assert script.ledger.token == "0:-1#1"


def test_outputs_at_the_limit_ride_in_the_document() -> None:
    script = Script()
    script.play(attempt(Outbox(inline_limit=None), deposit("m-1")))
    (owed,) = script.entries[0].owed_outputs(ENTITY.source)
    size = owed.size
    for limit, staged in ((size, False), (size - 1, True)):
        script = Script()
        script.play(attempt(Outbox(inline_limit=limit), deposit("m-1")))
        assert script.entries[0].staged is staged


def test_a_conflict_of_staging_is_ones_own_and_its_token_is_relied_on() -> None:
    script = Script()
    played = script.play(attempt(STAGING, deposit("m-1")), {Stage: Conflict("0:-1#77")})
    assert played.kinds[-3:] == [Stage, SaveEntity, Publish]
    assert script.ledger.token == "0:-1#77"


def test_a_conflict_of_staging_without_a_token_proves_nothing() -> None:
    played = Script().play(attempt(STAGING, deposit("m-1")), {Stage: Conflict(None)})
    assert played.kinds[-1] is Stage
    assert played.again.reason


def test_staged_documents_are_deleted_after_the_commit_that_dropped_their_entries() -> None:
    strategy, script = Outbox.transaction_id(), Script()
    script.play(attempt(strategy, deposit("m-1")))
    played = script.play(attempt(strategy, deposit("m-2")))
    assert played.kinds == [
        Together,
        Begin,
        LoadStaged,
        Publish,
        WriteRecords,
        Stage,
        SaveEntity,
        Publish,
        DeleteStaged,
    ]
    assert played.only(DeleteStaged).transactions == ("tx-1",)
    assert script.ledger.token == "0:-1#4"


def test_a_lost_attempt_leaves_its_staged_documents_to_clean_up() -> None:
    for reply in (Conflict("0:-1#5"), UNKNOWN):
        played = Script().play(attempt(STAGING, deposit("m-1")), {SaveEntity: reply})
        assert played.kinds == [Together, Begin, Stage, SaveEntity]
        assert played.again.reason


def test_each_message_of_a_group_has_a_transaction_and_a_staged_document_of_its_own() -> None:
    script = Script()
    played = script.play(attempt(STAGING, deposit("m-1"), deposit("m-2"), deposit("m-3")))
    assert [entry.tx for entry in script.entries] == ["tx-1", "tx-2", "tx-3"]
    assert [document.tx for document in played.only(Stage).documents] == ["tx-1", "tx-2", "tx-3"]
    assert [entry.version for entry in script.entries] == [1, 2, 3]
    assert script.ledger.version == 3
    assert len(played.all(SaveEntity)) == 1
