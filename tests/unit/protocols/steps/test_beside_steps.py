"""What the protocols with records beside the entity have in common, step by step: the co-located one and the version stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.attempt import Before, Finished, Handled, Memory, Strategy
from exactlyonce.effects.blobs import WriteOnce
from exactlyonce.effects.companions import FindEntries, LoadCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, LoadEntity
from exactlyonce.effects.publish import Publish
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import entry_id, record_id
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, deposit
from tests.unit.playing import ENTITY
from tests.unit.playing_beside import ORDERED, Beside, attempt, numbers

COLOCATED, STREAM = Colocated(), VersionStream(snapshot_every=4)
BOTH = pytest.mark.parametrize("strategy", [COLOCATED, STREAM], ids=["colocated", "stream"])
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 40, "colour": "red"})
FIRST_TIME = {
    COLOCATED: [Together, Begin, SaveBatch, Publish, ReplaceCompanions],
    STREAM: [Together, Begin, SaveBatch, Publish],
}


def messages_of(script: Beside) -> list[str | None]:
    return [one.message for one in script.companions]


@BOTH
class TestTheFirstTime:
    def test_everything_is_committed_at_once_and_published_after_that(self, strategy: Strategy) -> None:
        script = Beside()
        played = script.play(attempt(strategy, deposit("m-1", answers=2)))
        assert played.kinds == FIRST_TIME[strategy]
        commit = played.only(SaveBatch)
        assert (commit.etag, commit.replace) == (None, ())
        (companion,) = commit.create
        assert (companion.message, companion.tx, companion.version) == ("web/m-1", "tx-1", 1)  # type: ignore[union-attr]
        assert [output.ref for output in played.only(Publish).outputs] == list(companion.outputs)  # type: ignore[union-attr]
        assert played.finished.processed == ("web/m-1",)

    def test_the_reads_go_side_by_side_and_carry_the_token_that_is_remembered(self, strategy: Strategy) -> None:
        script = Beside()
        first = script.play(attempt(strategy, deposit("m-1")))
        memory = first.finished.memory
        assert memory == Memory(entity_token="0:-1#2")
        both = script.play(attempt(strategy, deposit("m-2"), deposit("m-3"), memory=memory)).only(Together)
        make = record_id if strategy is COLOCATED else entry_id
        ids = (make(ENTITY, "web/m-2"), make(ENTITY, "web/m-3"))
        assert both == Together(LoadEntity(ENTITY, "0:-1#2"), LoadCompanions(ENTITY, ids, "0:-1#2"))

    def test_a_group_is_one_commit_with_a_companion_for_each_message(self, strategy: Strategy) -> None:
        script = Beside()
        played = script.play(attempt(strategy, *(deposit(f"m-{number}", amount=number) for number in (1, 2, 3))))
        companions = played.only(SaveBatch).create
        assert [(one.message, one.version, one.tx) for one in companions] == [  # type: ignore[union-attr]
            ("web/m-1", 1, "tx-1"),
            ("web/m-2", 2, "tx-2"),
            ("web/m-3", 3, "tx-3"),
        ]
        assert played.only(Begin).count == 3
        assert script.body is not None
        assert (script.body["total"], script.ledger.version) == (6, 3)
        assert numbers(script.published) == [1, 2, 3]

    def test_the_next_message_goes_on_from_what_was_committed(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1", amount=5)))
        second = script.play(attempt(strategy, deposit("m-2", amount=7)))
        assert second.only(SaveBatch).etag == '"1"'
        assert script.body is not None
        assert (script.body["total"], script.ledger.version) == (12, 2)
        assert script.ledger.sequences == (Sequence("receipts", "r-1", 2),)
        assert script.ledger.entries == ()

    def test_copies_of_one_message_in_a_group_count_once(self, strategy: Strategy) -> None:
        script = Beside()
        played = script.play(attempt(strategy, deposit("m-1"), deposit("m-1"), deposit("m-2")))
        assert played.finished.processed == ("web/m-1", "web/m-2")
        assert script.ledger.version == 2

    def test_a_message_that_sends_nothing_is_not_published(self, strategy: Strategy) -> None:
        played = Beside().play(attempt(strategy, deposit("m-1", answers=0)))
        assert played.kinds == [Together, Begin, SaveBatch]
        assert played.finished.processed == ("web/m-1",)

    def test_a_message_that_changes_nothing_leaves_a_companion_all_the_same(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1", amount=0, answers=0)))
        script.play(attempt(strategy, deposit("m-2", amount=0, answers=0), handle=unchanged))
        assert messages_of(script) == ["web/m-1", "web/m-2"]
        assert script.ledger.version == 2

    def test_a_handler_that_raises_takes_nothing_of_its_group_along(self, strategy: Strategy) -> None:
        script = Beside()
        played = script.play(attempt(strategy, deposit("m-1"), breaking("m-2"), deposit("m-3")))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        assert [key for key, _ in played.finished.failed] == ["web/m-2"]
        assert messages_of(script) == ["web/m-1", "web/m-3"]
        assert [one.version for one in played.only(SaveBatch).create] == [1, 2]  # type: ignore[union-attr]
        assert numbers(script.published) == [1, 2]

    def test_where_every_handler_raises_nothing_is_written(self, strategy: Strategy) -> None:
        script = Beside()
        played = script.play(attempt(strategy, breaking("m-1"), breaking("m-2")))
        assert played.kinds == [Together, Begin]
        assert [key for key, _ in played.finished.failed] == ["web/m-1", "web/m-2"]
        assert (played.finished.processed, script.writes) == ((), 0)

    def test_nothing_is_left_to_mark(self, strategy: Strategy) -> None:
        played = Beside().play(strategy.mark(ENTITY, Memory(entity_token="0:-1#1")))
        assert (played.effects, played.result) == ((), Finished(Memory()))

    def test_a_group_fits_one_batch(self, strategy: Strategy) -> None:
        assert strategy.group_limit == 50
        messages = (deposit(f"m-{number}") for number in range(strategy.group_limit))
        assert len(Beside().play(attempt(strategy, *messages)).finished.processed) == 50
        assert strategy.forgets


def painting(before: Before, envelope: Envelope) -> Handled:
    return replace(
        Runner(accounts(), ENTITY, ORDERED)(before, envelope), blobs=(Blob(before.tx, b"text", "text/plain"),)
    )


@BOTH
class TestBlobs:
    def test_they_are_written_before_the_commit_that_refers_to_them(self, strategy: Strategy) -> None:
        played = Beside().play(attempt(strategy, deposit("m-1"), deposit("m-2"), handle=painting))
        assert played.kinds[:4] == [Together, Begin, WriteOnce, SaveBatch]
        assert [blob.name for blob in played.only(WriteOnce).blobs] == ["tx-1", "tx-2"]

    @pytest.mark.parametrize("reply", [UNKNOWN, None])
    def test_without_them_nothing_is_committed(self, strategy: Strategy, reply: Any) -> None:
        script = Beside()
        played = script.play(attempt(strategy, deposit("m-1"), handle=painting), {WriteOnce: reply})
        assert played.kinds == [Together, Begin, WriteOnce]
        assert (played.again.progressed, script.writes) == (False, 0)


def unchanged(before: Before, envelope: Envelope) -> Handled:
    assert before.body is not None
    return Handled(before.body, sequences=before.sequences)


@BOTH
class TestNoAnswers:
    @pytest.mark.parametrize("kind", [LoadEntity, LoadCompanions])
    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_a_read_without_an_answer_is_never_absent(self, strategy: Strategy, kind: Any, reply: NoAnswer) -> None:
        script = Beside()
        memory = Memory(entity_token="0:-1#7")
        played = script.play(attempt(strategy, deposit("m-1"), memory=memory), {kind: reply})
        assert played.kinds == [Together]
        assert played.again.memory == memory
        assert not played.again.progressed

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9"), Conflict(None)])
    def test_what_may_not_be_committed_is_not_published(self, strategy: Strategy, reply: Any) -> None:
        script = Beside()
        played = script.play(attempt(strategy, deposit("m-1")), {SaveBatch: reply})
        assert played.kinds == [Together, Begin, SaveBatch]
        token = "0:-1#9" if reply == Conflict("0:-1#9") else "0:-1#0"
        assert played.again.memory == Memory(entity_token=token)
        assert not played.again.progressed

    def test_a_commit_whose_reply_was_lost_is_found_and_finished(self, strategy: Strategy) -> None:
        script = Beside()

        def lost(effect: Any) -> NoAnswer:
            script.usual(effect)
            return UNKNOWN

        script.play(attempt(strategy, deposit("m-1")), {SaveBatch: lost})
        again = script.play(attempt(strategy, deposit("m-1")))
        assert again.all(SaveBatch) == []
        assert numbers(script.published) == [1]
        assert (script.ledger.version, again.finished.processed) == (1, ())

    def test_outputs_that_may_not_have_arrived_are_published_again(self, strategy: Strategy) -> None:
        script = Beside()
        first = script.play(attempt(strategy, deposit("m-1")), {Publish: UNKNOWN})
        assert first.kinds == [Together, Begin, SaveBatch, Publish]
        assert first.again.memory.entity_token == "0:-1#2"
        script.play(attempt(strategy, deposit("m-1"), memory=first.again.memory))
        assert tuple(script.published) == first.only(Publish).outputs

    def test_a_duplicate_whose_outputs_may_not_arrive_keeps_new_ones_waiting(self, strategy: Strategy) -> None:
        script = Beside()
        script.play(attempt(strategy, deposit("m-1")), {Publish: UNKNOWN})
        played = script.play(attempt(strategy, deposit("m-1"), deposit("m-2")), {Publish: UNKNOWN})
        assert played.kinds[-1] is Publish
        assert played.again.reason
        assert script.ledger.version == 1

    def test_a_companion_that_the_views_missed_is_a_conflict(self, strategy: Strategy) -> None:
        """Both views are stale, but for the commit: the companion's id collides with itself."""
        script = Beside()
        absent = script.play(attempt(strategy)).only(Together)
        views = script.usual(absent.first), script.usual(absent.second)
        script.play(attempt(strategy, deposit("m-1")))
        late = script.play(attempt(strategy, deposit("m-1")), {LoadEntity: views[0], LoadCompanions: views[1]})
        assert late.kinds == [Together, Begin, SaveBatch]
        assert late.again.memory.entity_token == "0:-1#3" if strategy is COLOCATED else "0:-1#2"
        assert len(script.published) == 1

    def test_reasons_read_as_the_end_of_a_sentence(self, strategy: Strategy) -> None:
        kinds: list[Any] = [LoadEntity, LoadCompanions, SaveBatch, Publish]
        for kind in kinds if strategy is COLOCATED else [*kinds, FindEntries]:
            script = Beside()
            script.play(attempt(strategy, deposit("m-1")), {Publish: UNKNOWN})
            reason = script.play(attempt(strategy, deposit("m-1"), deposit("m-2")), {kind: UNKNOWN}).again.reason
            assert reason[0].islower()
            assert not reason.endswith(".")
