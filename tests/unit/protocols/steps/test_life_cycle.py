"""Adopted, deleted, coming back, too large: the life of an entity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import Outbox, TryAgainLater
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import HasCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, Publish, SaveEntity
from exactlyonce.errors import DamagedDocument, EntityTooLarge, LedgerRemoved, NewerSchema, OutputTooLarge
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.records.companions import companion_document
from exactlyonce.records.ledger import LEDGER, MAX_DOCUMENT_BYTES
from exactlyonce.records.outbox import Output
from exactlyonce.testing.contracts.samples import a_colocated
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.asking import sweep
from tests.samples import close, deposit
from tests.unit.protocols.by_protocol import BOTH, PROTOCOLS
from tests.unit.script import ENTITY, Played, Script, attempt, numbers, receipts

FOREIGN = Json.of({"id": "a", "owner": "a", "total": 40, "colour": "red"})


def processed(protocol: str, *messages: Envelope) -> Script:
    """An entity that processed these messages, one after the other."""
    script = Script()
    for message in messages:
        script.play(attempt(PROTOCOLS[protocol], message))
    return script


def robbed(protocol: str) -> Script:
    """An entity that processed messages, whose ledger was removed."""
    script = processed(protocol, deposit("m-1"))
    assert script.document is not None
    script.put(Json.of({name: value for name, value in script.document.value.items() if name != LEDGER}))
    return script


@BOTH
class TestAdoption:
    def test_a_document_without_ledger_or_records_is_adopted_as_it_is(self, protocol: str) -> None:
        script = Script(FOREIGN)
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", amount=2, answers=0)))
        assert played.kinds == [Together, HasCompanions, Begin, SaveBatch]
        assert played.effects[-1].etag == '"1"'  # type: ignore[attr-defined]
        assert script.body is not None
        assert (script.body["total"], script.body["colour"]) == (42, "red")
        assert (script.ledger.version, script.ledger.type, script.ledger.token) == (1, "account", None)

    def test_companions_of_a_neighbour_are_no_reason_not_to_adopt(self, protocol: str) -> None:
        script = Script(FOREIGN)
        neighbour = EntityRef("account", ENTITY.partition, "b")
        document = Json.of({"id": "b", "owner": "a"})
        script.usual(SaveBatch(neighbour, document, None, (a_colocated(neighbour, "web/m-1"),)))
        assert script.play(attempt(PROTOCOLS[protocol], deposit("m-1"))).finished.processed == ("web/m-1",)

    def test_a_ledger_that_was_removed_is_refused_behind_a_fence_that_changes_nothing(self, protocol: str) -> None:
        script = robbed(protocol)
        document = script.document
        with pytest.raises(LedgerRemoved, match="account/a"):
            script.play(attempt(PROTOCOLS[protocol], deposit("m-2")))
        assert [type(effect) for effect in script.asked] == [Together, HasCompanions, SaveEntity]
        assert script.document == document

    @pytest.mark.parametrize("reply", [Conflict("0:-1#9"), UNKNOWN])
    def test_without_the_fence_a_removed_ledger_may_be_a_stale_view(self, protocol: str, reply: Any) -> None:
        played = robbed(protocol).play(attempt(PROTOCOLS[protocol], deposit("m-2")), {SaveEntity: reply})
        assert played.kinds == [Together, HasCompanions, SaveEntity]
        assert played.again.reason

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_nothing_is_adopted_while_records_cannot_be_looked_for(self, protocol: str, reply: NoAnswer) -> None:
        played = Script(FOREIGN).play(attempt(PROTOCOLS[protocol], deposit("m-1")), {HasCompanions: reply})
        assert played.kinds == [Together, HasCompanions]
        assert played.again.reason


@BOTH
class TestDeletion:
    def test_it_leaves_a_tombstone_and_the_message_is_known(self, protocol: str) -> None:
        script = processed(protocol, deposit("m-1", amount=9), close("m-2"))
        assert script.document is not None
        assert set(script.document.value) == {"id", "owner", LEDGER}
        assert (script.ledger.deleted, script.ledger.version, script.body) == (True, 2, None)
        for message in (deposit("m-1", amount=9), close("m-2")):
            assert script.play(attempt(PROTOCOLS[protocol], message)).all(SaveBatch) == []

    def test_a_message_after_it_starts_a_new_life_with_the_same_numbering(self, protocol: str) -> None:
        script = processed(protocol, deposit("m-1", amount=9), close("m-2"), deposit("m-3", amount=1))
        assert script.body is not None
        assert script.body["total"] == 1
        assert (script.ledger.deleted, script.ledger.version) == (False, 3)
        assert script.ledger.sequences == (receipts(3),)
        assert numbers(script.published) == [1, 2, 3]

    def test_a_message_that_follows_it_in_a_group_sees_no_entity(self, protocol: str) -> None:
        script = processed(protocol, deposit("m-1", amount=9))
        played = script.play(attempt(PROTOCOLS[protocol], close("m-2"), deposit("m-3", amount=1)))
        assert played.finished.processed == ("web/m-2", "web/m-3")
        assert script.body is not None
        assert (script.body["total"], script.ledger.deleted) == (1, False)

    def test_a_group_may_end_with_it(self, protocol: str) -> None:
        script = Script()
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), close("m-2")))
        assert (script.ledger.deleted, script.ledger.version, script.body) == (True, 2, None)

    def test_a_message_that_only_fails_leaves_the_tombstone_alone(self, protocol: str) -> None:
        script = processed(protocol, close("m-1"))
        document = script.document
        too_large = deposit("m-2", padding="x" * 2_000_000)
        assert script.play(attempt(PROTOCOLS[protocol], too_large)).finished.failed
        assert script.document is document


@pytest.mark.parametrize(
    ("ledger", "error"),
    [({"schema": 2}, NewerSchema), ({"schema": 1, "version": "x"}, DamagedDocument), (7, DamagedDocument)],
)
def test_a_ledger_that_cannot_be_trusted_stops_everything(ledger: Any, error: type[Exception]) -> None:
    script = Script(Json.of({**FOREIGN.value, LEDGER: ledger}))
    with pytest.raises(error, match="account/a"):
        script.play(attempt(Outbox(), deposit("m-1")))
    with pytest.raises(error, match="account/a"):
        script.play(sweep(ENTITY, Memory()))


def size_of(commit: SaveBatch) -> int:
    return commit.document.size + sum(Json.of(companion_document(ENTITY, item)).size for item in commit.create)


def notes(size: int) -> Handled:
    return Handled(Json.of({"id": "a", "owner": "a", "note": "x" * size}))


@BOTH
class TestSize:
    def test_a_document_that_would_be_too_large_fails_its_own_message(self, protocol: str) -> None:
        bodies: list[Json | None] = []
        small = notes(10)

        def handle(before: Before, envelope: Envelope) -> Handled:
            bodies.append(before.body)
            return notes(MAX_DOCUMENT_BYTES) if envelope.id == "m-2" else small

        group = [deposit(f"m-{item}") for item in (1, 2, 3)]
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], *group, handle=handle))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        assert bodies == [None, small.body, small.body]
        assert script.body is not None
        assert len(script.body["note"]) == 10
        alone = Script().play(attempt(PROTOCOLS[protocol], group[1], handle=handle))
        assert alone.kinds == [Together, Begin]
        for finished in (played.finished, alone.finished):
            ((key, error),) = finished.failed
            assert key == "web/m-2"
            assert isinstance(error, EntityTooLarge)
            assert "Message web/m-2 on entity account/a: the document would have" in str(error)

    def test_outputs_that_no_queue_takes_fail_their_own_message_only(self, protocol: str) -> None:
        group = (deposit("m-1", padding="x" * 1_100_000), deposit("m-2"))
        played = Script().play(attempt(PROTOCOLS[protocol], *group))
        ((key, error),) = played.finished.failed
        assert key == "web/m-1"
        assert isinstance(error, OutputTooLarge)
        assert played.finished.processed == ("web/m-2",)


@BOTH
class TestRoomInABatch:
    def test_a_message_without_room_in_its_group_is_tried_again_alone(self, protocol: str) -> None:
        script = Script()
        large = [deposit(f"m-{item}", **big(protocol)) for item in (1, 2, 3)]
        played = script.play(attempt(PROTOCOLS[protocol], *large))
        assert played.finished.processed == ("web/m-1", "web/m-2")
        ((key, error),) = played.finished.failed
        assert key == "web/m-3"
        assert isinstance(error, TryAgainLater)
        assert "no room" in str(error)
        assert script.play(attempt(PROTOCOLS[protocol], large[2])).finished.processed == ("web/m-3",)

    def test_a_small_message_goes_on_where_a_large_one_found_no_room(self, protocol: str) -> None:
        group = [*(deposit(f"m-{item}", **big(protocol)) for item in (1, 2, 3)), deposit("m-4")]
        played = Script().play(attempt(PROTOCOLS[protocol], *group))
        assert played.finished.processed == ("web/m-1", "web/m-2", "web/m-4")
        assert [key for key, _ in played.finished.failed] == ["web/m-3"]

    def test_what_no_batch_could_take_is_refused_for_good(self, protocol: str) -> None:
        there = 1_200_000 if protocol == "colocated" else 800_000
        script = Script(Json.of({"id": "a", "owner": "a", "note": "x" * there}))
        large = {"padding": "x" * 900_000} if protocol == "colocated" else {"note": "x" * 1_200_000}
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", **large)))
        ((_, error),) = played.finished.failed
        assert isinstance(error, EntityTooLarge)
        assert f"one batch takes {BATCH_BYTES}" in str(error)
        assert "account/a" in str(error)
        assert played.all(SaveBatch) == []

    def test_a_document_may_be_as_large_as_stated_and_no_larger(self, protocol: str) -> None:
        def of(size: int) -> Played:
            # A stream lets no state grow so large, but one that was there before it may stay as it is.
            script = Script(notes(size).body)
            return script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), handle=lambda *_: notes(size)))

        room = MAX_DOCUMENT_BYTES - of(0).only(SaveBatch).document.size
        assert of(room).only(SaveBatch).document.size == MAX_DOCUMENT_BYTES
        assert len(of(room + 1).finished.failed) == 1

    def test_a_batch_may_be_as_large_as_stated_and_no_larger(self, protocol: str) -> None:
        def of(size: int) -> Played:
            output = Output("o-1", "receipts", Json.of("x" * size if protocol == "colocated" else ""))
            handled = replace(notes(800_000), outputs=(output,))
            message = deposit("m-1", padding="x" * size)
            return Script().play(attempt(PROTOCOLS[protocol], message, handle=lambda *_: handled))

        room = BATCH_BYTES - size_of(of(0).only(SaveBatch))
        assert size_of(of(room).only(SaveBatch)) == BATCH_BYTES
        ((_, error),) = of(room + 1).finished.failed
        assert f"would have {BATCH_BYTES + 1} bytes" in str(error)

    def test_no_batch_is_larger_than_stated(self, protocol: str) -> None:
        group = [deposit(f"m-{number}", padding='"' * 60_000, note="\\" * 20_000) for number in range(50)]
        played = Script().play(attempt(PROTOCOLS[protocol], *group))
        assert size_of(played.only(SaveBatch)) <= BATCH_BYTES
        assert len(played.finished.processed) + len(played.finished.failed) == 50
        assert len(played.only(Publish).outputs) == len(played.finished.processed)


def big(protocol: str) -> dict[str, str]:
    """What makes a message large: a stream keeps messages, not outputs."""
    return {"padding" if protocol == "colocated" else "note": "x" * 900_000}
