"""Documents that are adopted, deleted, revived, damaged, too large, or trimmed by age."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import FindProcessed, HasRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.errors import DamagedDocument, EntityTooLarge, LedgerRemoved, NewerSchema, OutputTooLarge
from exactlyonce.records.ledger import LEDGER, MAX_DOCUMENT_BYTES
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import close, deposit
from tests.unit.playing import ENTITY, Script, attempt

PLAIN = Json.of({"id": "a", "owner": "a", "total": 40, "colour": "red"})


def test_a_document_without_ledger_or_records_is_adopted_as_it_is() -> None:
    script = Script(PLAIN)
    played = script.play(attempt(Outbox(), deposit("m-1", amount=2)))
    assert played.kinds == [Together, HasRecords, Begin, SaveEntity, Publish]
    assert played.only(SaveEntity).etag == "etag-0"
    assert script.document is not None
    assert (script.document.value["total"], script.document.value["colour"]) == (42, "red")
    assert (script.ledger.version, script.ledger.token) == (1, None)


def test_a_ledger_that_was_removed_is_refused_behind_a_fence_that_changes_nothing() -> None:
    fences: list[SaveEntity] = []
    step = attempt(Outbox(), deposit("m-1"))
    script = Script(PLAIN)
    script.records = frozenset({"web/m-0"})

    def save(effect: SaveEntity) -> None:
        fences.append(effect)

    with pytest.raises(LedgerRemoved, match="account/a"):
        script.play(watched(step, save))
    assert [(fence.document, fence.etag) for fence in fences] == [(PLAIN, "etag-0")]


def watched(step: Any, save: Any) -> Any:
    """The same step; its saves are told to `save` as they are asked."""
    reply = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            return finished.value
        if isinstance(effect, SaveEntity):
            save(effect)
        reply = yield effect


@pytest.mark.parametrize("reply", [Conflict("0:-1#9"), UNKNOWN])
def test_without_the_fence_a_removed_ledger_may_be_a_stale_view(reply: Any) -> None:
    script = Script(PLAIN)
    script.records = frozenset({"web/m-0"})
    played = script.play(attempt(Outbox(), deposit("m-1")), {SaveEntity: reply})
    assert played.kinds == [Together, HasRecords, SaveEntity]
    assert played.again.reason


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_nothing_is_adopted_while_records_cannot_be_looked_for(reply: NoAnswer) -> None:
    played = Script(PLAIN).play(attempt(Outbox(), deposit("m-1")), {HasRecords: reply})
    assert played.kinds == [Together, HasRecords]
    assert played.again.reason


def test_deleting_leaves_a_tombstone_that_still_knows_the_messages() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1", amount=9)))
    script.play(attempt(Outbox(), close("m-2")))
    assert script.document is not None
    assert set(script.document.value) == {"id", "owner", LEDGER}
    assert (script.ledger.deleted, script.ledger.version) == (True, 2)
    assert script.play(attempt(Outbox(), deposit("m-1", amount=9))).all(SaveEntity) == []


def test_a_message_after_the_tombstone_starts_a_new_life_with_the_same_numbering() -> None:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1", amount=9)))
    script.play(attempt(Outbox(), close("m-2")))
    script.play(attempt(Outbox(), deposit("m-3", amount=1)))
    assert script.document is not None
    assert script.document.value["total"] == 1
    assert (script.ledger.deleted, script.ledger.version) == (False, 3)


def test_a_message_that_only_fails_leaves_the_tombstone_alone() -> None:
    script = Script()
    script.play(attempt(Outbox(), close("m-1")))
    document = script.document
    too_large = deposit("m-2", padding="x" * 2_000_000)
    assert script.play(attempt(Outbox(), too_large)).finished.failed
    assert script.document is document


def test_a_document_that_would_be_too_large_is_refused_before_it_is_sent() -> None:
    handled = Handled(Json.of({"id": "a", "owner": "a", "note": "x" * MAX_DOCUMENT_BYTES}))
    played = Script().play(attempt(Outbox(), deposit("m-1"), handle=lambda *_: handled))
    assert played.kinds == [Together, Begin]
    ((key, error),) = played.finished.failed
    assert key == "web/m-1"
    assert isinstance(error, EntityTooLarge)
    assert "web/m-1" in str(error)
    assert "account/a" in str(error)


def test_a_message_refused_for_its_size_takes_nothing_of_the_group_along() -> None:
    large = Handled(Json.of({"id": "a", "owner": "a", "note": "x" * MAX_DOCUMENT_BYTES}))
    small = Handled(Json.of({"id": "a", "owner": "a", "note": "small"}))
    bodies: list[Json | None] = []

    def handle(before: Before, envelope: Any) -> Handled:
        bodies.append(before.body)
        return large if envelope.id == "m-2" else small

    script = Script()
    messages = (deposit("m-1"), deposit("m-2"), deposit("m-3"))
    played = script.play(attempt(Outbox(), *messages, handle=handle))
    assert played.finished.processed == ("web/m-1", "web/m-3")
    assert bodies == [None, small.body, small.body]


def test_outputs_that_no_queue_takes_fail_their_own_message_only() -> None:
    script = Script()
    played = script.play(attempt(Outbox(), deposit("m-1", padding="x" * 1_100_000), deposit("m-2")))
    ((key, error),) = played.finished.failed
    assert key == "web/m-1"
    assert isinstance(error, OutputTooLarge)
    assert played.finished.processed == ("web/m-2",)


@pytest.mark.parametrize(
    ("ledger", "error"),
    [({"schema": 2}, NewerSchema), ({"schema": 1, "version": "x"}, DamagedDocument), (7, DamagedDocument)],
)
def test_a_ledger_that_cannot_be_trusted_stops_everything(ledger: Any, error: type[Exception]) -> None:
    script = Script(Json.of({**PLAIN.value, LEDGER: ledger}))
    with pytest.raises(error, match="account/a"):
        script.play(attempt(Outbox(), deposit("m-1")))
    with pytest.raises(error, match="account/a"):
        script.play(Outbox().mark(ENTITY, Memory(published=frozenset({"tx-1"}))))


EMBEDDED = Outbox.embedded()
RETENTION = timedelta(seconds=100)


def test_embedded_asks_for_no_records_while_none_can_exist() -> None:
    script = Script()
    played = script.play(attempt(EMBEDDED, deposit("m-1"), retention=RETENTION))
    assert played.kinds == [LoadEntity, Begin, SaveEntity, Publish]


def test_embedded_dates_entries_by_the_servers_clock_and_never_before_their_commit() -> None:
    script = Script(timestamp=1_000)
    script.play(attempt(EMBEDDED, deposit("m-1", answers=0), retention=RETENTION))
    assert script.entries[0].seen is None
    script.play(attempt(EMBEDDED, deposit("m-2", answers=0), retention=RETENTION))
    assert [entry.seen for entry in script.entries] == [1_000, None]
    script.timestamp = 1_050
    script.play(attempt(EMBEDDED, deposit("m-3", answers=0), retention=RETENTION))
    assert [entry.seen for entry in script.entries] == [1_000, 1_050, None]


def test_embedded_drops_what_is_older_than_the_retention_and_owes_nothing() -> None:
    script = Script(timestamp=1_000)
    script.play(attempt(EMBEDDED, deposit("m-1", answers=0), retention=RETENTION))
    script.play(attempt(EMBEDDED, deposit("m-2", answers=1), retention=RETENTION))
    for timestamp, left in ((1_100, ["web/m-1", "web/m-2"]), (1_101, ["web/m-2"]), (9_000, ["web/m-2"])):
        script.timestamp = timestamp
        copy = Script(script.document, timestamp=timestamp)
        copy.play(attempt(EMBEDDED, deposit("m-3", answers=0), retention=RETENTION))
        assert [entry.message for entry in copy.entries] == [*left, "web/m-3"]
        assert copy.ledger.version == 3


def test_embedded_keeps_what_owes_staged_outputs_however_old_it_is() -> None:
    """As after an exchange of presets: nothing else names the document that holds them."""
    script = Script(timestamp=1_000)
    script.play(attempt(Outbox(window=None, inline_limit=0), deposit("m-1", answers=1), retention=RETENTION))
    script.play(attempt(EMBEDDED, deposit("m-2", answers=0), retention=RETENTION))
    script.timestamp = 9_000
    script.play(attempt(EMBEDDED, deposit("m-3", answers=0), retention=RETENTION))
    assert [(entry.message, entry.owed) for entry in script.entries] == [
        ("web/m-1", "staged"),
        ("web/m-2", None),
        ("web/m-3", None),
    ]


def test_embedded_after_another_preset_still_finds_its_records() -> None:
    script = Script()
    for number in (1, 2):
        script.play(attempt(Outbox(window=1), deposit(f"m-{number}", answers=0)))
    played = script.play(attempt(EMBEDDED, deposit("m-1", answers=0), retention=RETENTION))
    assert played.kinds == [LoadEntity, FindProcessed]
    assert played.finished.processed == ()


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
