"""First processing, step by step: which effects, in which order, and with what in them."""

from __future__ import annotations

from exactlyonce import Outbox
from exactlyonce.effects.effect import UNKNOWN, Begin, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import DeleteStaged, FindProcessed, LoadStaged, Stage, WriteProcessed
from exactlyonce.effects.publish import Publish
from tests.samples import breaking, close, deposit
from tests.unit.playing import AT, ENTITY, Script, attempt

STAGING = Outbox(inline_limit=0)


def test_a_first_message_is_looked_up_committed_and_only_then_published() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1", amount=7)))
    assert played.kinds == [Together, Begin, SaveEntity, Publish]
    look = played.only(Together)
    assert isinstance(look.first, LoadEntity)
    assert look.second == FindProcessed(ENTITY, ("web/m-1",))
    saved = played.only(SaveEntity)
    assert saved.etag is None
    assert saved.document.value["total"] == 7
    assert played.finished.processed == ("web/m-1",)


def test_the_commit_holds_the_entry_with_everything_it_owes() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1")))
    (entry,) = script.entries
    assert (entry.message, entry.tx, entry.version, entry.at) == ("web/m-1", "tx-1", 1, AT)
    assert entry.owed == played.only(Publish).outputs
    assert [(output.id, output.destination) for output in entry.outputs] == [
        (output.id, output.destination) for output in played.only(Publish).outputs
    ]
    assert script.ledger.owing_since == AT
    assert (script.ledger.version, script.ledger.type) == (1, "account")


def test_a_message_without_outputs_owes_nothing_and_publishes_nothing() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1", answers=0)))
    assert played.kinds == [Together, Begin, SaveEntity]
    assert script.entries[0].owed is None
    assert script.ledger.owing_since is None


def test_a_later_commit_replaces_what_was_loaded_and_counts_on() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1")))
    played = script.play(attempt(Outbox(), deposit("m-2")))
    assert played.only(SaveEntity).etag == "etag-1"
    assert [entry.version for entry in script.entries] == [1, 2]
    assert script.ledger.version == 2


def test_when_the_window_overflows_owed_outputs_and_records_come_before_the_commit() -> None:
    strategy, script = Outbox(window=2), Script()
    for number in (1, 2):
        script.play(attempt(strategy, deposit(f"m-{number}")))
    owed = [entry.owed for entry in script.entries]
    played = script.play(attempt(strategy, deposit("m-3")))
    assert played.kinds == [Together, Begin, Publish, WriteProcessed, SaveEntity, Publish]
    first, _ = played.all(Publish)
    assert [(output,) for output in first.outputs] == owed
    assert [record.message for record in played.only(WriteProcessed).records] == ["web/m-1", "web/m-2"]
    assert [entry.message for entry in script.entries] == ["web/m-3"]
    assert (script.ledger.version, script.ledger.token) == (3, "0:-1#1")


def test_a_full_window_writes_records_once_in_as_many_commits_as_it_holds() -> None:
    strategy, script, wrote = Outbox(window=4), Script(), []
    for number in range(13):
        played = script.play(attempt(strategy, deposit(f"m-{number}")))
        wrote.append(len(played.all(WriteProcessed)))
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
    owed = script.entries[0].owed
    assert isinstance(owed, tuple)
    size = owed[0].size
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
        WriteProcessed,
        Stage,
        SaveEntity,
        Publish,
        DeleteStaged,
    ]
    assert played.only(DeleteStaged).transactions == ("tx-1",)
    assert script.ledger.token == "0:-1#3"


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


def test_each_attempt_asks_for_transactions_of_its_own() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1")), {SaveEntity: Conflict("0:-1#5")})
    script.play(attempt(Outbox(), deposit("m-1")))
    assert script.entries[0].tx == "tx-2"


def test_copies_of_one_message_in_a_group_count_once() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1"), deposit("m-1"), deposit("m-2")))
    assert played.only(Begin).count == 2
    assert played.finished.processed == ("web/m-1", "web/m-2")
    assert script.document is not None
    assert script.document.value["total"] == 2


def test_messages_of_a_group_see_what_those_before_them_did() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1", amount=5), close("m-2"), deposit("m-3", amount=2)))
    totals = [output.envelope.value["data"]["total"] for output in played.only(Publish).outputs]
    assert totals == [5, 5, 2]
    assert script.ledger.deleted is False


def test_a_message_that_fails_leaves_the_group_and_takes_nothing_along() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1"), breaking("m-2"), deposit("m-3")))
    assert played.finished.processed == ("web/m-1", "web/m-3")
    assert [key for key, _ in played.finished.failed] == ["web/m-2"]
    assert len(played.only(Publish).outputs) == 2
    assert [(entry.message, entry.version) for entry in script.entries] == [("web/m-1", 1), ("web/m-3", 2)]


def test_nothing_is_written_when_every_message_fails() -> None:
    played = Script().play(attempt(Outbox(), breaking("m-1"), breaking("m-2")))
    assert played.kinds == [Together, Begin]
    assert len(played.finished.failed) == 2
    assert played.finished.processed == ()
