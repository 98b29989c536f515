"""What the mutator showed to be untested, and no world of the model checker has."""

from __future__ import annotations

from datetime import timedelta

from exactlyonce import Outbox
from exactlyonce.attempt import Before, Finished, Handled, Memory
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.playing import ENTITY, Script, attempt

EMBEDDED = Outbox.embedded()
RETENTION = timedelta(seconds=100)


def test_a_message_that_follows_the_deletion_in_its_group_sees_no_entity() -> None:
    seen: list[Json | None] = []

    def handle(before: Before, envelope: Envelope) -> Handled:
        seen.append(before.body)
        return Handled(Json('{"id":"a","owner":"a"}'), deleted=envelope.id == "m-1")

    script = Script()
    script.play(attempt(Outbox(), deposit("m-1"), deposit("m-2"), handle=handle))
    assert seen == [None, None]
    assert (script.ledger.deleted, script.ledger.version) == (False, 2)


def test_what_is_owed_stays_however_long_ago_it_was_dated() -> None:
    script = Script(timestamp=1_000)
    for number in (1, 2):
        script.play(attempt(EMBEDDED, deposit(f"m-{number}", answers=1), retention=RETENTION))
    assert script.entries[0].seen == 1_000
    script.timestamp = 9_000
    script.play(attempt(EMBEDDED, deposit("m-3", answers=0), retention=RETENTION))
    assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2", "web/m-3"]


def test_a_large_state_is_counted_once() -> None:
    document = Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 900_000})
    for strategy in (Outbox(), EMBEDDED):
        script = Script(document)
        script.play(attempt(strategy, deposit("m-1")))
        played = script.play(attempt(strategy, deposit("m-2")))
        assert played.finished.failed == ()
        assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2"]


def test_a_document_that_lost_its_ledger_has_nothing_to_mark() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1")))
    assert script.document is not None
    properties = script.document.value
    del properties[LEDGER]
    script.document = Json.of(properties)
    played = script.play(Outbox().mark(ENTITY, Memory(published=frozenset({"tx-1"}))))
    assert played.result == Finished(Memory())
    assert played.all(SaveEntity) == []
