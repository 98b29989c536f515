"""Sending a parked message again: in which order, when not, and as a new message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from exactlyonce import Envelope
from exactlyonce.attempt import Memory
from exactlyonce.drivers.driver import BlockingDriver
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked, Park, Unpark, Written
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.steps.park import Renewed, Requeued, renew, requeue
from exactlyonce.records.library import ParkedMessage, Unparked, library_document
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import milliseconds
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.script import AT, ENTITY, Played, Script

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


@pytest.mark.parametrize("time", [None, AT - 100 * WEEK])
def test_a_receiver_that_never_forgets_is_sent_a_message_of_any_age(time: datetime | None) -> None:
    played = requeued({LoadParked: FoundParked(sent_at(time), '"7"', AT)}, limit=no_limit)
    assert played.result.outcome == "sent"


def test_one_that_is_not_parked_is_reported() -> None:
    played = requeued({})
    assert played.kinds == [LoadParked]
    assert played.result.outcome == "not parked"


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_one_that_cannot_be_read_is_tried_again(reply: NoAnswer) -> None:
    assert requeued({LoadParked: reply}).again.reason


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
    store = MemoryStore(lambda: AT)
    store.perform(Park(ENTITY, PARKED))
    asked = Script().play(requeue(ENTITY, "web/m-9", "accounts", a_week, MEMORY, noted=77), {LoadParked: FOUND})
    assert asked.only(Unpark).seconds == 77
    BlockingDriver(store, lambda _: PUBLISHED, Runtime()).run(requeue(ENTITY, "web/m-9", "accounts", a_week, Memory()))
    assert store.perform(LoadParked(ENTITY, "web/m-9")) == FoundParked(None, None, None)
    (left,) = (version.document for version in store.library[ENTITY.key].view(2).values())
    assert left is not None
    assert left.value == library_document(Unparked(ENTITY.key, "web/m-9", "web/m-9"))


@pytest.mark.parametrize(("stable", "outcome"), [(AT, "sent"), (AT - WEEK - SECOND, "too old")])
def test_one_that_carries_a_stable_time_is_judged_by_that_and_keeps_it(stable: datetime, outcome: str) -> None:
    timed = replace(POISON, time=AT - WEEK / 2).with_stable_time(milliseconds(stable))
    parked = replace(PARKED, envelope=timed.to_json())
    played = requeued({LoadParked: FoundParked(parked, '"7"', AT)})
    assert played.result.outcome == outcome
    for output in (item for publish in played.all(Publish) for item in publish.outputs):
        assert Envelope.read(output.envelope.text).since == milliseconds(stable)


def test_a_message_that_comes_back_while_it_is_requeued_stays_parked() -> None:
    """It was sent, failed once more and was parked anew before the requeuing came to its note."""
    store = MemoryStore(lambda: AT)
    store.perform(Park(ENTITY, PARKED))

    def comes_back(_: Publish) -> SendReply:
        store.perform(Park(ENTITY, replace(PARKED, reason="it failed again")))
        return PUBLISHED

    driver = BlockingDriver(store, comes_back, Runtime())
    assert driver.run(requeue(ENTITY, "web/m-9", "accounts", a_week, Memory())) == Requeued("sent", Memory(), "web/m-9")
    found = store.perform(LoadParked(ENTITY, "web/m-9"))
    assert isinstance(found, FoundParked)
    assert found.message is not None
    assert found.message.reason == "it failed again"


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

    @pytest.mark.parametrize(
        ("passed", "time"),
        [
            (-SECOND, AT),
            (timedelta(0), AT),
            (WEEK, AT),
            (WEEK + SECOND, AT + WEEK),
            (2 * WEEK, AT + WEEK),
            (2 * WEEK + SECOND, AT + 2 * WEEK),
        ],
        ids=str,
    )
    def test_its_time_is_the_first_since_it_was_parked_that_a_receiver_takes(
        self, passed: timedelta, time: datetime
    ) -> None:
        played = renewed({LoadParked: FoundParked(sent_at(None), '"7"', AT + passed), Park: Written("0:-1#6")})
        assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#0")
        assert played.only(Park).message == replace(sent_at(None), renewed=time)
        assert (
            requeued({LoadParked: FoundParked(played.only(Park).message, '"8"', AT + passed)}).result.outcome == "sent"
        )

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

    def test_one_that_is_not_parked_is_reported(self) -> None:
        assert renewed({}).result == Renewed("not parked", MEMORY)

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_one_that_cannot_be_read_is_tried_again(self, reply: NoAnswer) -> None:
        assert renewed({LoadParked: reply}).again.reason

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

    def test_a_second_requeue_after_a_crash_sends_a_copy_with_the_same_identity_and_time(self) -> None:
        clock = ManualClock(AT)
        store = MemoryStore(clock.now)
        store.perform(Park(ENTITY, sent_at(AT - 2 * WEEK)))
        sent: list[Json] = []

        def crashes(publish: Publish) -> SendReply:
            sent.extend(output.envelope for output in publish.outputs)
            return UNKNOWN

        for _ in range(2):
            driver = BlockingDriver(store, crashes, Runtime())
            driver.run(renew(ENTITY, "web/m-9", a_week, Memory()))
            driver.run(requeue(ENTITY, "web/m-9", "accounts", a_week, Memory()))
            clock.advance(WEEK.total_seconds())
        assert sent[0] == sent[1]
        clock.advance(1)
        driver.run(renew(ENTITY, "web/m-9", a_week, Memory()))
        driver.run(requeue(ENTITY, "web/m-9", "accounts", a_week, Memory()))
        late, first = Envelope.read(sent[2].text), Envelope.read(sent[0].text)
        assert late.time == AT + 2 * WEEK
        assert late.id != first.id, "the first may have been processed so long ago that it is forgotten"
