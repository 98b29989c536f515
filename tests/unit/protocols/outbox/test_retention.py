"""Clean-up: what it asks for, in which order, and what keeps it from deleting."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import DeletePages, DeleteStaged, HasPages
from exactlyonce.errors import LedgerRemoved
from exactlyonce.protocols.outbox.clean import Cleaned, clean_staged
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.outbox import Output, kept_by
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, deposit
from tests.unit.bookkeeping import tx
from tests.unit.script import AT, ENTITY, Played, Script, attempt

ABSENT = accounts().shape.tombstone(ENTITY)
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})
NAMED = kept_by(tx(1))


def keeping(before: Before, envelope: Envelope) -> Handled:
    """A handler that keeps a message, and sends nothing."""
    id = f"{envelope.id}-{before.tx}"
    return Handled(FOREIGN, kept=((AT + timedelta(days=9), Output(id, "receipts", deposit(id).to_json())),))


def staging(*numbers: int) -> Script:
    """An entity whose ledger names a staged document for each of these messages: tx-1 and so on."""
    script = Script()
    for number in numbers:
        script.play(attempt(Outbox(), deposit(f"m-{number}"), handle=keeping))
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


def test_what_a_kept_message_names_stays() -> None:
    played = cleaned(staging(1, 2), NAMED, "tx-7", kept_by(tx(2)))
    assert played.only(DeleteStaged).transactions == ("tx-7",)
    assert played.result.transactions == ("tx-7",)


@pytest.mark.parametrize("candidates", [(), (NAMED,), (kept_by(tx(2)), NAMED)])
def test_where_nothing_is_left_to_delete_nothing_is_fenced(candidates: tuple[str, ...]) -> None:
    played = cleaned(staging(1, 2), *candidates)
    assert played.kinds == [LoadEntity]
    assert played.result == Cleaned((), Memory(entity_token="0:-1#2"))


def test_an_absent_entity_is_fenced_by_a_tombstone_that_a_late_create_fails_on() -> None:
    script = Script()
    assert cleaned(script, "tx-7").kinds == [LoadEntity, SaveEntity, DeleteStaged]
    assert script.document == entity_document(ABSENT, Ledger(type="account", entity=ENTITY.key, deleted=True))


def test_a_document_that_has_no_ledger_yet_is_fenced_as_it_is() -> None:
    script = Script(FOREIGN)
    assert cleaned(script, "tx-7").kinds == [LoadEntity, HasPages, SaveEntity, DeleteStaged]
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


def test_where_the_ledger_was_removed_nobody_knows_what_is_kept_so_nothing_is_deleted() -> None:
    with pytest.raises(LedgerRemoved):
        cleaned(Script(FOREIGN), "tx-7", replies={HasPages: True})
    assert cleaned(Script(FOREIGN), "tx-7", replies={HasPages: UNKNOWN}).again.reason


def test_pages_are_deleted_as_they_were_read_and_nothing_else_is_asked() -> None:
    played = Script().play(Outbox().clean(ENTITY, (("0", '"1"'), ("33", '"2"')), Memory()))
    assert played.effects == (DeletePages(ENTITY, ((0, '"1"'), (33, '"2"'))),)
    assert Script().play(Outbox().clean(ENTITY, (), Memory())).effects == ()
