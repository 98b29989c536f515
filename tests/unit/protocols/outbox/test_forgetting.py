"""Forgetting channels: what clean-up writes, saves and deletes, in this order; and what is refused from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox
from exactlyonce.attempt import Memory, Settled
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin
from exactlyonce.effects.entity import Conflict, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import DeleteChannels, FindChannels, Park, WriteRecords, Written
from exactlyonce.errors import ForgottenChannel
from exactlyonce.protocols.outbox.clean_channels import Forgot, forget_channels
from exactlyonce.records.channels import Channel, Forgotten
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ChannelDocument
from tests.samples import deposit
from tests.unit.protocols.outbox.test_numbered import key, numbered
from tests.unit.script import ABSENT, ENTITY, Played, Script, attempt, work_for

ONE = Outbox(channels=1)
FIRST, SECOND, THIRD, LAST = (f"{at:012x}c{at}" for at in (10, 20, 30, 40))
EVER = 2**48


def sent(script: Script, *places: tuple[str, int]) -> Script:
    """Let the entity receive messages through channels, of which its ledger holds one."""
    for channel, number in places:
        script.play(attempt(ONE, numbered(number, channel)))
    return script


def history() -> Script:
    """A channel with a gap, two without, and one that is in the ledger. The first began first."""
    return sent(Script(), (FIRST, 2), (SECOND, 1), (SECOND, 2), (THIRD, 1), (LAST, 1))


def forget(script: Script, until: int = EVER, replies: dict[Any, Any] | None = None) -> Played:
    """Forget the channels that began by a time: `SECOND` at 20, `THIRD` at 30."""
    return script.play(forget_channels(ENTITY, until, Memory()), replies)


def documents(script: Script) -> set[tuple[str, str]]:
    """Channel and turn of all documents of channels."""
    found = script.store.perform(FindChannels(ENTITY, None, None))
    return {(one.channel.id, one.turn) for one in found.documents}  # type: ignore[union-attr]


class TestForgetting:
    def test_the_survivors_are_written_then_the_mark_is_saved_then_documents_go(self) -> None:
        script = history()
        before = script.ledger
        played = forget(script, 20)
        assert played.kinds == [LoadEntity, FindChannels, Begin, WriteRecords, SaveEntity, DeleteChannels]
        assert played.only(FindChannels) == FindChannels(ENTITY, None, before.token)
        turn = script.ledger.apart.turn
        assert turn
        (survivor,) = played.only(WriteRecords).records
        assert isinstance(survivor, ChannelDocument)
        assert (survivor.channel.id, survivor.channel.received) == (FIRST, ((2, 2),))
        assert (survivor.entity, survivor.version, survivor.turn) == (ENTITY.key, before.version, turn)
        assert script.ledger.apart == replace(before.apart, forgotten=Forgotten(20, turn))
        assert replace(script.ledger, apart=before.apart, token=before.token) == before
        assert documents(script) == {(FIRST, turn), (THIRD, "")}
        assert played.result.channels == (SECOND,)
        assert (played.result.memory.saved, played.result.memory.library_token) == (None, script.ledger.token)

    def test_the_ledger_relies_on_a_view_that_shows_the_survivors(self) -> None:
        script = history()
        written = Written("0:-1#99")
        assert forget(script, 20, {WriteRecords: written}).result.memory.library_token == written.token
        assert script.ledger.token == written.token

    def test_a_survivor_that_began_with_one_that_is_forgotten_is_written_too(self) -> None:
        with_a_gap = f"{SECOND}9"
        script = sent(Script(), (with_a_gap, 2), (SECOND, 1), (LAST, 1))
        assert forget(script, 20).result.channels == (SECOND,)
        assert documents(script) == {(with_a_gap, script.ledger.apart.turn)}

    def test_a_document_that_is_written_late_does_not_survive(self) -> None:
        script = history()
        forget(script, 20)
        late = ChannelDocument(ENTITY.key, Channel(SECOND, "web", ((2, 2),)), script.ledger.version)
        script.store.perform(WriteRecords(ENTITY, (late,)))
        assert forget(script, 30).result.channels == (THIRD,)
        assert documents(script) == {(FIRST, script.ledger.apart.turn)}

    def test_whoever_reads_next_sees_the_mark(self) -> None:
        saved = Saved("etag", "0:-1#98")
        assert forget(history(), 20, {SaveEntity: saved}).result.memory.entity_token == saved.token

    def test_the_mark_is_the_beginning_of_the_latest_channel_that_is_forgotten(self) -> None:
        script = history()
        assert set(forget(script, 35).result.channels) == {SECOND, THIRD}
        assert script.ledger.apart.forgotten == Forgotten(30, script.ledger.apart.turn)

    def test_the_mark_never_goes_back(self) -> None:
        script = sent(history(), (SECOND, 3))
        assert forget(script, 30).result.channels == (THIRD,)
        sent(script, (LAST, 2))
        assert forget(script, 20).result.channels == (SECOND,)
        assert script.ledger.apart.forgotten == Forgotten(30, script.ledger.apart.turn)
        assert documents(script) == {(FIRST, script.ledger.apart.turn)}

    def test_every_turn_is_fresh(self) -> None:
        script = history()
        forget(script, 20)
        first = script.ledger.apart.turn
        forget(script, 30)
        assert script.ledger.apart.turn not in ("", first)

    def test_where_nothing_survives_nothing_is_written(self) -> None:
        script = sent(Script(), (FIRST, 1), (LAST, 1))
        token = script.ledger.token
        played = forget(script)
        assert played.kinds == [LoadEntity, FindChannels, Begin, SaveEntity, DeleteChannels]
        assert script.ledger.token == token
        assert documents(script) == set()

    @pytest.mark.parametrize(
        ("script", "until"), [(history(), 10), (sent(Script(), (FIRST, 2), ("c7", 1), (LAST, 1)), EVER)]
    )
    def test_a_channel_with_a_gap_stays_and_so_does_one_that_is_in_the_ledger(self, script: Script, until: int) -> None:
        played = forget(script, until)
        assert played.kinds == [LoadEntity, FindChannels]
        assert played.result.channels == ()

    def test_a_channel_that_waits_for_a_number_in_between_has_a_gap(self) -> None:
        script = sent(Script(), (FIRST, 1), (FIRST, 3), (LAST, 1))
        assert forget(script).result.channels == ()
        assert documents(script) == {(FIRST, "")}

    def test_a_channel_whose_first_number_is_missing_has_a_gap(self) -> None:
        assert forget(sent(Script(), (FIRST, 2), (FIRST, 3), (LAST, 1))).result.channels == ()

    @pytest.mark.parametrize(("until", "forgotten"), [(19, ()), (20, (SECOND,)), (21, (SECOND,))])
    def test_no_channel_is_forgotten_that_began_later(self, until: int, forgotten: tuple[str, ...]) -> None:
        assert forget(history(), until).result.channels == forgotten

    def test_a_channel_whose_id_does_not_say_when_it_began_stays(self) -> None:
        script = sent(Script(), ("c1", 1), (FIRST, 1), (LAST, 1))
        assert forget(script).result.channels == (FIRST,)
        assert ("c1", "") in documents(script)
        assert script.play(attempt(ONE, numbered(1, "c1"))).finished.processed == ()

    def test_documents_of_a_channel_that_came_back_go_too(self) -> None:
        script = history()
        script.play(attempt(ONE, numbered(1, FIRST)), {DeleteChannels: None})
        played = forget(script, 20)
        assert WriteRecords not in played.kinds, "the ledger knows it"
        assert not any(channel == FIRST for channel, _ in documents(script))

    @pytest.mark.parametrize("script", [Script(), sent(Script(), (FIRST, 1))])
    def test_where_no_channel_left_nothing_is_looked_for(self, script: Script) -> None:
        played = forget(script)
        assert played.kinds == [LoadEntity]
        assert played.result == Forgot((), played.result.memory)

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    @pytest.mark.parametrize("kind", [LoadEntity, FindChannels])
    def test_without_an_answer_to_a_read_nothing_is_written(self, kind: Any, reply: Any) -> None:
        played = forget(history(), 20, {kind: reply})
        assert played.kinds[-1] is kind
        assert played.again.reason

    def test_without_an_answer_to_a_write_nothing_is_saved(self) -> None:
        played = forget(history(), 20, {WriteRecords: UNKNOWN})
        assert played.kinds[-1] is WriteRecords
        assert played.again.reason

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9")])
    def test_if_the_mark_was_not_saved_nothing_is_deleted(self, reply: Any) -> None:
        played = forget(history(), 20, {SaveEntity: reply})
        assert played.kinds[-1] is SaveEntity
        assert played.again.reason

    def test_an_entity_of_another_protocol_is_refused(self) -> None:
        script = Script(entity_document(ABSENT, Ledger(43, type="account", protocol="stream")))
        with pytest.raises(ConfigurationError, match="processed by the protocol 'stream'"):
            forget(script)


class TestMessagesOfForgottenChannels:
    def test_a_copy_is_refused_behind_a_fence(self) -> None:
        script = history()
        forget(script, 20)
        before = script.ledger
        played = script.play(attempt(ONE, numbered(1, SECOND)))
        assert played.kinds == [LoadEntity, FindChannels, SaveEntity]
        ((refused, error),) = played.finished.failed
        assert (refused, type(error)) == (key(1, SECOND), ForgottenChannel)
        assert "requeue --as-new" in str(error)
        assert SECOND in str(error)
        assert script.ledger == before
        assert played.finished.memory.saved is None

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9")])
    def test_without_a_fence_it_is_not_refused(self, reply: Any) -> None:
        script = history()
        forget(script, 20)
        assert script.play(attempt(ONE, numbered(1, SECOND)), {SaveEntity: reply}).again.reason

    @pytest.mark.parametrize(("began", "is_refused"), [(19, True), (20, True), (21, False)])
    def test_an_unknown_channel_is_refused_if_it_began_no_later_than_the_mark(
        self,
        began: int,
        is_refused: bool,
    ) -> None:
        script = history()
        forget(script, 20)
        finished = script.play(attempt(ONE, numbered(1, f"{began:012x}other"))).finished
        assert (bool(finished.failed), bool(finished.processed)) == (is_refused, not is_refused)

    def test_a_channel_whose_id_does_not_say_when_it_began_is_taken(self) -> None:
        script = history()
        forget(script, 20)
        assert script.play(attempt(ONE, numbered(1, "c1"))).finished.processed == (key(1, "c1"),)

    def test_a_survivor_is_known_by_its_new_document(self) -> None:
        script = history()
        forget(script, 20)
        assert script.play(attempt(ONE, numbered(2, FIRST))).finished.processed == ()
        assert script.play(attempt(ONE, numbered(1, FIRST))).finished.processed == (key(1, FIRST),)

    def test_a_document_of_an_earlier_turn_does_not_count(self) -> None:
        """A write that lands late would bring back a part of a channel that was forgotten."""
        script = history()
        forget(script, 20)
        late = ChannelDocument(ENTITY.key, Channel(SECOND, f"shop/{SECOND}", ((2, 2),)), 3)
        script.store.perform(WriteRecords(ENTITY, (late,)))
        assert isinstance(
            dict(script.play(attempt(ONE, numbered(1, SECOND))).finished.failed)[key(1, SECOND)], ForgottenChannel
        )
        forget(script, 30)
        assert (SECOND, "") not in documents(script)

    def test_channels_that_leave_later_leave_under_the_turn(self) -> None:
        script = history()
        forget(script, 20)
        sent(script, (THIRD, 2))
        assert (LAST, script.ledger.apart.turn) in documents(script)
        assert script.play(attempt(ONE, numbered(1, LAST))).finished.processed == ()

    def test_others_of_the_group_are_committed_and_the_commit_is_the_fence(self) -> None:
        script = history()
        forget(script, 20)
        played = script.play(attempt(ONE, numbered(1, SECOND), numbered(2, LAST), deposit("m-1")))
        assert len(played.all(SaveEntity)) == 1
        assert set(played.finished.processed) == {key(2, LAST), "web/m-1"}
        assert [refused for refused, _ in played.finished.failed] == [key(1, SECOND)]

    def test_where_no_other_can_be_committed_there_is_a_fence(self) -> None:
        script = history()
        forget(script, 20)

        def raising(*_: Any) -> Any:
            raise ForgottenChannel("as any error of a handler")

        played = script.play(attempt(ONE, numbered(1, SECOND), numbered(2, LAST), handle=raising))
        assert played.kinds == [LoadEntity, FindChannels, Begin, SaveEntity]
        assert len(played.finished.failed) == 2
        assert script.ledger.version == 5

    def test_the_settler_parks_it(self) -> None:
        script = history()
        forget(script, 20)
        message = numbered(1, SECOND)
        played = script.play(ONE.settle(work_for(message), message, "refused", Memory()))
        assert played.kinds == [LoadEntity, FindChannels, SaveEntity, Begin, Park]
        assert isinstance(played.result, Settled)

    def test_nothing_is_refused_as_a_remembered_document_shows_it(self) -> None:
        script = history()
        memory = received_twice(script)
        forget(script, 20)
        played = script.play(attempt(ONE, numbered(1, SECOND), memory=memory))
        assert played.kinds == [FindChannels, Begin, LoadEntity, FindChannels, SaveEntity]
        assert [type(error) for _, error in played.finished.failed] == [ForgottenChannel]

    def test_nor_from_memory_where_the_mark_is_remembered(self) -> None:
        script = history()
        forget(script, 20)
        memory = received_twice(script)
        played = script.play(attempt(ONE, numbered(1, SECOND), memory=memory))
        assert played.kinds == [FindChannels, LoadEntity, FindChannels, SaveEntity]


def received_twice(script: Script) -> Memory:
    """The memory of a process that starts from what it remembers."""
    memory = Memory()
    for number in (2, 3, 4):
        memory = script.play(attempt(ONE, numbered(number, LAST), memory=memory)).finished.memory
    return memory
