"""The co-located protocol: what its records owe, who finishes it, and that it is dropped once it was published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.attempt import Finished, Memory
from exactlyonce.effects.companions import FindOwing, LoadCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.records.companions import ColocatedRecord, record_id
from exactlyonce.records.outbox import digest
from tests.asking import unhandled
from tests.samples import breaking, deposit
from tests.unit.script import AT, ENTITY, Played, Script, attempt, numbers, receipt

COLOCATED = Colocated()


def owing(*ids: str) -> Script:
    """An entity whose records owe: every process crashed before publishing."""
    script = Script()
    for id in ids:
        script.play(attempt(COLOCATED, deposit(id)), {Publish: UNKNOWN})
    return script


def swept(script: Script, replies: dict[Any, Any] | None = None) -> Played:
    return script.play(Colocated().sweep(unhandled(ENTITY), Memory(entity_token="0:-1#1")), replies)


def owed(script: Script) -> list[str | None]:
    """The messages whose records owe."""
    return [
        companion.message
        for companion in script.companions
        if isinstance(companion, ColocatedRecord) and companion.owed is not None
    ]


class TestTheRecord:
    def test_it_holds_the_outputs_until_they_are_published(self) -> None:
        script = Script()
        played = script.play(attempt(COLOCATED, deposit("m-1", answers=2)))
        outputs = played.only(Publish).outputs
        assert played.only(SaveBatch).create == (
            ColocatedRecord(
                entity='["account","a","a"]',
                message="web/m-1",
                tx="tx-1",
                version=1,
                at=AT,
                outputs=tuple(output.ref for output in outputs),
                digest=digest(outputs),
                owed=outputs,
                owing_since=AT,
                content=deposit("m-1", answers=2).content,
            ),
        )
        assert [output.place for output in outputs] == [receipt(1), receipt(2)]

    def test_it_keeps_all_else_for_good(self) -> None:
        script = Script()
        (created,) = script.play(attempt(COLOCATED, deposit("m-1"))).only(SaveBatch).create
        assert isinstance(created, ColocatedRecord)
        assert script.companions == [replace(created, owed=None, owing_since=None)]

    def test_that_of_a_message_that_sends_nothing_owes_nothing(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1", answers=0)))
        (record,) = script.companions
        assert isinstance(record, ColocatedRecord)
        assert (record.owed, record.owing_since, record.outputs) == (None, None, ())

    def test_only_those_that_owe_are_written_again(self) -> None:
        played = Script().play(attempt(COLOCATED, deposit("m-1"), deposit("m-2", answers=0), deposit("m-3")))
        written = played.only(ReplaceCompanions).companions
        assert [(record.message, etag) for record, etag in written] == [("web/m-1", None), ("web/m-3", None)]

    def test_it_is_dropped_without_a_condition_since_published_is_published(self) -> None:
        """Somebody else published as well, and wrote it down first."""
        script = Script()

        def beaten(effect: Any) -> Any:
            swept(script)
            return script.usual(effect)

        script.play(attempt(COLOCATED, deposit("m-1")), {Publish: beaten})
        assert owed(script) == []
        assert numbers(script.published) == [1, 1]


class TestADuplicate:
    def test_it_publishes_what_is_owed_and_drops_it(self) -> None:
        script = owing("m-1")
        played = script.play(attempt(COLOCATED, deposit("m-1")))
        assert played.kinds == [Together, Publish, ReplaceCompanions]
        contents = (("web/m-1", deposit("m-1").content),)
        assert played.finished == Finished(Memory(entity_token="0:-1#2"), contents=contents)
        ((record, etag),) = played.only(ReplaceCompanions).companions
        assert (record.message, etag) == ("web/m-1", '"2"')
        assert owed(script) == []

    def test_it_costs_one_look_once_that_is_done(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1")))
        played = script.play(attempt(COLOCATED, deposit("m-1")))
        assert played.kinds == [Together]
        assert played.finished.processed == ()

    def test_it_is_not_handled_again(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1")))
        played = script.play(attempt(COLOCATED, deposit("m-1"), handle=lambda *_: pytest.fail("handled")))
        assert played.finished.failed == ()

    def test_in_a_group_it_is_finished_before_the_others_are_handled(self) -> None:
        script = owing("m-1")
        played = script.play(attempt(COLOCATED, deposit("m-2"), deposit("m-1"), breaking("m-3"), deposit("m-4")))
        assert played.kinds == [
            Together,
            Publish,
            ReplaceCompanions,
            Begin,
            SaveBatch,
            Publish,
            ReplaceCompanions,
        ]
        assert played.only(Begin).count == 3
        assert played.finished.processed == ("web/m-2", "web/m-4")
        assert [key for key, _ in played.finished.failed] == ["web/m-3"]
        assert numbers(script.published) == [1, 2, 3]
        assert owed(script) == []

    def test_what_another_message_owes_is_not_its_business(self) -> None:
        script = owing("m-1")
        played = script.play(attempt(COLOCATED, deposit("m-2")))
        assert played.kinds == [Together, Begin, SaveBatch, Publish, ReplaceCompanions]
        assert owed(script) == ["web/m-1"]

    def test_while_its_outputs_may_not_have_arrived_they_stay_owed(self) -> None:
        script = owing("m-1")
        played = script.play(attempt(COLOCATED, deposit("m-1")), {Publish: UNKNOWN})
        assert played.kinds == [Together, Publish]
        assert played.again.memory.entity_token == "0:-1#2"
        assert owed(script) == ["web/m-1"]

    def test_published_is_the_only_reply_that_counts_as_published(self) -> None:
        for reply, counts in ((PUBLISHED, True), (None, False), (UNKNOWN, False)):
            script = owing("m-1")
            script.play(attempt(COLOCATED, deposit("m-1")), {Publish: reply})
            assert (owed(script) == []) is counts

    def test_a_record_that_somebody_wrote_meanwhile_stays_as_it_is(self) -> None:
        script = owing("m-1")
        stale = script.usual(LoadCompanions(ENTITY, (record_id(ENTITY, "web/m-1"),)))
        swept(script)
        writes = script.writes
        script.play(attempt(COLOCATED, deposit("m-1")), {LoadCompanions: stale})
        assert script.writes == writes
        assert numbers(script.published) == [1, 1]


class TestTheSweeper:
    def test_it_publishes_what_records_owe_and_drops_it_as_it_was_read(self) -> None:
        script = owing("m-1", "m-2")
        played = swept(script)
        assert played.kinds == [FindOwing, Publish, ReplaceCompanions]
        assert played.result == Finished(Memory(entity_token="0:-1#1"))
        assert [etag for _, etag in played.only(ReplaceCompanions).companions] == ['"2"', '"4"']
        assert numbers(script.published) == [1, 2]
        assert owed(script) == []

    def test_an_entity_that_owes_nothing_is_left_alone(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1")))
        for item in (script, Script()):
            assert swept(item).kinds == [FindOwing]

    def test_what_is_done_twice_makes_copies_at_most(self) -> None:
        script = owing("m-1")
        stale = script.usual(FindOwing(ENTITY))
        for _ in range(2):
            swept(script, {FindOwing: stale})
        assert numbers(script.published) == [1, 1]
        assert script.published[0] == script.published[1]
        assert (owed(script), script.ledger.version) == ([], 1)

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_without_an_answer_nothing_is_published(self, reply: NoAnswer) -> None:
        played = swept(owing("m-1"), {FindOwing: reply})
        assert played.kinds == [FindOwing]
        assert played.again.memory == Memory(entity_token="0:-1#1")

    def test_what_may_not_have_been_published_stays_owed(self) -> None:
        script = owing("m-1")
        assert swept(script, {Publish: UNKNOWN}).again.reason
        assert owed(script) == ["web/m-1"]

    def test_dropping_is_best_effort(self) -> None:
        script = owing("m-1")
        assert isinstance(swept(script, {ReplaceCompanions: lambda _: None}).result, Finished)
        assert owed(script) == ["web/m-1"]

    def test_a_record_that_cannot_be_read_stops_it(self) -> None:
        def damaged(_: Any) -> Any:
            raise DamagedDocument("the record")

        with pytest.raises(DamagedDocument):
            swept(owing("m-1"), {FindOwing: damaged})


def test_a_conflict_is_no_loss_but_leads_to_the_record() -> None:
    script = Script()

    def beaten(effect: Any) -> Any:
        script.play(attempt(COLOCATED, deposit("m-1")))
        return script.usual(effect)

    played = script.play(attempt(COLOCATED, deposit("m-1")), {SaveBatch: beaten})
    assert played.again.memory.entity_token == "0:-1#3"
    assert script.play(attempt(COLOCATED, deposit("m-1"), memory=played.again.memory)).finished.processed == ()
    assert script.ledger.version == 1
    assert isinstance(script.usual(played.only(SaveBatch)), Conflict)
