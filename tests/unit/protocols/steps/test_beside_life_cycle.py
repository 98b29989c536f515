"""Adopted, deleted, coming back, too large: the life of an entity whose records lie beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import EntityTooLarge, LedgerRemoved, TryAgainLater
from exactlyonce.attempt import Before, Handled, Strategy
from exactlyonce.effects.companions import HasCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.publish import Publish
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.records.companions import companion_document
from exactlyonce.records.ledger import LEDGER, MAX_DOCUMENT_BYTES
from exactlyonce.records.outputs import Output
from exactlyonce.records.sequences import Sequence
from exactlyonce.testing.contracts.samples import a_colocated
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from tests.samples import close, deposit
from tests.unit.playing import ENTITY, Played
from tests.unit.playing_beside import Beside, attempt, numbers
from tests.unit.protocols.steps.test_beside_steps import BOTH, COLOCATED, FOREIGN


def without_ledger(script: Beside) -> Json:
    assert script.document is not None
    properties = script.document.value
    del properties[LEDGER]
    return Json.of(properties)


@BOTH
class TestAdoption:
    def test_a_document_without_ledger_or_companions_is_adopted_as_it_is(self, strategy: Strategy) -> None:
        script = Beside(FOREIGN)
        played = script.play(attempt(strategy, deposit("m-1", amount=2, answers=0)))
        assert played.kinds == [Together, HasCompanions, Begin, SaveBatch]
        assert played.only(SaveBatch).etag == '"1"'
        assert script.body is not None
        assert (script.body["total"], script.body["colour"]) == (42, "red")
        assert (script.ledger.version, script.ledger.type) == (1, "account")

    def test_companions_of_a_neighbour_are_no_reason_not_to_adopt(self, strategy: Strategy) -> None:
        script = Beside(FOREIGN)
        neighbour = EntityRef("account", ENTITY.partition, "b")
        document = Json.of({"id": "b", "owner": "a"})
        script.usual(SaveBatch(neighbour, document, None, (a_colocated(neighbour, "web/m-1"),)))
        assert script.play(attempt(strategy, deposit("m-1"))).finished.processed == ("web/m-1",)

    def test_a_ledger_that_was_removed_is_refused_behind_a_fence_that_changes_nothing(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1")))
        script.put(without_ledger(script))
        document = script.document
        with pytest.raises(LedgerRemoved, match="account/a"):
            script.play(attempt(strategy, deposit("m-2")))
        assert [type(effect) for effect in script.asked] == [Together, HasCompanions, SaveEntity]
        assert script.document == document

    @pytest.mark.parametrize("reply", [Conflict("0:-1#9"), UNKNOWN])
    def test_without_the_fence_a_removed_ledger_may_be_a_stale_view(self, strategy: Strategy, reply: Any) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1")))
        script.put(without_ledger(script))
        played = script.play(attempt(strategy, deposit("m-2")), {SaveEntity: reply})
        assert played.kinds == [Together, HasCompanions, SaveEntity]
        assert played.again.reason

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_nothing_is_adopted_while_companions_cannot_be_looked_for(
        self, strategy: Strategy, reply: NoAnswer
    ) -> None:
        played = Beside(FOREIGN).play(attempt(strategy, deposit("m-1")), {HasCompanions: reply})
        assert played.kinds == [Together, HasCompanions]
        assert played.again.reason


@BOTH
class TestDeletion:
    def test_it_leaves_a_tombstone_and_the_message_is_known(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1", amount=9)))
        script.play(attempt(strategy, close("m-2")))
        assert script.document is not None
        assert set(script.document.value) == {"id", "owner", LEDGER}
        assert (script.ledger.deleted, script.ledger.version, script.body) == (True, 2, None)
        for message in (deposit("m-1", amount=9), close("m-2")):
            assert script.play(attempt(strategy, message)).all(SaveBatch) == []

    def test_a_message_after_it_starts_a_new_life_with_the_same_numbering(self, strategy: Strategy) -> None:
        script = Beside()
        for message in (deposit("m-1", amount=9), close("m-2"), deposit("m-3", amount=1)):
            script.play(attempt(strategy, message))
        assert script.body is not None
        assert script.body["total"] == 1
        assert (script.ledger.deleted, script.ledger.version) == (False, 3)
        assert script.ledger.sequences == (Sequence("receipts", "r-1", 3),)
        assert numbers(script.published) == [1, 2, 3]

    def test_a_message_that_follows_it_in_a_group_sees_no_entity(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1", amount=9)))
        played = script.play(attempt(strategy, close("m-2"), deposit("m-3", amount=1)))
        assert played.finished.processed == ("web/m-2", "web/m-3")
        assert script.body is not None
        assert (script.body["total"], script.ledger.deleted) == (1, False)

    def test_a_group_may_end_with_it(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1"), close("m-2")))
        assert (script.ledger.deleted, script.ledger.version, script.body) == (True, 2, None)


def size_of(commit: SaveBatch) -> int:
    return commit.document.size + sum(Json.of(companion_document(ENTITY, one)).size for one in commit.create)


def notes(size: int) -> Handled:
    return Handled(Json.of({"id": "a", "owner": "a", "note": "x" * size}))


@BOTH
class TestRoom:
    def test_a_document_that_would_be_too_large_fails_its_own_message(self, strategy: Strategy) -> None:
        script = Beside()

        def handle(before: Before, envelope: Envelope) -> Handled:
            return notes(MAX_DOCUMENT_BYTES if envelope.id == "m-2" else 10)

        played = script.play(attempt(strategy, *(deposit(f"m-{one}") for one in (1, 2, 3)), handle=handle))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        ((key, error),) = played.finished.failed
        assert key == "web/m-2"
        assert isinstance(error, EntityTooLarge)
        assert "Message web/m-2 on entity account/a: the document would have" in str(error)
        assert script.body is not None
        assert len(script.body["note"]) == 10

    def test_a_message_without_room_beside_others_is_tried_again_alone(self, strategy: Strategy) -> None:
        script = Beside()
        large = [deposit(f"m-{one}", padding="x" * 900_000) for one in (1, 2, 3)]
        if strategy is not COLOCATED:  # A stream keeps messages, not outputs.
            large = [deposit(f"m-{one}", note="x" * 900_000) for one in (1, 2, 3)]
        played = script.play(attempt(strategy, *large))
        assert played.finished.processed == ("web/m-1", "web/m-2")
        ((key, error),) = played.finished.failed
        assert key == "web/m-3"
        assert isinstance(error, TryAgainLater)
        assert "no room" in str(error)
        assert script.play(attempt(strategy, large[2])).finished.processed == ("web/m-3",)

    def test_a_small_message_goes_on_where_a_large_one_found_no_room(self, strategy: Strategy) -> None:
        big = {"padding": "x" * 900_000} if strategy is COLOCATED else {"note": "x" * 900_000}
        group = [*(deposit(f"m-{one}", **big) for one in (1, 2, 3)), deposit("m-4")]
        played = Beside().play(attempt(strategy, *group))
        assert played.finished.processed == ("web/m-1", "web/m-2", "web/m-4")
        assert [key for key, _ in played.finished.failed] == ["web/m-3"]

    def test_what_no_batch_could_take_is_refused_for_good(self, strategy: Strategy) -> None:
        there = 1_200_000 if strategy is COLOCATED else 800_000
        script = Beside(Json.of({"id": "a", "owner": "a", "note": "x" * there}))
        big = {"padding": "x" * 900_000} if strategy is COLOCATED else {"note": "x" * 1_200_000}
        played = script.play(attempt(strategy, deposit("m-1", **big)))
        ((_, error),) = played.finished.failed
        assert isinstance(error, EntityTooLarge)
        assert f"one batch takes {BATCH_BYTES}" in str(error)
        assert "account/a" in str(error)
        assert played.all(SaveBatch) == []

    def test_a_document_may_be_as_large_as_stated_and_no_larger(self, strategy: Strategy) -> None:
        def of(size: int) -> Played:
            # A stream lets no state grow so large, but one that was there before it may stay as it is.
            script = Beside(notes(size).body)
            return script.play(attempt(strategy, deposit("m-1"), handle=lambda *_: notes(size)))

        room = MAX_DOCUMENT_BYTES - of(0).only(SaveBatch).document.size
        assert of(room).only(SaveBatch).document.size == MAX_DOCUMENT_BYTES
        assert len(of(room + 1).finished.failed) == 1

    def test_a_batch_may_be_as_large_as_stated_and_no_larger(self, strategy: Strategy) -> None:
        def of(size: int) -> Played:
            output = Output("o-1", "receipts", Json.of("x" * size if strategy is COLOCATED else ""))
            message = deposit("m-1", padding="x" * size)
            return Beside().play(
                attempt(strategy, message, handle=lambda *_: replace(notes(800_000), outputs=(output,)))
            )

        room = BATCH_BYTES - size_of(of(0).only(SaveBatch))
        assert size_of(of(room).only(SaveBatch)) == BATCH_BYTES
        ((_, error),) = of(room + 1).finished.failed
        assert f"would have {BATCH_BYTES + 1} bytes" in str(error)

    def test_no_batch_is_larger_than_stated(self, strategy: Strategy) -> None:
        group = [deposit(f"m-{number}", padding='"' * 60_000, note="\\" * 20_000) for number in range(50)]
        played = Beside().play(attempt(strategy, *group))
        assert size_of(played.only(SaveBatch)) <= BATCH_BYTES
        assert len(played.finished.processed) + len(played.finished.failed) == 50
        assert len(played.only(Publish).outputs) == len(played.finished.processed)
