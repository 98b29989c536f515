"""The co-located protocol: what its records owe, who finishes it, and that it is dropped once it was published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.attempt import Finished, Memory
from exactlyonce.effects.companions import FindOwing, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.records.companions import ColocatedRecord
from exactlyonce.records.outbox import digest
from tests.asking import unhandled
from tests.samples import deposit
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
    def test_it_holds_the_outputs_until_they_are_published(self, script: Script) -> None:
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

    def test_it_keeps_all_else_for_good(self, script: Script) -> None:
        (created,) = script.play(attempt(COLOCATED, deposit("m-1"))).only(SaveBatch).create
        assert isinstance(created, ColocatedRecord)
        assert script.companions == [replace(created, owed=None, owing_since=None)]

    def test_that_of_a_message_that_sends_nothing_owes_nothing(self, script: Script) -> None:
        script.play(attempt(COLOCATED, deposit("m-1", answers=0)))
        (record,) = script.companions
        assert isinstance(record, ColocatedRecord)
        assert (record.owed, record.owing_since, record.outputs) == (None, None, ())

    def test_only_those_that_owe_are_written_again(self) -> None:
        played = Script().play(attempt(COLOCATED, deposit("m-1"), deposit("m-2", answers=0), deposit("m-3")))
        written = played.only(ReplaceCompanions).companions
        assert [(record.message, etag) for record, etag in written] == [("web/m-1", None), ("web/m-3", None)]


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

    def test_it_costs_one_look_once_that_is_done(self, script: Script) -> None:
        script.play(attempt(COLOCATED, deposit("m-1")))
        played = script.play(attempt(COLOCATED, deposit("m-1")))
        assert played.kinds == [Together]
        assert played.finished.processed == ()


class TestTheSweeper:
    def test_it_publishes_what_records_owe_and_drops_it_as_it_was_read(self) -> None:
        script = owing("m-1", "m-2")
        played = swept(script)
        assert played.kinds == [FindOwing, Publish, ReplaceCompanions]
        assert played.result == Finished(Memory(entity_token="0:-1#1"))
        assert [etag for _, etag in played.only(ReplaceCompanions).companions] == ['"2"', '"4"']
        assert numbers(script.published) == [1, 2]
        assert owed(script) == []

    def test_what_may_not_have_been_published_stays_owed(self) -> None:
        script = owing("m-1")
        assert swept(script, {Publish: UNKNOWN}).again.reason
        assert owed(script) == ["web/m-1"]
