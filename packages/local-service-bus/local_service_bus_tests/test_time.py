"""Time passes by itself, and a clock that stands still keeps nobody busy."""

from __future__ import annotations

import pytest
from azure.servicebus import ServiceBusClient

from local_service_bus.broker.broker import Broker
from local_service_bus.broker.messages import Content
from local_service_bus.testing import endpoint as running_endpoint
from local_service_bus.topology import Queue, Topology
from local_service_bus_tests.sdk import message


def test_a_waiting_receiver_gets_a_message_as_soon_as_its_lock_ends() -> None:
    with running_endpoint(Topology((Queue("q", lock_duration=0.3),))) as endpoint:
        client = ServiceBusClient.from_connection_string(endpoint.connection_string, retry_total=0)
        with client, client.get_queue_sender("q") as sender, client.get_queue_receiver("q") as receiver:
            sender.send_messages(message("a"))
            (first,) = receiver.receive_messages(1, max_wait_time=10)
            (second,) = receiver.receive_messages(1, max_wait_time=10)
            receiver.complete_message(second)
    assert [first.delivery_count, second.delivery_count] == [0, 1]


class Clock:
    """A time that is set by hand."""

    now = 0.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_time_brings_happens_at_its_time_however_late_somebody_looks(clock: Clock) -> None:
    queue = Queue("q", time_to_live=10.0, dead_letter_on_expiry=True)
    broker = Broker(Topology((queue,)), lambda: clock.now, lambda: pytest.fail("nothing is locked"))
    broker.entrance("q").schedule([Content(payload=b"", message_id="a", scheduled_for=100.0)])
    clock.now = 1000.0
    broker.expire()
    told = [(item.time, item.operation, item.outcome) for item in broker.history.read()]
    assert told == [(0.0, "schedule", "scheduled"), (100.0, "activate", "active"), (110.0, "expire", "dead_letter")]


def test_a_broker_knows_when_it_has_to_look_again(clock: Clock) -> None:
    broker = Broker(Topology((Queue("q"),)), lambda: clock.now, lambda: pytest.fail("nothing is locked"))
    assert broker.next_time() == float("inf")
    broker.entrance("q").schedule([Content(payload=b"", message_id="1", scheduled_for=100.0)])
    assert broker.next_time() == 100.0
