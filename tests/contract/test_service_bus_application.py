"""An application on Service Bus: what stops its start, what it sends again, and completes that nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from exactlyonce import Destination, Envelope
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.records.outbox import Output
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from exactlyonce.transports.service_bus.binding import read
from exactlyonce.transports.service_bus.sender import ServiceBusTransport
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator
from local_service_bus.faults import FaultRule
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology
from tests.contract.starting import GAMES, WRONG_KEY, start
from tests.contract.test_start_up import created, problems_of_the_accounts
from tests.samples import accounts, deposit
from tests.servicebus import collected, content_of  # noqa: F401  # A fixture.
from tests.unit.bus import delivered

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

LOCK = 61
"""Seconds after which a lock of the endpoint is over."""

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.usefixtures("collected")]


@pytest.fixture(scope="module")
def bus() -> Iterator[RunningEndpoint]:
    with endpoint(Topology((Queue("receipts", duplicate_window=600.0), Queue("deposits")))) as running:
        yield running


@pytest.fixture
def on_the_bus(environment: pytest.MonkeyPatch, bus: RunningEndpoint) -> pytest.MonkeyPatch:
    environment.delenv("AzureWebJobsStorage")
    environment.setenv("EXACTLYONCE__transport", "servicebus")
    environment.setenv("ServiceBus", bus.connection_string)
    return environment


async def test_a_queue_that_is_not_there_stops_it_and_is_reported_with_what_is_wrong_elsewhere(
    emulator: RunningEmulator, on_the_bus: pytest.MonkeyPatch
) -> None:
    async with created(emulator, on_the_bus):
        on_the_bus.setenv("COSMOS__accountKey", WRONG_KEY)
        on_the_bus.setenv("EXACTLYONCE__destinations", '{"receipts": "absent"}')
        problems = await problems_of_the_accounts()
    assert "Check the account key" in problems
    assert "no queue and no topic 'absent'" in problems


async def test_a_wrong_key_stops_it_and_is_reported_without_it(
    emulator: RunningEmulator, on_the_bus: pytest.MonkeyPatch, bus: RunningEndpoint
) -> None:
    async with created(emulator, on_the_bus):
        before, name, after = bus.connection_string.partition("SharedAccessKey=")
        on_the_bus.setenv("ServiceBus", f"{before}{name}{WRONG_KEY};{after.partition(';')[2]}")
        problems = await problems_of_the_accounts()
    assert "Service Bus refuses this application to send to 'receipts'" in problems
    assert WRONG_KEY not in problems


async def test_a_requeued_message_arrives_although_the_broker_remembers_its_id(
    emulator: RunningEmulator, on_the_bus: pytest.MonkeyPatch, bus: RunningEndpoint
) -> None:
    message = Envelope("web", "m-1", "game.of-another", Json.of({}), datetime.now(timezone.utc))
    async with created(emulator, on_the_bus):
        once = start()
        operator = await once.operator()
        for count in (1, 2):
            assert await once.settle(delivered(message), GAMES, queue="receipts") == "parked"
            requeued = await operator.requeue(aside_place(GAMES).key, "web/m-1", "receipts")
            assert requeued.outcome == "sent"
            assert bus.counts("receipts").active == count
        await once.close()


@pytest.mark.parametrize("action", ["cut_before", "cut_after", "lock_lost"])
async def test_a_complete_that_raises_whether_or_not_it_worked_gives_no_second_state_change(
    bus: RunningEndpoint, action: str
) -> None:
    transport = ServiceBusTransport(bus.connection_string)
    output = Output("o-1", "deposits", deposit("m-1").to_json())
    assert await transport.send("deposits", (output,)) is PUBLISHED
    await transport.close()
    world = World((Destination("receipts"),))
    bus.add_fault(FaultRule(operation="complete", action=action, times=None))
    assert not await _deliver(bus, world)
    bus.clear_faults()
    bus.advance_clock(LOCK)
    while bus.counts("deposits").active:
        await _deliver(bus, world)
    assert bus.counts("deposits").locked == 0
    assert violations(world.facts(), drained=True) == ()
    assert {commit.version for commit in world.facts().commits} - {None} == {1}


async def _deliver(bus: RunningEndpoint, world: World) -> bool:
    """Process what is there as a host does; whether completing it was answered."""
    process = world.process()
    client = ServiceBusClient.from_connection_string(bus.connection_string, retry_total=0)
    async with client, client.get_queue_receiver("deposits", socket_timeout=0.01) as receiver:
        (message,) = await receiver.receive_messages(max_message_count=1, max_wait_time=5)
        await process.deliver(accounts(), Envelope.read(read(content_of(message))))
        await process.close()
        try:
            await receiver.complete_message(message)
        except ServiceBusError:
            return False
    return True
