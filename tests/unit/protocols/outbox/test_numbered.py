"""Messages with a number: the ledger knows them for ever, by the ranges received through their channels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Envelope, ForkedChannel, InvalidMessage, Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import UNKNOWN, Begin, Effect, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FindChannels,
    FindProcessed,
    LoadStaged,
    Park,
    Stage,
    WriteRecords,
)
from exactlyonce.effects.publish import Publish
from exactlyonce.protocols.outbox.draft import SEALED_AFTER
from exactlyonce.records.channels import FARTHEST_AHEAD
from exactlyonce.records.library import ProcessedRecord, Seal
from exactlyonce.records.places import Place
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.script import ENTITY, Script, attempt, work_for

OUTBOX = Outbox()


def numbered(
    number: int, channel: str = "c1", *, id: str | None = None, answers: int = 1, padding: str = ""
) -> Envelope:
    """A deposit that another entity sent."""
    envelope = deposit(id or f"{channel}-{number}", answers=answers, padding=padding)
    place = Place(channel, ENTITY.source, number)
    return replace(envelope, source=f"shop/{channel}", extensions=place.extensions)


def key(number: int, channel: str = "c1") -> str:
    return f"shop%2F{channel}/{channel}-{number}"


def received(script: Script, *messages: Envelope) -> Memory:
    """Let the entity process messages, each by an attempt of its own, and mark what they owe."""
    memory = Memory()
    for message in messages:
        memory = script.play(attempt(OUTBOX, message, memory=memory)).finished.memory
    return script.play(OUTBOX.mark(ENTITY, memory)).finished.memory if memory.published else memory


class TestOneMessage:
    def test_it_takes_one_read_and_one_write(self) -> None:
        played = Script().play(attempt(OUTBOX, numbered(1)))
        assert played.kinds == [LoadEntity, Begin, SaveEntity, Publish]
        assert played.finished.processed == (key(1),)

    def test_its_number_is_in_the_commit(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, numbered(1)))
        (channel,) = script.ledger.channels
        assert (channel.id, channel.source, channel.received) == ("c1", "shop/c1", ((1, 1),))
        assert (script.ledger.version, [entry.recorded for entry in script.entries]) == (1, [False])

    def test_its_entry_goes_once_its_outputs_are_published(self) -> None:
        script = Script()
        received(script, numbered(1))
        assert script.entries == ()
        assert script.ledger.version == 1

    def test_the_next_commit_drops_what_this_process_published(self) -> None:
        script = Script()
        memory = script.play(attempt(OUTBOX, numbered(1))).finished.memory
        script.play(attempt(OUTBOX, numbered(2), memory=memory))
        assert [entry.message for entry in script.entries] == [key(2)]

    def test_one_that_sends_nothing_leaves_no_entry_at_all(self) -> None:
        script = Script()
        played = script.play(attempt(OUTBOX, numbered(1, answers=0)))
        assert played.kinds == [LoadEntity, Begin, SaveEntity]
        assert script.entries == ()

    def test_nothing_is_kept_for_each_message(self) -> None:
        sizes = []
        for count in (20, 200):
            script = Script()
            received(script, *(numbered(number, answers=0) for number in range(10, 10 + count)))
            assert script.document is not None
            sizes.append(script.document.size - len(str(script.body)))
        assert sizes[1] - sizes[0] < 16, "two more digits here and there"


class TestCopies:
    def test_a_copy_is_dropped_by_one_read(self) -> None:
        script = Script()
        received(script, numbered(1))
        played = script.play(attempt(OUTBOX, numbered(1)))
        assert played.kinds == [LoadEntity]
        assert played.finished.processed == ()

    def test_a_copy_publishes_what_its_message_still_owes(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, numbered(1)), {Publish: UNKNOWN})
        played = script.play(attempt(OUTBOX, numbered(1)))
        assert played.kinds == [LoadEntity, Publish]
        assert len(played.only(Publish).outputs) == 1

    def test_a_copy_in_an_old_view_is_known_all_the_same(self) -> None:
        """What was received once is received for ever."""
        script = Script()
        received(script, numbered(1))
        old = script.store.perform(LoadEntity(ENTITY))
        received(script, numbered(2), numbered(3))
        assert script.play(attempt(OUTBOX, numbered(1)), {LoadEntity: old}).kinds == [LoadEntity]

    def test_a_fresh_message_in_an_old_view_fails_on_its_condition(self) -> None:
        script = Script()
        received(script, numbered(1))
        old = script.store.perform(LoadEntity(ENTITY))
        received(script, numbered(2))
        played = script.play(attempt(OUTBOX, numbered(2)), {LoadEntity: old})
        assert isinstance(script.store.perform(played.only(SaveEntity)), Conflict)
        assert "changed meanwhile" in played.again.reason

    def test_copies_of_one_message_count_once(self) -> None:
        played = Script().play(attempt(OUTBOX, numbered(1), numbered(1)))
        assert played.finished.processed == (key(1),)

    def test_numbers_may_come_in_any_order(self) -> None:
        script = Script()
        received(script, numbered(3), numbered(1), numbered(7))
        assert script.ledger.channels[0].received == ((1, 1), (3, 3), (7, 7))
        assert script.play(attempt(OUTBOX, numbered(2))).finished.processed == (key(2),)


class TestWhatCannotBe:
    def test_another_message_under_a_known_number_is_refused(self) -> None:
        script = Script()
        received(script, numbered(1))
        played = script.play(attempt(OUTBOX, numbered(1, id="another")))
        ((_, error),) = played.finished.failed
        assert isinstance(error, ForkedChannel)
        assert "number 1 in channel c1" in str(error)

    def test_of_two_messages_under_one_number_in_a_group_the_first_is_taken(self) -> None:
        played = Script().play(attempt(OUTBOX, numbered(1), numbered(1, id="another")))
        assert played.finished.processed == (key(1),)
        assert [type(error) for _, error in played.finished.failed] == [ForkedChannel]

    @pytest.mark.parametrize("number", ["0", "-1", "1.5", str(2**53), "", "x", "9" * 5000])
    def test_a_number_that_is_none_is_refused(self, number: str) -> None:
        extensions = (("channel", "c1"), ("partitionkey", ENTITY.source), ("sequence", number))
        played = Script().play(attempt(OUTBOX, replace(deposit("m-1"), extensions=extensions)))
        assert [type(error) for _, error in played.finished.failed] == [InvalidMessage]

    def test_a_message_for_another_entity_is_refused(self) -> None:
        stray = replace(numbered(1), extensions=Place("c1", "account/b", 1).extensions)
        ((_, error),) = Script().play(attempt(OUTBOX, stray)).finished.failed
        assert "is numbered for 'account/b'" in str(error)

    def test_a_number_too_far_ahead_is_refused(self) -> None:
        script = Script()
        received(script, numbered(1))
        ((_, error),) = script.play(attempt(OUTBOX, numbered(2 + FARTHEST_AHEAD))).finished.failed
        assert "1 is the highest number received" in str(error)

    @pytest.mark.parametrize(("number", "processed"), [(FARTHEST_AHEAD, True), (FARTHEST_AHEAD + 1, False)])
    def test_the_first_number_of_a_channel_may_be_no_farther_ahead_than_any_other(
        self, number: int, *, processed: bool
    ) -> None:
        finished = Script().play(attempt(OUTBOX, numbered(number))).finished
        assert finished.processed == ((key(number),) if processed else ())
        assert [type(error) for _, error in finished.failed] == ([] if processed else [InvalidMessage])

    def test_a_channel_has_one_source(self) -> None:
        script = Script()
        received(script, numbered(1))
        ((_, error),) = script.play(attempt(OUTBOX, replace(numbered(2), source="shop/other"))).finished.failed
        assert "the channel is of shop/c1" in str(error)

    def test_what_cannot_be_takes_nothing_along(self) -> None:
        played = Script().play(attempt(OUTBOX, replace(numbered(1), extensions=(("channel", "c1"),)), numbered(2)))
        assert played.finished.processed == (key(2),)
        assert len(played.finished.failed) == 1

    def test_a_number_whose_handler_raised_stays_open(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, replace(numbered(1), type="account.break"), numbered(2)))
        assert script.ledger.channels[0].received == ((2, 2),)
        assert script.play(attempt(OUTBOX, numbered(1))).finished.processed == (key(1),)


class TestForeign:
    def test_foreign_messages_are_looked_for_and_numbered_ones_are_not(self) -> None:
        played = Script().play(attempt(OUTBOX, numbered(1), deposit("m-1")))
        assert played.only(Together).second == FindProcessed(ENTITY, ("web/m-1",))

    def test_a_numbered_entry_that_leaves_with_them_gets_no_record(self) -> None:
        strategy, script = Outbox(window=1), Script()
        script.play(attempt(strategy, deposit("m-1"), numbered(1)), {Publish: UNKNOWN})
        played = script.play(attempt(strategy, deposit("m-2")))
        records = [one.message for one in played.only(WriteRecords).records if isinstance(one, ProcessedRecord)]
        assert records == ["web/m-1"]
        assert len(played.all(Publish)[0].outputs) == 2, "what both owe"

    def test_records_are_not_looked_for_where_all_have_numbers(self) -> None:
        strategy, script = Outbox(window=1), Script()
        for number in (1, 2):
            script.play(attempt(strategy, deposit(f"m-{number}")))
        assert script.ledger.apart.records
        assert script.play(attempt(strategy, numbered(1))).kinds == [LoadEntity, Begin, SaveEntity, Publish]

    def test_they_may_be_refused(self) -> None:
        played = Script().play(attempt(Outbox(foreign="refuse"), deposit("m-1"), numbered(1)))
        assert played.finished.processed == (key(1),)
        ((refused, error),) = played.finished.failed
        assert refused == "web/m-1"
        assert "has no channel" in str(error)

    def test_only_they_take_room_in_the_window(self) -> None:
        strategy, script = Outbox(window=2), Script()
        memory = Memory()
        for number in range(6):
            played = script.play(attempt(strategy, deposit(f"m-{number // 2}"), numbered(number + 1), memory=memory))
            memory = played.finished.memory
        assert [entry.message for entry in script.entries if entry.recorded] == ["web/m-2"]
        written = [record for effect in played.all(WriteRecords) for record in effect.records]
        assert all(isinstance(record, ProcessedRecord | Seal) for record in written)

    def test_a_commit_takes_as_many_of_them_as_the_window_holds(self) -> None:
        script = Script()
        group = [*(numbered(number) for number in range(1, 41)), *(deposit(f"m-{number}") for number in range(20))]
        again = script.play(attempt(OUTBOX, *group)).again
        assert again.progressed
        assert again.processed == (*map(key, range(1, 41)), *(f"web/m-{number}" for number in range(16)))
        assert script.ledger.version == 40 + 16
        finished = script.play(attempt(OUTBOX, *group, memory=again.memory)).finished
        assert finished.processed == tuple(f"web/m-{number}" for number in range(16, 20))


def full(script: Script) -> None:
    """Let as many channels be in the ledger as it holds."""
    received(script, *(numbered(1, f"c{count}") for count in range(1, OUTBOX.channels + 1)))


class TestStagedOutputs:
    def test_they_go_with_the_mark(self) -> None:
        script = Script()
        strategy = Outbox.transaction_id()
        memory = script.play(attempt(strategy, numbered(1))).finished.memory
        played = script.play(strategy.mark(ENTITY, memory))
        assert played.kinds == [SaveEntity, DeleteStaged]
        assert script.entries == ()

    def test_they_go_with_the_next_commit(self) -> None:
        script = Script()
        strategy = Outbox.transaction_id()
        memory = script.play(attempt(strategy, numbered(1))).finished.memory
        played = script.play(attempt(strategy, numbered(2), memory=memory))
        assert played.kinds == [LoadEntity, Begin, Stage, SaveEntity, Publish, DeleteStaged]

    def test_the_sweeper_publishes_them_and_they_go(self) -> None:
        script = Script()
        strategy = Outbox.transaction_id()
        script.play(attempt(strategy, numbered(1)), {Publish: UNKNOWN})
        played = script.play(strategy.sweep(work_for(), Memory()))
        assert played.kinds == [LoadEntity, LoadStaged, Publish, SaveEntity, DeleteStaged]


class TestTheSeal:
    def test_an_entity_that_wrote_nothing_apart_gets_it_once(self) -> None:
        script, wrote = Script(), []
        for number in range(1, SEALED_AFTER + 4):
            played = script.play(attempt(OUTBOX, numbered(number, answers=0)))
            wrote.append([one for effect in played.all(WriteRecords) for one in effect.records])
        assert wrote == [[]] * SEALED_AFTER + [[Seal(ENTITY.key)], [], []]
        assert script.ledger.apart.sealed

    def test_a_large_first_commit_writes_none_since_a_lost_one_would_leave_a_seal_without_a_ledger(self) -> None:
        script = Script(Json.of({"id": "a", "owner": "a"}))
        group = [numbered(number, answers=0) for number in range(1, SEALED_AFTER + 4)]
        assert script.play(attempt(OUTBOX, *group), {SaveEntity: [UNKNOWN]}).again.reason
        assert len(script.play(attempt(OUTBOX, *group)).finished.processed) == len(group)
        script.play(attempt(OUTBOX, numbered(SEALED_AFTER + 4)))
        assert script.ledger.apart.sealed

    def test_without_its_ledger_the_entity_is_refused(self) -> None:
        script = Script()
        received(script, *(numbered(number, answers=0) for number in range(1, SEALED_AFTER + 2)))
        assert script.document is not None
        properties = script.document.value
        del properties["_ledger"]
        script.put(type(script.document).of(properties))
        with pytest.raises(Exception, match="its property '_ledger' is gone"):
            script.play(attempt(OUTBOX, numbered(1)))


class TestSettling:
    def settled(self, script: Script, message: Envelope) -> tuple[str, list[type[Effect[object]]]]:
        played = script.play(OUTBOX.settle(work_for(message), message, "it failed", Memory()))
        return played.result.outcome, played.kinds

    def test_a_received_number_proves_a_message_processed(self) -> None:
        script = Script()
        received(script, numbered(1))
        assert self.settled(script, numbered(1)) == ("processed", [LoadEntity])

    def test_one_that_was_not_received_is_parked_behind_a_fence(self) -> None:
        script = Script()
        received(script, numbered(1))
        outcome, kinds = self.settled(script, numbered(2))
        assert outcome == "parked"
        assert kinds[:2] == [LoadEntity, SaveEntity]
        assert kinds[-1] is Park

    def test_another_one_under_a_known_number_is_parked(self) -> None:
        script = Script()
        received(script, numbered(1))
        assert self.settled(script, numbered(1, id="another"))[0] == "parked"

    @pytest.mark.parametrize(("message", "known"), [(numbered(1), True), (numbered(1, id="another"), False)])
    def test_of_two_messages_under_one_number_only_the_processed_one_is_known(
        self, message: Envelope, known: bool
    ) -> None:
        script = Script()
        received(script, numbered(1))
        assert script.play(OUTBOX.knows(ENTITY, message, Memory())).result is known

    def test_one_of_a_channel_that_left_is_looked_for(self) -> None:
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        assert self.settled(script, numbered(1, "c7")) == ("processed", [LoadEntity, FindChannels])
        assert self.settled(script, numbered(2, "c7"))[0] == "parked"


class TestAge:
    def test_a_number_is_known_for_ever_and_a_foreign_message_is_not(self) -> None:
        assert not OUTBOX.forgets(numbered(1))
        assert OUTBOX.forgets(deposit("m-1"))
