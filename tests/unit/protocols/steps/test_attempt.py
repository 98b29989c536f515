"""What one attempt does, step by step, whatever the protocol: which effects, in which order, and with what in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import FindEntries, LoadCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish
from exactlyonce.records.companions import entry_id, record_id
from exactlyonce.values.envelope import STABLE_TIME, Envelope
from tests.samples import breaking, close, deposit
from tests.unit.protocols.by_protocol import BOTH, PROTOCOLS
from tests.unit.script import ENTITY, Script, attempt, numbers, receipts


def remembered(script: Script) -> list[Any]:
    """What the protocol keeps of each message."""
    return list(script.companions)


def versions(script: Script) -> list[tuple[str, int, str]]:
    return [(item.message, item.version, item.tx) for item in remembered(script)]


@BOTH
class TestTheFirstTime:
    def test_everything_is_committed_at_once_and_published_after_that(self, protocol: str) -> None:
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", answers=2)))
        marking = [ReplaceCompanions] if protocol == "colocated" else []
        assert played.kinds == [Together, Begin, SaveBatch, Publish, *marking]
        assert played.effects[2].etag is None  # type: ignore[attr-defined]
        assert versions(script) == [("web/m-1", 1, "tx-1")]
        assert [output.ref for output in played.only(Publish).outputs] == list(remembered(script)[0].outputs)
        assert (script.ledger.version, script.ledger.type) == (1, "account")
        assert played.finished.processed == ("web/m-1",)

    def test_a_group_is_one_commit_that_remembers_each_message(self, protocol: str) -> None:
        script = Script()
        group = (deposit(f"m-{number}", amount=number) for number in (1, 2, 3))
        played = script.play(attempt(PROTOCOLS[protocol], *group))
        assert versions(script) == [("web/m-1", 1, "tx-1"), ("web/m-2", 2, "tx-2"), ("web/m-3", 3, "tx-3")]
        assert (played.only(Begin).count, len(played.all(SaveBatch))) == (3, 1)
        assert script.body is not None
        assert (script.body["total"], script.ledger.version) == (6, 3)
        assert numbers(script.published) == [1, 2, 3]

    def test_the_next_message_goes_on_from_what_was_committed(self, protocol: str) -> None:
        script = Script()
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1", amount=5)))
        second = script.play(attempt(PROTOCOLS[protocol], deposit("m-2", amount=7)))
        assert second.effects[2].etag == '"1"'  # type: ignore[attr-defined]
        assert script.body is not None
        assert (script.body["total"], script.ledger.version) == (12, 2)
        assert script.ledger.sequences == (receipts(2),)
        assert [version for _, version, _ in versions(script)] == [1, 2]

    def test_messages_of_a_group_see_what_those_before_them_did(self, protocol: str) -> None:
        group = (deposit("m-1", amount=5), close("m-2"), deposit("m-3", amount=2))
        played = Script().play(attempt(PROTOCOLS[protocol], *group))
        totals = [output.envelope.value["data"]["total"] for output in played.only(Publish).outputs]
        assert totals == [5, 5, 2]

    def test_copies_of_one_message_in_a_group_count_once(self, protocol: str) -> None:
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), deposit("m-1"), deposit("m-2")))
        assert played.only(Begin).count == 2
        assert played.finished.processed == ("web/m-1", "web/m-2")
        assert script.ledger.version == 2

    def test_a_message_that_sends_nothing_is_not_published(self, protocol: str) -> None:
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", answers=0)))
        assert played.kinds == [Together, Begin, SaveBatch]
        assert played.finished.processed == ("web/m-1",)

    def test_a_message_that_changes_nothing_is_remembered_all_the_same(self, protocol: str) -> None:
        script = Script()
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1", amount=0, answers=0)))
        script.play(attempt(PROTOCOLS[protocol], deposit("m-2", amount=0, answers=0), handle=unchanged))
        assert versions(script) == [("web/m-1", 1, "tx-1"), ("web/m-2", 2, "tx-2")]
        assert script.ledger.version == 2

    def test_a_handler_that_raises_takes_nothing_of_its_group_along(self, protocol: str) -> None:
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), breaking("m-2"), deposit("m-3")))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        assert [key for key, _ in played.finished.failed] == ["web/m-2"]
        assert [(message, version) for message, version, _ in versions(script)] == [("web/m-1", 1), ("web/m-3", 2)]
        assert numbers(script.published) == [1, 2]

    def test_where_every_handler_raises_nothing_is_written(self, protocol: str) -> None:
        script = Script()
        played = script.play(attempt(PROTOCOLS[protocol], breaking("m-1"), breaking("m-2")))
        assert played.kinds == [Together, Begin]
        assert [key for key, _ in played.finished.failed] == ["web/m-1", "web/m-2"]
        assert (played.finished.processed, script.writes) == ((), 0)

    def test_each_attempt_asks_for_transactions_of_its_own(self, protocol: str) -> None:
        script = Script()
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {SaveBatch: Conflict("0:-1#5")})
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1")))
        assert versions(script) == [("web/m-1", 1, "tx-2")]


@BOTH
class TestCompanions:
    def test_the_reads_go_side_by_side_and_carry_the_token_that_is_remembered(self, protocol: str) -> None:
        script = Script()
        memory = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"))).finished.memory
        assert memory == Memory(entity_token="0:-1#2")
        messages = (deposit("m-2"), deposit("m-3"))
        both = script.play(attempt(PROTOCOLS[protocol], *messages, memory=memory)).only(Together)
        make = record_id if protocol == "colocated" else entry_id
        ids = (make(ENTITY, "web/m-2"), make(ENTITY, "web/m-3"))
        assert both == Together(LoadEntity(ENTITY, "0:-1#2"), LoadCompanions(ENTITY, ids, "0:-1#2"))

    def test_the_ledger_keeps_nothing_of_the_message(self, protocol: str) -> None:
        script, strategy = Script(), PROTOCOLS[protocol]
        assert script.play(attempt(strategy, deposit("m-1"))).only(SaveBatch).replace == ()
        assert (script.ledger.outbox, script.ledger.marks) == ((), "")

    def test_outputs_carry_the_time_of_a_cause_that_has_one(self, protocol: str) -> None:
        script, strategy = Script(), PROTOCOLS[protocol]
        stable = ((STABLE_TIME, "2025-12-31T12:00:00.000Z"),)
        script.play(attempt(strategy, replace(deposit("m-1"), extensions=stable), deposit("m-2")))
        times = [output.envelope.value.get(STABLE_TIME) for output in script.published]
        assert times == ["2025-12-31T12:00:00.000Z", None]

    def test_a_group_fits_one_batch(self, protocol: str) -> None:
        strategy = PROTOCOLS[protocol]
        assert strategy.group_limit == 50
        messages = (deposit(f"m-{number}") for number in range(strategy.group_limit))
        assert len(Script().play(attempt(strategy, *messages)).finished.processed) == 50
        assert strategy.forgets(deposit("m-1"))

    def test_a_companion_that_the_views_missed_is_a_conflict(self, protocol: str) -> None:
        """Both views are stale, but for the commit: the companion's id collides with itself."""
        script, strategy = Script(), PROTOCOLS[protocol]
        absent = script.play(attempt(strategy)).only(Together)
        views = script.usual(absent.first), script.usual(absent.second)
        script.play(attempt(strategy, deposit("m-1")))
        late = script.play(attempt(strategy, deposit("m-1")), {LoadEntity: views[0], LoadCompanions: views[1]})
        assert late.kinds == [Together, Begin, SaveBatch]
        assert late.again.memory.entity_token == ("0:-1#3" if protocol == "colocated" else "0:-1#2")
        assert len(script.published) == 1


def unchanged(before: Before, envelope: Envelope) -> Handled:
    assert before.body is not None
    return Handled(before.body, sequences=before.sequences)


@BOTH
class TestNoAnswers:
    @pytest.mark.parametrize("kind", [LoadEntity, LoadCompanions])
    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_a_read_without_an_answer_is_never_absent(self, protocol: str, kind: Any, reply: NoAnswer) -> None:
        memory = Memory(entity_token="0:-1#0")
        played = Script().play(attempt(PROTOCOLS[protocol], deposit("m-1"), memory=memory), {kind: reply})
        assert played.kinds == [Together]
        assert played.again.memory.entity_token == "0:-1#0"
        assert not played.again.progressed

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9"), Conflict(None)])
    def test_what_may_not_be_committed_is_not_published(self, protocol: str, reply: Any) -> None:
        played = Script().play(attempt(PROTOCOLS[protocol], deposit("m-1")), {SaveBatch: reply})
        assert played.kinds == [Together, Begin, SaveBatch]
        token = "0:-1#9" if reply == Conflict("0:-1#9") else "0:-1#0"
        assert played.again.memory.entity_token == token
        assert not played.again.progressed

    def test_a_commit_whose_reply_was_lost_is_found_and_finished(self, protocol: str) -> None:
        script = Script()

        def lost(effect: Any) -> NoAnswer:
            script.usual(effect)
            return UNKNOWN

        script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {SaveBatch: lost})
        again = script.play(attempt(PROTOCOLS[protocol], deposit("m-1")))
        assert again.all(SaveBatch) == []
        assert numbers(script.published) == [1]
        assert (script.ledger.version, again.finished.processed) == (1, ())

    def test_outputs_that_may_not_have_arrived_are_published_again(self, protocol: str) -> None:
        script = Script()
        first = script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {Publish: UNKNOWN})
        assert first.kinds == [Together, Begin, SaveBatch, Publish]
        assert first.again.memory.entity_token == script.usual(LoadEntity(ENTITY)).token
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), memory=first.again.memory))
        assert tuple(script.published) == first.only(Publish).outputs

    def test_a_duplicate_whose_outputs_may_not_arrive_keeps_new_ones_waiting(self, protocol: str) -> None:
        script = Script()
        script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {Publish: UNKNOWN})
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), deposit("m-2")), {Publish: UNKNOWN})
        assert played.kinds[-1] is Publish
        assert played.again.reason
        assert script.ledger.version == 1

    def test_reasons_read_as_the_end_of_a_sentence(self, protocol: str) -> None:
        kinds: list[Any] = [LoadEntity, LoadCompanions, SaveBatch, Publish]
        for kind in [*kinds, FindEntries] if protocol == "stream" else kinds:
            script = Script()
            script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {Publish: UNKNOWN})
            group = (deposit("m-1"), deposit("m-2"))
            reason = script.play(attempt(PROTOCOLS[protocol], *group), {kind: UNKNOWN}).again.reason
            assert reason[0].islower()
            assert not reason.endswith(".")
