"""The transport over Service Bus does what every transport has to do; on the local endpoint."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import cycle
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import pytest_asyncio

from exactlyonce import ConfigurationError, Destination, Envelope
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import RECEIVER, Output
from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.transports.service_bus.binding import read
from exactlyonce.transports.service_bus.sender import ServiceBusTransport
from exactlyonce.values.frozen_json import Json
from local_service_bus.broker.refusals import DETACH_FORCED, TOO_LARGE, UNAUTHORIZED
from local_service_bus.faults import FaultRule
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Subscription, Topic, Topology
from tests.contract.consuming import Opened
from tests.samples import accounts, deposit
from tests.servicebus import content_of

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # The SDK forgets the sockets of connections that were cut, and leaves them to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

COPIES = 2
"""Queues that tests take in turn, since the SDK takes half a second to open a link."""
ENDINGS = (DETACH_FORCED, UNAUTHORIZED, TOO_LARGE)
"""With what a broker ends links."""


@pytest.fixture(scope="module")
def running() -> Iterator[RunningEndpoint]:
    every = range(COPIES)
    topology = Topology(
        queues=(
            *(Queue(f"queue-{number}") for number in every),
            Queue("sessions", requires_session=True),
            Queue("remembering", duplicate_window=600.0),
            *(Queue(f"idle-{condition}") for condition in ENDINGS),
            Queue("small", max_bytes=40_000),
        ),
        topics=(Topic("topic", (Subscription("all"),)),),
    )
    with endpoint(topology) as found:
        yield found


@pytest.fixture(scope="module")
def queues() -> Iterator[str]:
    """The names of queues, one after the other."""
    return cycle(f"queue-{number}" for number in range(COPIES))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(running: RunningEndpoint) -> AsyncIterator[Opened]:
    """The transport and the consumers of all tests."""
    opened = Opened(running)
    yield opened
    await opened.close()
    gc.collect()


@pytest_asyncio.fixture(loop_scope="module")
async def on(opened: Opened) -> AsyncIterator[Opened]:
    """The same, without faults before and after, and without messages."""
    opened.bus.clear_faults()
    await asyncio.gather(*(opened.all(f"queue-{number}") for number in range(COPIES)))
    yield opened
    opened.bus.clear_faults()


@pytest.fixture
def queue(queues: Iterator[str]) -> str:
    return next(queues)


class TestServiceBusTransport(TransportContract):
    @pytest.fixture
    def transport(self, on: Opened, queues: Iterator[str]) -> AsyncTransport:
        self._on, self._queues = on, queues
        return on.transport

    def address(self) -> str:
        return next(self._queues)

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        return [Json(read(content_of(item)).decode()) for item in await self._on.all(address)]

    @contextmanager
    def unanswered(self, transport: AsyncTransport) -> Iterator[None]:
        self._on.bus.add_fault(FaultRule(operation="send", action="cut_after", times=None))
        yield
        self._on.bus.clear_faults()


async def test_a_topic_is_sent_to_as_a_queue_is(on: Opened) -> None:
    outputs = _output(), _output()
    assert await on.transport.send("topic", outputs) is PUBLISHED
    assert {item.message_id for item in await on.all("topic")} == {output.id for output in outputs}


async def test_a_message_is_a_cloud_event_in_binary_mode_under_the_id_of_its_output(on: Opened, queue: str) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    envelope = deposit("m-1").with_trace((("traceparent", trace),))
    assert await on.transport.send(queue, (Output("o-1", "receipts", envelope.to_json()),)) is PUBLISHED
    [message] = await on.all(queue)
    content = content_of(message)
    assert (message.message_id, content.type) == ("o-1", "application/json")
    assert content.properties["cloudEvents:id"] == "m-1"
    assert content.properties["cloudEvents:traceparent"] == trace
    assert Json(content.body.decode()) == envelope.data
    assert Envelope.read(read(content)) == envelope


async def test_a_message_lives_for_the_delivery_limit(on: Opened, queue: str) -> None:
    transport = ServiceBusTransport(on.bus.connection_string, delivery_limit=timedelta(hours=3))
    assert await transport.send(queue, (_output(),)) is PUBLISHED
    await transport.close()
    [message] = await on.all(queue)
    assert message.time_to_live == timedelta(hours=3)


async def test_a_delayed_message_appears_later(on: Opened, queue: str) -> None:
    assert await on.transport.send(queue, (_output(), _output(delay=3600.0))) is PUBLISHED
    assert (on.bus.counts(queue).active, on.bus.counts(queue).scheduled) == (1, 1)
    on.bus.advance_clock(3601)
    assert (on.bus.counts(queue).active, on.bus.counts(queue).scheduled) == (2, 0)


async def test_more_than_fits_one_batch_goes_in_several(on: Opened, queue: str) -> None:
    outputs = tuple(_output(text="x" * 60_000) for _ in range(10))
    assert await on.transport.send(queue, outputs) is PUBLISHED
    assert {item.message_id for item in await on.all(queue)} == {output.id for output in outputs}


async def test_the_messages_of_one_entity_are_one_session_and_one_that_names_none_has_its_own(on: Opened) -> None:
    address, outputs = "sessions", (_output(session="g-1"), _output(session="g-1"), _output())
    assert await on.transport.send(address, outputs) is PUBLISHED
    found = dict(await asyncio.gather(on.session(address), on.session(address)))
    assert found == {"g-1": [outputs[0].id, outputs[1].id], outputs[2].id: [outputs[2].id]}


async def test_a_broker_that_remembers_ids_drops_the_copies(on: Opened) -> None:
    output = _output()
    on.bus.add_fault(FaultRule(operation="send", action="cut_after"))
    assert await on.transport.send("remembering", (output,)) is PUBLISHED
    assert await on.transport.send("remembering", (output,)) is PUBLISHED
    assert on.bus.counts("remembering").active == 1


async def test_a_send_that_raises_although_it_was_enqueued_has_no_second_effect_downstream(
    on: Opened, queue: str
) -> None:
    message = Output("o-1", "deposits", deposit("m-1").to_json())
    on.bus.add_fault(FaultRule(operation="send", action="cut_after", times=None))
    assert await on.transport.send(queue, (message,)) is UNKNOWN
    on.bus.clear_faults()
    assert await on.transport.send(queue, (message,)) is PUBLISHED
    world = World((Destination("receipts"),))
    process = world.process()
    copies = await on.all(queue)
    for copy in copies:
        await process.deliver(accounts(), Envelope.read(read(content_of(copy))))
    await process.close()
    assert len(copies) > 1
    assert violations(world.facts(), drained=True) == ()
    assert {commit.version for commit in world.facts().commits} - {None} == {1}


async def test_after_its_connections_were_cut_it_connects_again(on: Opened, queue: str) -> None:
    for count in (1, 2):
        assert await on.transport.send(queue, (_output(),)) is PUBLISHED
        assert on.bus.counts(queue).active == count
        on.bus.drop_connections()


async def test_links_that_the_broker_has_ended_meanwhile_cost_no_message(on: Opened) -> None:
    for number in (1, 2):
        replies = await asyncio.gather(*(on.transport.send(f"idle-{ending}", (_output(),)) for ending in ENDINGS))
        assert replies == [PUBLISHED] * len(ENDINGS)
        assert [on.bus.counts(f"idle-{ending}").active for ending in ENDINGS] == [number] * len(ENDINGS)
        for ending in ENDINGS:
            on.bus.detach_links(f"idle-{ending}", ending)


async def test_a_transport_that_was_closed_opens_again(on: Opened, queue: str) -> None:
    transport = ServiceBusTransport(on.bus.connection_string)
    for _ in range(2):
        assert await transport.send(queue, (_output(),)) is PUBLISHED
        await transport.close()
        await transport.close()
    assert on.bus.counts(queue).active == 2


async def test_a_message_that_the_queue_does_not_take_keeps_no_other_from_it(on: Opened) -> None:
    sends = (_output(), _output(text="x" * 60_000), _output())
    replies = await asyncio.gather(*(on.transport.send("small", (send,)) for send in sends))
    assert replies == [PUBLISHED, UNKNOWN, PUBLISHED]
    assert await on.transport.send("small", (_output(),)) is PUBLISHED
    assert on.bus.counts("small").active >= 3


async def test_all_that_is_wrong_with_a_namespace_is_reported_at_once(on: Opened) -> None:
    transport = ServiceBusTransport(on.bus.connection_string, message_bytes=1024 * 1024)
    with pytest.raises(ConfigurationError) as caught:
        await transport.verify(["queue-0", "absent"])
    await transport.close()
    assert "no queue and no topic 'absent'" in str(caught.value)
    assert "'queue-0' takes messages of 262144 bytes" in str(caught.value)
    assert str(caught.value).count("\n- ") == 2


async def test_a_namespace_that_is_as_it_has_to_be_passes_and_nothing_is_sent(on: Opened, queue: str) -> None:
    await on.transport.verify([queue, "topic", "sessions"])
    assert on.bus.counts(queue).active == 0


async def test_a_wrong_key_is_reported_without_it(on: Opened) -> None:
    transport = ServiceBusTransport(on.bus.connection_string.replace("SharedAccessKey=", "SharedAccessKey=wrong"))
    with pytest.raises(ConfigurationError, match="check its key") as caught:
        await transport.verify(["queue-0"])
    await transport.close()
    assert "wrong" not in str(caught.value)


def _output(*, delay: float = 0.0, session: str | None = None, text: str = "ÄÖÜ") -> Output:
    id = uuid4().hex
    attributes = {} if session is None else {RECEIVER: session}
    return Output(id, "receipts", Json.of({"id": id, **attributes, "data": {"text": text}}), delay)
