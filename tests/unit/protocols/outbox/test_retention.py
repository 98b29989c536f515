"""Clean-up: what it asks for, in which order, and what keeps it from deleting."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import LedgerRemoved, Outbox
from exactlyonce.attempt import Finished, Memory
from exactlyonce.drivers.blocking_driver import BlockingDriver
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect, NoAnswer, Step
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import DeleteProcessed, DeleteStaged, FindProcessed, Found, HasRecords, WriteRecords
from exactlyonce.effects.publish import PUBLISHED
from exactlyonce.protocols.outbox.clean import Cleaned, clean_staged
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, deposit
from tests.unit.script import AT, ENTITY, Played, Script, attempt

ABSENT = accounts().shape.tombstone(ENTITY)
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})


def staging(*numbers: int) -> Script:
    """An entity whose ledger names a staged document for each of these messages: tx-1 and so on."""
    script = Script()
    for number in numbers:
        script.play(attempt(Outbox(inline_limit=0), deposit(f"m-{number}")))
    return script


def cleaned(script: Script, *candidates: str, replies: dict[Any, Any] | None = None) -> Played:
    return script.play(clean_staged(ENTITY, candidates, ABSENT, Memory()), replies)


def test_the_fence_comes_before_the_deletion_and_changes_nothing() -> None:
    script = staging(1)
    before = script.document
    played = cleaned(script, "tx-7", "tx-8")
    assert played.kinds == [LoadEntity, SaveEntity, DeleteStaged]
    assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (before, '"2"')
    assert played.only(DeleteStaged) == DeleteStaged(ENTITY, ("tx-7", "tx-8"))
    assert played.result == Cleaned(("tx-7", "tx-8"), Memory(entity_token="0:-1#2"))


def test_what_an_entry_names_is_kept_whether_or_not_it_is_owed() -> None:
    script = staging(1)
    memory = script.play(attempt(Outbox(inline_limit=0), deposit("m-1"))).finished.memory
    script.play(Outbox().mark(ENTITY, memory))
    script.play(attempt(Outbox(inline_limit=0), deposit("m-2")))
    assert [entry.owed for entry in script.entries] == [None, "staged"]
    played = cleaned(script, "tx-1", "tx-7", "tx-2")
    assert played.only(DeleteStaged).transactions == ("tx-7",)
    assert played.result.transactions == ("tx-7",)


@pytest.mark.parametrize("candidates", [(), ("tx-1",), ("tx-2", "tx-1")])
def test_where_nothing_is_left_to_delete_nothing_is_fenced(candidates: tuple[str, ...]) -> None:
    played = cleaned(staging(1, 2), *candidates)
    assert played.kinds == [LoadEntity]
    assert played.result == Cleaned((), Memory(entity_token="0:-1#2"))


def test_an_absent_entity_is_fenced_by_a_tombstone_that_a_late_create_fails_on() -> None:
    script = Script()
    assert cleaned(script, "tx-7").kinds == [LoadEntity, SaveEntity, DeleteStaged]
    assert script.document == entity_document(ABSENT, Ledger(type="account", deleted=True))


def test_a_document_that_has_no_ledger_yet_is_fenced_as_it_is() -> None:
    script = Script(FOREIGN)
    assert cleaned(script, "tx-7").kinds == [LoadEntity, HasRecords, SaveEntity, DeleteStaged]
    assert script.document == FOREIGN


@pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200"), Conflict(None)])
def test_without_the_fence_nothing_is_deleted(reply: Any) -> None:
    played = cleaned(staging(1), "tx-7", replies={SaveEntity: reply})
    assert played.kinds == [LoadEntity, SaveEntity]
    assert played.again.reason


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_an_entity_that_cannot_be_read_is_left_alone(reply: NoAnswer) -> None:
    played = cleaned(staging(1), "tx-7", replies={LoadEntity: reply})
    assert played.kinds == [LoadEntity]
    assert played.again.reason


def test_where_the_ledger_was_removed_nobody_knows_what_is_owed_so_nothing_is_deleted() -> None:
    script = Script(FOREIGN)
    script.record("web/m-1")
    with pytest.raises(LedgerRemoved):
        cleaned(script, "tx-7")
    assert cleaned(script, "tx-7", replies={HasRecords: UNKNOWN}).again.reason


def test_records_are_deleted_as_they_were_read_and_nothing_else_is_asked() -> None:
    records = (("web/m-1", '"1"'), ("web/m-2", '"2"'))
    assert Script().play(Outbox().clean(ENTITY, records, Memory())).effects == (DeleteProcessed(ENTITY, records),)
    assert Script().play(Outbox().clean(ENTITY, (), Memory())).effects == ()


def test_a_deleted_record_is_written_anew_before_its_entry_leaves() -> None:
    """An attempt wrote the record and crashed before its commit; much later clean-up comes, and then the next message."""
    strategy, store = Outbox(window=1), MemoryStore(lambda: AT)
    driver = BlockingDriver(store, lambda _: PUBLISHED, Runtime())
    driver.run(attempt(strategy, deposit("m-1")))
    written = until(WriteRecords, attempt(strategy, deposit("m-2")), driver)
    assert written.records[0].message == "web/m-1"
    record = store.library[ENTITY.key].newest("processed:web/m-1")
    assert record is not None
    driver.run(strategy.clean(ENTITY, (("web/m-1", record.etag),), Memory()))
    assert store.perform(FindProcessed(ENTITY, ("web/m-1",))) == Found(frozenset(), "0:-1#3")
    finished = driver.run(attempt(strategy, deposit("m-1"), deposit("m-2")))
    assert isinstance(finished, Finished)
    assert finished.processed == ("web/m-2",)
    duplicate = driver.run(attempt(strategy, deposit("m-1")))
    assert isinstance(duplicate, Finished)
    assert duplicate.processed == ()


def until(last: type[Effect[Any]], step: Step[Any], driver: BlockingDriver) -> Any:
    """Run a generator up to and with its first effect of a kind; there it crashes."""

    def performing(effect: Effect[Any]) -> Step[Any]:
        reply = yield from effect
        return reply

    effect = next(step)
    while True:
        reply = driver.run(performing(effect))
        if isinstance(effect, last):
            return effect
        effect = step.send(reply)
