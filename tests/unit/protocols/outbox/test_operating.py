"""What operators have done: messages put aside, sent again and discarded, a session token exchanged, a source renumbered; and
clean-up of what nothing names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, Outbox, VersionStream
from exactlyonce.drivers.driver import BlockingDriver
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Before, Handled, Memory, Settled, Strategy
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    DeletePages,
    DeleteStaged,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    Unpark,
    Written,
)
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.outbox.clean import Cleaned, clean_staged
from exactlyonce.protocols.outbox.repair import TokenReset, renumber, reset_token
from exactlyonce.protocols.steps.park import Renewed, Requeued, discard, put_aside, renew, requeue
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ParkedMessage, StagedOutputs
from exactlyonce.records.outbox import Kept, Output, kept_by
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import EntityRef, milliseconds
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, deposit
from tests.unit.bookkeeping import tx
from tests.unit.script import AT, ENTITY, Played, Script, attempt, receipts

BODY = Json.of({**accounts().shape.tombstone(ENTITY).value, "total": 3})
AHEAD = "0:-1#913"
PLACE = EntityRef("account", (), "exactlyonce.put-aside")
NO_ANSWERS = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])


def with_token(token: str | None, **ledger: Any) -> Script:
    return Script(entity_document(BODY, Ledger(43, token=token, type="account", left=43, complete=7, **ledger)))


def reset(script: Script, *others: Any, replies: dict[Any, Any] | None = None) -> Played:
    """Ask for it where no replica is at the token, unless said otherwise; the kept messages are read with these replies."""
    return script.play(reset_token(ENTITY, Memory()), {LoadStaged: [BEHIND, *others], **(replies or {})})


class TestATokenAheadOfTheAccount:
    def test_it_is_exchanged_for_that_of_a_write_made_now_and_what_left_before_counts_as_lost(self) -> None:
        script = with_token(AHEAD)
        played = reset(script)
        assert played.kinds == [LoadEntity, LoadStaged, Begin, Stage, DeleteStaged, SaveEntity]
        assert played.only(LoadStaged).token == AHEAD
        assert played.only(SaveEntity).etag == '"1"'
        ledger = Ledger(43, token="0:-1#1", type="account", entity=ENTITY.key, left=43, complete=7, lost=7)
        assert script.document == entity_document(BODY, ledger)
        assert played.result == TokenReset("reset", Memory("0:-1#2", "0:-1#1"))

    def test_one_that_a_replica_has_reached_stays(self) -> None:
        played = reset(with_token(AHEAD), replies={LoadStaged: FoundStaged(())})
        assert played.kinds == [LoadEntity, LoadStaged]
        assert played.result.outcome == "not ahead"

    @pytest.mark.parametrize("script", [Script(), with_token(None), Script(BODY)])
    def test_where_there_is_none_nothing_is_asked(self, script: Script) -> None:
        played = reset(script)
        assert not {LoadStaged, Stage, SaveEntity} & set(played.kinds)
        assert played.result.outcome == "no token"

    def test_kept_messages_that_are_lost_are_reported(self) -> None:
        due = AT + timedelta(days=9)
        kept = (Kept("o-1", due, "there-kept"), Kept("o-2", due, "gone-kept"))
        script = with_token(AHEAD, kept=kept)
        there = StagedOutputs(ENTITY.key, "web/m-1", "there-kept", AT, ())
        played = reset(script, FoundStaged((there,)))
        _, asked = played.all(LoadStaged)
        assert (asked.transactions, asked.token) == (("there-kept", "gone-kept"), "0:-1#1")
        assert played.result.kept == ("o-2",)
        assert script.ledger.kept == kept

    def test_another_protocol_has_none(self) -> None:
        with pytest.raises(ConfigurationError, match="processed by the protocol 'stream'"):
            reset(with_token(None, protocol="stream", snapshot_every=3))

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict(None)])
    def test_without_a_token_of_a_write_nothing_is_saved(self, reply: Any) -> None:
        played = reset(with_token(AHEAD), replies={Stage: reply})
        assert played.kinds[-1] is Stage
        assert played.again.reason


class TestPuttingAside:
    def test_a_message_is_parked_with_its_reason_in_a_place_of_its_own(self) -> None:
        played = Script().play(put_aside(PLACE, deposit("m-9"), "MalformedMessage", Memory()))
        assert played.kinds == [Begin, Park]
        parked = ParkedMessage(PLACE.key, "web/m-9", "MalformedMessage", AT, deposit("m-9").to_json())
        assert played.only(Park) == Park(PLACE, parked)
        assert played.result == Settled("parked", Memory())

    def test_without_an_answer_it_is_tried_again(self) -> None:
        assert Script().play(put_aside(PLACE, deposit("m-9"), "", Memory()), {Park: UNKNOWN}).again.reason


class TestDiscarding:
    def test_a_note_takes_the_place_of_a_parked_message_as_it_was_read(self) -> None:
        played = Script().play(discard(ENTITY, "web/m-9", Memory(library_token="0:-1#5")), {LoadParked: FOUND})
        assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#5")
        assert played.only(Unpark) == Unpark(ENTITY, "web/m-9", '"7"')
        assert played.result is True

    def test_one_that_is_not_parked_is_reported(self) -> None:
        played = Script().play(discard(ENTITY, "web/m-9", Memory()))
        assert (played.kinds, played.result) == ([LoadParked], False)

    @NO_ANSWERS
    def test_one_that_cannot_be_read_is_tried_again(self, reply: NoAnswer) -> None:
        played = Script().play(discard(ENTITY, "web/m-9", Memory()), {LoadParked: reply})
        assert played.kinds == [LoadParked]
        assert played.again.reason


def having_sent(strategy: Strategy, *messages: str) -> Script:
    script = Script()
    for message in messages:
        script.play(attempt(strategy, deposit(message)))
    return script


@pytest.mark.parametrize("strategy", [Outbox(), VersionStream()])
def test_the_sequences_go_and_nothing_else_is_changed(strategy: Strategy) -> None:
    script = having_sent(strategy, "m-1", "m-2")
    before = script.ledger
    played = script.play(renumber(ENTITY, strategy, Memory()))
    assert played.kinds == [LoadEntity, SaveEntity]
    owing = (item.without_sequences(ENTITY, before.to, before.sequences) for item in before.outbox)
    assert script.ledger == replace(before, sequences=(), outbox=tuple(owing))
    assert played.result.forgotten == before.sequences == (receipts(2, before.sequences[0].channel),)
    assert played.result.memory.saved is None


@pytest.mark.parametrize("strategy", [Outbox(), VersionStream()])
def test_the_next_output_begins_a_fresh_channel(strategy: Strategy) -> None:
    script = having_sent(strategy, "m-1", "m-2")
    (old,) = script.play(renumber(ENTITY, strategy, Memory())).result.forgotten
    script.play(attempt(strategy, deposit("m-3")))
    place = script.published[-1].place
    assert place is not None
    assert (place.number, place.channel == old.channel) == (1, False)


def test_an_entity_of_another_protocol_is_not_renumbered() -> None:
    with pytest.raises(ConfigurationError, match="processed by the protocol 'outbox'"):
        having_sent(Outbox(), "m-1").play(renumber(ENTITY, VersionStream(), Memory()))


POISON = replace(deposit("m-9"), time=AT)
PARKED = ParkedMessage(ENTITY.key, "web/m-9", "its handler raised ValueError", AT, POISON.to_json())
FOUND = FoundParked(PARKED, '"7"', AT)
WEEK = timedelta(days=7)
MEMORY = Memory(library_token="0:-1#0")


def a_week(_: Envelope) -> Callable[[datetime], timedelta]:
    return lambda _: WEEK


def no_limit(_: Envelope) -> None:
    """Of a receiver that never forgets."""


def sent_at(time: datetime | None) -> ParkedMessage:
    return replace(PARKED, envelope=replace(POISON, time=time).to_json())


def requeued(replies: dict[Any, Any], **more: Any) -> Played:
    return Script().play(requeue(ENTITY, "web/m-9", "accounts", more.get("limit", a_week), MEMORY), replies)


def renewed(replies: dict[Any, Any], **more: Any) -> Played:
    return Script().play(renew(ENTITY, "web/m-9", more.get("limit", a_week), MEMORY), replies)


def test_a_parked_message_is_sent_and_then_deleted_as_it_was_read() -> None:
    played = requeued({LoadParked: FOUND})
    assert played.kinds == [LoadParked, Publish, Unpark]
    assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#0")
    assert played.only(Publish).outputs == (Output("m-9", "accounts", POISON.once_more().to_json()),)
    assert played.only(Unpark) == Unpark(ENTITY, "web/m-9", '"7"', "web/m-9")
    assert played.result == Requeued("sent", MEMORY, "web/m-9")


SECOND = timedelta(seconds=1)
AGES = [
    (AT - WEEK, None),
    (AT - WEEK - SECOND, "too old"),
    (AT + timedelta(days=1), None),
    (AT + timedelta(days=1) + SECOND, "ahead"),
    (None, "undated"),
]


@pytest.mark.parametrize(("time", "refused"), AGES)
def test_one_that_its_receiver_would_refuse_stays_parked(time: datetime | None, refused: str | None) -> None:
    """However long it has been parked: by its own time, and the store's."""
    played = requeued({LoadParked: FoundParked(sent_at(time), '"7"', AT)})
    assert played.result.outcome == (refused or "sent")
    assert len(played.all(Publish)) == len(played.all(Unpark)) == (refused is None)


STEPS = pytest.mark.parametrize("step", [requeued, renewed], ids=["requeue", "renew"])


@STEPS
def test_one_that_is_not_parked_is_reported(step: Callable[..., Played]) -> None:
    played = step({})
    assert (played.kinds, played.result.outcome, played.result.memory) == ([LoadParked], "not parked", MEMORY)


@STEPS
@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_one_that_cannot_be_read_is_tried_again(step: Callable[..., Played], reply: NoAnswer) -> None:
    assert step({LoadParked: reply}).again.reason


def test_one_that_may_not_have_been_sent_stays_parked() -> None:
    played = requeued({LoadParked: FOUND, Publish: UNKNOWN})
    assert played.kinds == [LoadParked, Publish]
    assert played.again.reason


def test_one_that_is_no_envelope_is_damaged_and_not_quoted() -> None:
    damaged = replace(PARKED, envelope=Json.of({"secret": "sEcReT"}))
    with pytest.raises(DamagedDocument, match=r"web/m-9 cannot be read.*discard") as caught:
        requeued({LoadParked: FoundParked(damaged, '"7"', AT)})
    assert "sEcReT" not in str(caught.value)


def test_a_note_is_left_of_one_that_was_sent_for_as_long_as_it_is_asked_for() -> None:
    played = Script().play(requeue(ENTITY, "web/m-9", "accounts", a_week, MEMORY, noted=77), {LoadParked: FOUND})
    assert played.only(Unpark).seconds == 77


@pytest.mark.parametrize(("stable", "outcome"), [(AT, "sent"), (AT - WEEK - SECOND, "too old")])
def test_one_that_carries_a_stable_time_is_judged_by_that_and_keeps_it(stable: datetime, outcome: str) -> None:
    timed = replace(POISON, time=AT - WEEK / 2).with_stable_time(milliseconds(stable))
    parked = replace(PARKED, envelope=timed.to_json())
    played = requeued({LoadParked: FoundParked(parked, '"7"', AT)})
    assert played.result.outcome == outcome
    for output in (item for publish in played.all(Publish) for item in publish.outputs):
        assert Envelope.read(output.envelope.text).since == milliseconds(stable)


def arrived(publish: Publish, sent: list[Envelope]) -> SendReply:
    """Sending arrives."""
    sent += (Envelope.read(output.envelope.text) for output in publish.outputs)
    return PUBLISHED


class TestAsANewMessage:
    @pytest.mark.parametrize(("time", "refused"), AGES)
    def test_only_what_would_be_refused_becomes_one(self, time: datetime | None, refused: str | None) -> None:
        played = renewed({LoadParked: FoundParked(sent_at(time), '"7"', AT), Park: Written("0:-1#6")})
        assert played.kinds == [LoadParked, *([Park] if refused else [])]
        if refused is None:
            assert played.result == Renewed("not needed", MEMORY)
        else:
            assert played.only(Park) == Park(ENTITY, replace(sent_at(time), renewed=AT))
            assert played.result == Renewed("renewed", replace(MEMORY, library_token="0:-1#6"))

    @pytest.mark.parametrize("days", [1.5, 8, 15.5, 400])
    def test_one_that_was_parked_by_a_clock_days_ahead_gets_times_that_are_over_and_one_as_long_as_it_is_taken(
        self, days: float
    ) -> None:
        times, now = list[datetime](), AT - timedelta(days=days)
        while now <= AT + WEEK:
            found = FoundParked(sent_at(None), '"7"', now)
            time = renewed({LoadParked: found, Park: Written("0:-1#6")}).only(Park).message.renewed
            assert time is not None
            assert now - WEEK <= time <= (AT if AT - now < timedelta(days=1) else now)
            if times and time != times[-1]:
                assert now - times[-1] > WEEK, "the receiver takes the one before no longer"
            times.append(time)
            now += timedelta(hours=6)
        assert times[-1] == AT

    def test_one_that_is_renewed_again_after_a_restore_is_a_copy_of_the_same_message(self) -> None:
        clock, sent = ManualClock(AT), list[Envelope]()
        for days in (1, 6, 1):  # The third time it is too old to be the same.
            clock.advance(timedelta(days=days).total_seconds())
            store = MemoryStore(clock.now)
            store.perform(Park(ENTITY, sent_at(AT - 2 * WEEK)))
            driver = BlockingDriver(store, lambda publish: arrived(publish, sent), Runtime())
            driver.run(renew(ENTITY, "web/m-9", a_week, Memory()))
            driver.run(requeue(ENTITY, "web/m-9", "accounts", a_week, Memory()))
        first, second, third = ((item.id, item.since) for item in sent)
        assert first == second
        assert first[0] != third[0]
        assert first[1] != third[1]

    def test_one_that_was_made_a_new_message_before_stays_the_same(self) -> None:
        before = replace(sent_at(AT - 2 * WEEK), renewed=AT)
        played = renewed({LoadParked: FoundParked(before, '"7"', AT + WEEK)})
        assert (played.kinds, played.result) == ([LoadParked], Renewed("renewed", MEMORY))

    def test_a_receiver_that_never_forgets_takes_it_as_it_is(self) -> None:
        played = renewed({LoadParked: FoundParked(sent_at(AT - 100 * WEEK), '"7"', AT)}, limit=no_limit)
        assert played.result == Renewed("not needed", MEMORY)

    def test_what_may_not_be_written_is_not_sent(self) -> None:
        played = renewed({LoadParked: FoundParked(sent_at(None), '"7"', AT), Park: UNKNOWN})
        assert played.again.reason

    def test_it_has_another_id_and_time_and_comes_from_where_it_came(self) -> None:
        new = replace(sent_at(AT - 2 * WEEK), renewed=AT)
        played = requeued({LoadParked: FoundParked(new, '"7"', AT + WEEK)})
        (output,) = played.only(Publish).outputs
        sent = Envelope.read(output.envelope.text)
        assert (sent.source, sent.type, sent.data, sent.requeued) == (POISON.source, POISON.type, POISON.data, 1)
        assert (sent.time, sent.since) == (AT, milliseconds(AT)), "all its copies have this time"
        assert sent.id == output.id == "3c964fd3-044b-50a5-ba72-1a2f370b0140" != POISON.id
        assert played.result.sent == played.only(Unpark).sent == f"web/{sent.id}"


ABSENT = accounts().shape.tombstone(ENTITY)
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})
NAMED = kept_by(tx(1))


def keeping(before: Before, envelope: Envelope) -> Handled:
    """A handler that keeps a message, and sends nothing."""
    id = f"{envelope.id}-{before.tx}"
    return Handled(FOREIGN, kept=((AT + timedelta(days=9), Output(id, "receipts", deposit(id).to_json())),))


def staging(*numbers: int) -> Script:
    """An entity whose ledger names a staged document for each of these messages: tx-1 and so on."""
    script = Script()
    for number in numbers:
        script.play(attempt(Outbox(), deposit(f"m-{number}"), handle=keeping))
    return script


def cleaned(script: Script, *candidates: str, replies: dict[Any, Any] | None = None) -> Played:
    return script.play(clean_staged(ENTITY, candidates, ABSENT, Memory()), replies)


def test_the_fence_comes_before_the_deletion_and_changes_nothing() -> None:
    script = staging(1)
    before = script.document
    played = cleaned(script, "tx-7", "tx-8")
    assert played.kinds == [LoadEntity, SaveEntity, DeleteStaged]
    assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (before, '"2"')
    assert played.only(DeleteStaged) == DeleteStaged(ENTITY, ("tx-7", "tx-8"))
    assert played.result == Cleaned(("tx-7", "tx-8"), Memory(entity_token="0:-1#2"))


def test_a_blob_that_a_kept_message_names_stays() -> None:
    played = cleaned(staging(1, 2), NAMED, "tx-7", kept_by(tx(2)))
    assert played.only(DeleteStaged).transactions == ("tx-7",)
    assert played.result.transactions == ("tx-7",)


def test_an_absent_entity_is_fenced_by_a_tombstone_that_a_late_create_fails_on(script: Script) -> None:
    assert cleaned(script, "tx-7").kinds == [LoadEntity, SaveEntity, DeleteStaged]
    assert script.document == entity_document(ABSENT, Ledger(type="account", entity=ENTITY.key, deleted=True))


@pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200"), Conflict(None)])
def test_without_the_fence_nothing_is_deleted(reply: Any) -> None:
    played = cleaned(staging(1), "tx-7", replies={SaveEntity: reply})
    assert played.kinds == [LoadEntity, SaveEntity]
    assert played.again.reason


def test_pages_are_deleted_as_they_were_read_and_nothing_else_is_asked() -> None:
    played = Script().play(Outbox().clean(ENTITY, (("0", '"1"'), ("33", '"2"')), Memory()))
    assert played.effects == (DeletePages(ENTITY, ((0, '"1"'), (33, '"2"'))),)
    assert Script().play(Outbox().clean(ENTITY, (), Memory())).effects == ()


@pytest.mark.parametrize("candidates", [(), (NAMED,), (kept_by(tx(2)), NAMED)])
def test_where_nothing_is_left_to_delete_nothing_is_fenced(candidates: tuple[str, ...]) -> None:
    played = cleaned(staging(1, 2), *candidates)
    assert played.kinds == [LoadEntity]
    assert played.result == Cleaned((), Memory(entity_token="0:-1#2"))
