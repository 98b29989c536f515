"""The transport over Service Bus does what every transport has to do; on the local endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusReceivedMessage, ServiceBusReceiveMode
from azure.servicebus.aio import ServiceBusClient

from devtools.servicebus_endpoint.faults import FaultRule
from devtools.servicebus_endpoint.topology import Queue, Subscription, Topic, Topology
from exactlyonce import ConfigurationError, Destination, Envelope
from exactlyonce.effects import PUBLISHED, UNKNOWN
from exactlyonce.frozen_json import Json
from exactlyonce.invariants import violations
from exactlyonce.numbering import PARTITION_KEY
from exactlyonce.records import Output
from exactlyonce.testing.transport_contract import TransportContract
from exactlyonce.testing.world import World
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.transports.service_bus import ServiceBusTransport
from exactlyonce.transports.service_bus_binding import read
from tests.samples import accounts, deposit
from tests.servicebus import collected, content_of, endpoint  # noqa: F401  # A fixture.

if TYPE_CHECKING:
    from devtools.servicebus_endpoint.inprocess import RunningEndpoint

pytestmark = [
    # The SDK forgets the sockets of connections that were cut, and leaves them to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.usefixtures("collected"),
]

MANY = 50
"""Of each kind: a test takes its own."""
MODE = ServiceBusReceiveMode.RECEIVE_AND_DELETE
PATIENCE = 0.01
"""Seconds that the SDK waits for a frame before it looks for something else to do."""


@pytest.fixture(scope="module")
def running() -> Iterator[RunningEndpoint]:
    every = range(MANY)
    topology = Topology(
        queues=(
            *(Queue(f"queue-{number}") for number in every),
            *(Queue(f"sessions-{number}", requires_session=True) for number in every),
            *(Queue(f"remembering-{number}", duplicate_window=600.0) for number in every),
            Queue("small", max_bytes=40_000),
        ),
        topics=tuple(Topic(f"topic-{number}", (Subscription("all"),)) for number in every),
    )
    with endpoint(topology) as found:
        yield found


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return iter(range(MANY))


@pytest.fixture
def bus(running: RunningEndpoint) -> Iterator[RunningEndpoint]:
    """The endpoint, without faults before and after."""
    running.clear_faults()
    yield running
    running.clear_faults()


@pytest.fixture
async def transport(bus: RunningEndpoint) -> AsyncIterator[ServiceBusTransport]:
    transport = ServiceBusTransport(bus.connection_string)
    yield transport
    await transport.close()


@pytest.fixture
def number(numbers: Iterator[int]) -> int:
    return next(numbers)


class Received:
    """What consumers of the endpoint get."""

    def __init__(self, bus: RunningEndpoint) -> None:
        self._bus = bus

    async def all(self, address: str) -> list[ServiceBusReceivedMessage]:
        """Everything that is in a queue, or in the subscription of a topic."""
        topic = address.startswith("topic-")
        wanted = self._bus.counts(f"{address}/Subscriptions/all" if topic else address).active
        found: list[ServiceBusReceivedMessage] = []
        async with ServiceBusClient.from_connection_string(self._bus.connection_string) as client:
            if topic:
                receiver = client.get_subscription_receiver(address, "all", receive_mode=MODE, socket_timeout=PATIENCE)
            else:
                receiver = client.get_queue_receiver(address, receive_mode=MODE, socket_timeout=PATIENCE)
            async with receiver:
                while len(found) < wanted:
                    found += await receiver.receive_messages(max_message_count=wanted - len(found), max_wait_time=5)
        return found

    async def session(self, address: str) -> tuple[str, list[str]]:
        """The next session, and the ids of its messages."""
        client = ServiceBusClient.from_connection_string(self._bus.connection_string)
        receiver = client.get_queue_receiver(
            address, session_id=NEXT_AVAILABLE_SESSION, receive_mode=MODE, socket_timeout=PATIENCE
        )
        async with client, receiver:
            found = await receiver.receive_messages(max_message_count=10, max_wait_time=0.3)
            return str(receiver.session.session_id), [str(one.message_id) for one in found]


@pytest.fixture
def received(bus: RunningEndpoint) -> Received:
    return Received(bus)


class TestServiceBusTransport(TransportContract):
    @pytest.fixture
    def transport(self, transport: ServiceBusTransport) -> AsyncTransport:
        return transport

    @pytest.fixture(autouse=True)
    def _bus(self, bus: RunningEndpoint, received: Received, numbers: Iterator[int]) -> None:
        self._running, self._received, self._numbers = bus, received, numbers

    def address(self) -> str:
        return f"queue-{next(self._numbers)}"

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        return [Json(read(content_of(one)).decode()) for one in await self._received.all(address)]

    @contextmanager
    def unanswered(self, transport: AsyncTransport) -> Iterator[None]:
        self._running.add_fault(FaultRule(operation="send", action="cut_after", times=None))
        yield
        self._running.clear_faults()


async def test_a_topic_is_sent_to_as_a_queue_is(
    transport: ServiceBusTransport, received: Received, number: int
) -> None:
    outputs = _output(), _output()
    assert await transport.send(f"topic-{number}", outputs) is PUBLISHED
    assert {one.message_id for one in await received.all(f"topic-{number}")} == {one.id for one in outputs}


async def test_a_message_is_a_cloud_event_in_binary_mode_under_the_id_of_its_output(
    transport: ServiceBusTransport, received: Received, number: int
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    envelope = deposit("m-1").with_trace((("traceparent", trace),))
    assert await transport.send(f"queue-{number}", (Output("o-1", "receipts", envelope.to_json()),)) is PUBLISHED
    [message] = await received.all(f"queue-{number}")
    content = content_of(message)
    assert (message.message_id, content.type) == ("o-1", "application/json")
    assert content.properties["cloudEvents:id"] == "m-1"
    assert content.properties["cloudEvents:traceparent"] == trace
    assert Json(content.body.decode()) == envelope.data
    assert Envelope.read(read(content)) == envelope


async def test_a_message_lives_for_the_delivery_limit(bus: RunningEndpoint, received: Received, number: int) -> None:
    transport = ServiceBusTransport(bus.connection_string, delivery_limit=timedelta(hours=3))
    assert await transport.send(f"queue-{number}", (_output(),)) is PUBLISHED
    await transport.close()
    [message] = await received.all(f"queue-{number}")
    assert message.time_to_live == timedelta(hours=3)


async def test_a_delayed_message_appears_later(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    queue = f"queue-{number}"
    assert await transport.send(queue, (_output(), _output(delay=3600.0))) is PUBLISHED
    assert (bus.counts(queue).active, bus.counts(queue).scheduled) == (1, 1)
    bus.advance_clock(3601)
    assert (bus.counts(queue).active, bus.counts(queue).scheduled) == (2, 0)


async def test_more_than_fits_one_batch_goes_in_several(
    transport: ServiceBusTransport, received: Received, number: int
) -> None:
    outputs = tuple(_output(text="x" * 60_000) for _ in range(10))
    assert await transport.send(f"queue-{number}", outputs) is PUBLISHED
    assert {one.message_id for one in await received.all(f"queue-{number}")} == {one.id for one in outputs}


async def test_the_messages_of_one_entity_are_one_session_and_one_that_names_none_has_its_own(
    transport: ServiceBusTransport, received: Received, number: int
) -> None:
    address, outputs = f"sessions-{number}", (_output(session="g-1"), _output(session="g-1"), _output())
    assert await transport.send(address, outputs) is PUBLISHED
    found = dict([await received.session(address), await received.session(address)])
    assert found == {"g-1": [outputs[0].id, outputs[1].id], outputs[2].id: [outputs[2].id]}


async def test_a_broker_that_remembers_ids_drops_the_copies(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    output = _output()
    bus.add_fault(FaultRule(operation="send", action="cut_after"))
    assert await transport.send(f"remembering-{number}", (output,)) is PUBLISHED
    assert await transport.send(f"remembering-{number}", (output,)) is PUBLISHED
    assert bus.counts(f"remembering-{number}").active == 1


async def test_a_send_that_raises_although_it_was_enqueued_has_no_second_effect_downstream(
    bus: RunningEndpoint, transport: ServiceBusTransport, received: Received, number: int
) -> None:
    queue, message = f"queue-{number}", Output("o-1", "deposits", deposit("m-1").to_json())
    bus.add_fault(FaultRule(operation="send", action="cut_after", times=None))
    assert await transport.send(queue, (message,)) is UNKNOWN
    bus.clear_faults()
    assert await transport.send(queue, (message,)) is PUBLISHED
    world = World((Destination("receipts"),))
    process = world.process()
    copies = await received.all(queue)
    for copy in copies:
        await process.deliver(accounts(), Envelope.read(read(content_of(copy))))
    await process.close()
    assert len(copies) > 1
    assert violations(world.facts(), drained=True) == ()
    assert {commit.version for commit in world.facts().commits} == {1}


async def test_after_its_connections_were_cut_it_connects_again(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    for count in (1, 2, 3):
        assert await transport.send(f"queue-{number}", (_output(),)) is PUBLISHED
        assert bus.counts(f"queue-{number}").active == count
        bus.drop_connections()


async def test_a_transport_that_was_closed_opens_again(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    for _ in range(2):
        assert await transport.send(f"queue-{number}", (_output(),)) is PUBLISHED
        await transport.close()
        await transport.close()
    assert bus.counts(f"queue-{number}").active == 2


async def test_what_is_sent_meanwhile_shares_the_next_batch(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    outputs = [_output() for _ in range(30)]
    replies = await asyncio.gather(*(transport.send(f"queue-{number}", (one,)) for one in outputs))
    assert set(replies) == {PUBLISHED}
    assert bus.counts(f"queue-{number}").active == 30


async def test_a_message_that_the_queue_does_not_take_keeps_no_other_from_it(
    bus: RunningEndpoint, transport: ServiceBusTransport
) -> None:
    sends = (_output(), _output(text="x" * 60_000), _output())
    replies = await asyncio.gather(*(transport.send("small", (one,)) for one in sends))
    assert replies == [PUBLISHED, UNKNOWN, PUBLISHED]
    assert bus.counts("small").active >= 2


async def test_all_that_is_wrong_with_a_namespace_is_told_at_once(bus: RunningEndpoint) -> None:
    transport = ServiceBusTransport(bus.connection_string, message_bytes=1024 * 1024)
    with pytest.raises(ConfigurationError) as told:
        await transport.verify(["queue-0", "absent"])
    await transport.close()
    assert "no queue and no topic 'absent'" in str(told.value)
    assert "'queue-0' takes messages of 262144 bytes" in str(told.value)
    assert str(told.value).count("\n- ") == 2


async def test_a_namespace_that_is_as_it_has_to_be_passes_and_nothing_is_sent(
    bus: RunningEndpoint, transport: ServiceBusTransport, number: int
) -> None:
    await transport.verify([f"queue-{number}", "topic-0", "sessions-0"])
    assert bus.counts(f"queue-{number}").active == 0


async def test_a_wrong_key_is_told_without_it(bus: RunningEndpoint) -> None:
    transport = ServiceBusTransport(bus.connection_string.replace("SharedAccessKey=", "SharedAccessKey=wrong"))
    with pytest.raises(ConfigurationError, match="check its key") as told:
        await transport.verify(["queue-0"])
    await transport.close()
    assert "wrong" not in str(told.value)


def _output(*, delay: float = 0.0, session: str | None = None, text: str = "ÄÖÜ") -> Output:
    id = uuid4().hex
    attributes = {} if session is None else {PARTITION_KEY: session}
    return Output(id, "receipts", Json.of({"id": id, **attributes, "data": {"text": text}}), delay)
