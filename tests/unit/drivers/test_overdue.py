"""Outputs that can be published no more: they are parked with their envelopes, and no longer owed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce.drivers.driver import AsyncDriver
from exactlyonce.drivers.overdue import divided, place_of
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import UNKNOWN, Awaited
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import FoundParked, LoadParked
from exactlyonce.records.ledger import CALL_TYPE
from exactlyonce.records.outbox import Output, Place
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import STABLE_TIME, Envelope, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.unit.drivers.waiting import ENTITY

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
LIFETIMES = Lifetimes()
LIMIT = LIFETIMES.send_limit(AT)


def an_output(
    id: str = "o-1", destination: str = "receipts", at: datetime = AT, since: datetime | None = None
) -> Output:
    extensions = () if since is None else ((STABLE_TIME, stable_text(milliseconds(since))),)
    envelope = Envelope("account/a", id, "account.deposited", Json("{}"), time=at, extensions=extensions)
    return Output(id, destination, envelope.to_json())


def parked(*outputs: Output, now: datetime, destinations: tuple[str, ...] = ("receipts",)) -> list[str]:
    """Which of the outputs are parked."""
    owed = Publish(outputs, ENTITY)
    return [item.message.message for item in divided(owed, LIFETIMES, now, destinations)[1]]


def test_outputs_of_a_commit_of_this_moment_are_published_whatever_they_are() -> None:
    outputs = (an_output(), an_output("o-2", "gone"))
    assert divided(Publish(outputs), LIFETIMES, AT + 100 * DAY, ()) == (outputs, ())


def test_an_output_that_was_owed_for_too_long_is_parked() -> None:
    assert parked(an_output(), now=AT + LIMIT) == []
    assert parked(an_output(), an_output("o-2", at=AT + DAY), now=AT + LIMIT + DAY / 2) == ["account%2Fa/o-1"]


def test_an_output_is_judged_by_the_time_by_which_its_receiver_judges_it() -> None:
    """The attempt that committed it may have been later than what caused it."""
    old = an_output(since=AT - DAY)
    assert parked(old, now=AT + LIMIT - DAY) == []
    assert parked(old, now=AT + LIMIT - DAY / 2) == ["account%2Fa/o-1"]


def test_numbered_outputs_and_calls_have_no_age() -> None:
    numbered = replace(an_output(), place=Place("c", "account/a", 1))
    call = Envelope("account/a", "o-2", CALL_TYPE, Json("{}"), time=AT)
    outputs = (numbered, Output("o-2", "receipts", call.to_json()))
    assert parked(*outputs, now=AT + 1_000 * DAY) == []
    assert len(parked(*outputs, now=AT + 1_000 * DAY, destinations=())) == 2


@pytest.mark.parametrize(("days", "parks"), [(7, False), (8, True)])
def test_an_output_whose_destination_is_gone_waits_for_the_delivery_limit(days: int, parks: bool) -> None:
    gone, other = an_output("o-1", "gone"), an_output("o-2")
    kept, parks_these = divided(Publish((gone, other), ENTITY), LIFETIMES, AT + days * DAY, ("receipts",))
    assert kept == ((other,) if parks else (gone, other))
    for item in parks_these:
        assert (item.entity, item.message.envelope, item.message.destination) == (
            place_of(ENTITY),
            gone.envelope,
            "gone",
        )
        assert item.message.reason == (
            "committed by account/a at 2026-01-01T00:00:00Z, more than 7 days, 0:00:00 ago, for gone, which is no longer a "
            "destination of this application"
        )


async def test_an_output_to_a_destination_that_is_gone_is_paid_in_the_end() -> None:
    clock, transport = ManualClock(AT), MemoryTransport()
    store = MemoryStore(clock.now)
    driver = AsyncDriver(Awaited(store), Publisher({"receipts": Address(transport, "receipts")}), Runtime(clock))
    owed = Publish((an_output("o-1", "gone"), an_output("o-2")), ENTITY)
    assert await driver.run(iter(owed)) is UNKNOWN
    assert [output.id for output in transport.queues["receipts"]] == ["o-2"]
    clock.advance(8 * 86_400)
    assert await driver.run(iter(owed)) is PUBLISHED
    found = store.perform(LoadParked(place_of(ENTITY), "account%2Fa/o-1"))
    assert isinstance(found, FoundParked)
    assert found.message is not None
    assert found.message.destination == "gone"
