"""Sending from outside of handlers: the time of a message, its session, and the errors of its sender."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce import Destination, Envelope, TryAgainLater
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.handling.routes import Routes
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.wiring import Sender
from exactlyonce.records.outbox import RECEIVER
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.testing.world import ManualClock
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import milliseconds
from tests.samples import Deposit


def sender(transport: MemoryTransport, clock: ManualClock) -> Sender:
    publisher = Publisher({"accounts": Address(transport, "accounts")})
    routes = Routes.to((Destination("accounts"),), publisher.limits)
    return Sender(publisher, routes, ClaimChecks(None), Runtime(clock))


async def test_repeated_sends_carry_the_given_time() -> None:
    transport, clock = MemoryTransport(), ManualClock()
    first = clock.now()
    for time in (None, first, first.astimezone(timezone(timedelta(hours=2)))):
        await sender(transport, clock).send("accounts", Deposit("a"), "m-1", "web", time)
        clock.advance(3600)
    sent = [Envelope.read(output.envelope.text) for output in transport.queues["accounts"]]
    assert [envelope.time for envelope in sent] == [first] * 3


async def test_a_destination_with_a_stable_time_needs_it_and_promises_it() -> None:
    transport, clock = MemoryTransport(), ManualClock()
    publisher = Publisher({"accounts": Address(transport, "accounts")})
    routes = Routes.to((Destination("accounts", stable_time=True),), publisher.limits)
    promising = Sender(publisher, routes, ClaimChecks(None), Runtime(clock))
    with pytest.raises(ValueError, match=r"web/m-1 for 'accounts' has no time=\."):
        await promising.send("accounts", Deposit("a"), "m-1", "web")
    assert not transport.queues.get("accounts")
    await promising.send("accounts", Deposit("a"), "m-1", "web", clock.now() + timedelta(microseconds=1_999))
    await sender(transport, clock).send("accounts", Deposit("a"), "m-1", "web", clock.now())
    promised, plain = (Envelope.read(output.envelope.text) for output in transport.queues["accounts"])
    assert (promised.since, plain.since) == (milliseconds(clock.now()) + 1, None)


async def test_a_time_without_its_zone_is_refused_and_nothing_is_sent() -> None:
    transport = MemoryTransport()
    with pytest.raises(ValueError, match="web/m-1 has no time zone"):
        await sender(transport, ManualClock()).send("accounts", Deposit("a"), "m-1", "web", datetime(2026, 1, 1))  # noqa: DTZ001
    assert not transport.queues.get("accounts")


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrives", "it is lost"])
async def test_without_a_reply_the_error_says_to_send_again(arrives: bool) -> None:
    transport, answered = MemoryTransport(outcome=lambda _: (arrives, False)), MemoryTransport()
    with pytest.raises(TryAgainLater, match=r"web/m-1 may not have been sent. Send it again under the same id"):
        await sender(transport, ManualClock()).send("accounts", Deposit("a"), "m-1", "web")
    assert len(transport.queues["accounts"]) == arrives
    await sender(answered, ManualClock()).send("accounts", Deposit("a"), "m-1", "web")
    assert len(answered.queues["accounts"]) == 1


@pytest.mark.parametrize("padding", [10, 5_000], ids=["by itself", "by reference"])
async def test_a_message_keeps_its_session_however_its_data_travels(padding: int) -> None:
    transport, blobs = MemoryTransport(max_bytes=1_000), MemoryBlobs()
    claims = ClaimChecks(AwaitedBlobs(blobs))
    publisher = Publisher({name: Address(transport, name) for name in ("accounts", "archive")})
    destinations = (Destination("accounts", session_by=lambda message: message.account), Destination("archive"))
    routes = Routes.to(destinations, publisher.limits, blobs="memory://blobs")
    by_session = Sender(publisher, routes, claims, Runtime(ManualClock()))
    message = Deposit("a-7", padding="x" * padding)
    for name in ("accounts", "archive"):
        await by_session.send(name, message, "m-1", "web")
    [in_session], [without] = transport.queues["accounts"], transport.queues["archive"]
    assert in_session.envelope.value[RECEIVER] == "a-7"
    assert RECEIVER not in without.envelope.value
    assert bool(blobs.written) is (padding > 1_000)
    with pytest.raises(ValueError, match="session"):
        await by_session.send("accounts", Deposit(""), "m-2", "web")
