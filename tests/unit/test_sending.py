"""Sending from outside of any handler: the time that a message carries."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce import Destination, Envelope
from exactlyonce.drivers.publishing import Address, Publisher
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.handling.routes import Routes
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.sending import Sender
from exactlyonce.testing.chance import ManualClock
from exactlyonce.transports.memory import MemoryTransport
from tests.samples import Deposit


def sender(transport: MemoryTransport, clock: ManualClock) -> Sender:
    publisher = Publisher({"accounts": Address(transport, "accounts")})
    routes = Routes.to((Destination("accounts"),), publisher.limits)
    return Sender(publisher, routes, ClaimChecks(None), Surroundings(clock))


async def test_repetitions_carry_the_time_of_the_first_if_the_caller_gives_it() -> None:
    transport, clock = MemoryTransport(), ManualClock()
    first = clock.now()
    for time in (None, first, first.astimezone(timezone(timedelta(hours=2)))):
        await sender(transport, clock).send("accounts", Deposit("a"), "m-1", "web", time)
        clock.advance(3600)
    sent = [Envelope.read(output.envelope.text) for output in transport.queues["accounts"]]
    assert [envelope.time for envelope in sent] == [first] * 3


async def test_a_time_without_its_zone_is_refused_and_nothing_is_sent() -> None:
    transport = MemoryTransport()
    with pytest.raises(ValueError, match="web/m-1 has no time zone"):
        await sender(transport, ManualClock()).send("accounts", Deposit("a"), "m-1", "web", datetime(2026, 1, 1))  # noqa: DTZ001
    assert not transport.queues.get("accounts")
