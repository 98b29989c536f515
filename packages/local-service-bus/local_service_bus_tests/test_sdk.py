"""What the unmodified client of Python finds, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from azure.servicebus import ServiceBusMessageState, ServiceBusSubQueue
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    ServiceBusConnectionError,
)

from local_service_bus.faults import FaultRule
from local_service_bus_tests.sdk import Sdk, call, in_an_hour, message, receive, texts

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

pytestmark = pytest.mark.asyncio(loop_scope="module")

PREPARED = {"plain": 9, "thrice": 1, "small": 1, "deleting": 1}
"""Pairs of links that are opened beforehand."""

DEAD = ServiceBusSubQueue.DEAD_LETTER


async def test_a_message_arrives_as_it_was_sent(sdk: Sdk) -> None:
    _, sender, receiver = await sdk.pair()
    properties = {"text": "ä", "number": 7, "large": 2**31 - 1, "half": 0.5, "yes": True, "id": UUID(int=5)}
    sent = message(
        "body", application_properties=dict(properties), subject="s", correlation_id="c", content_type="t", reply_to="r"
    )
    await call(sender.send_messages, sent)
    (found,) = await receive(receiver)
    assert (str(found), found.message_id, found.delivery_count) == ("body", "body", 0)
    assert (found.subject, found.correlation_id, found.content_type, found.reply_to) == ("s", "c", "t", "r")
    decoded = {name.decode(): value for name, value in found.application_properties.items()}
    assert {**decoded, "text": decoded["text"].decode()} == properties
    assert found.sequence_number == 1
    assert found.enqueued_time_utc < found.locked_until_utc
    await call(receiver.complete_message, found)


async def test_a_list_and_a_batch_arrive_one_by_one_and_in_order(sdk: Sdk) -> None:
    _, sender, receiver = await sdk.pair()
    await call(sender.send_messages, [message("a"), message("b", application_properties={"n": 1})])
    batch = await call(sender.create_message_batch)
    batch.add_message(message("c"))
    await call(sender.send_messages, batch)
    assert await texts(receiver, 3) == ["a", "b", "c"]


async def test_a_failed_message_comes_again_and_at_last_is_a_dead_letter(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair("thrice")
    await call(sender.send_messages, message("a"))
    counts = []
    for _ in range(3):
        (found,) = await receive(receiver)
        counts.append(found.delivery_count)
        await call(receiver.abandon_message, found)
    assert counts == [0, 1, 2]
    assert endpoint.counts(name).active == 0
    dead = await sdk.receiver(name, sub_queue=DEAD)
    (found,) = await receive(dead)
    assert (str(found), found.dead_letter_reason, found.dead_letter_source) == ("a", "MaxDeliveryCountExceeded", name)
    await call(dead.complete_message, found)


async def test_a_dead_letter_keeps_its_reason_and_its_properties(sdk: Sdk) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, message("a", application_properties={"n": 1}))
    (found,) = await receive(receiver)
    await call(receiver.dead_letter_message, found, reason="bad", error_description="it is bad")
    dead = await sdk.receiver(name, sub_queue=DEAD)
    (found,) = await receive(dead)
    assert (found.dead_letter_reason, found.dead_letter_error_description) == ("bad", "it is bad")
    assert found.application_properties[b"n"] == 1
    await call(dead.complete_message, found)


async def test_a_deferred_message_is_received_by_its_number_only(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, [message("a"), message("b")])
    (found,) = await receive(receiver)
    await call(receiver.defer_message, found)
    assert endpoint.counts(name).deferred == 1
    assert await texts(receiver) == ["b"]
    (deferred,) = await call(receiver.receive_deferred_messages, found.sequence_number)
    assert str(deferred) == "a"
    await call(receiver.complete_message, deferred)
    assert endpoint.counts(name).deferred == 0
    with pytest.raises(MessageNotFoundError, match="not all of"):
        await call(receiver.receive_deferred_messages, found.sequence_number)


async def test_peeking_shows_what_is_active_locked_deferred_and_scheduled(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    _, sender, receiver = await sdk.pair()
    await call(sender.send_messages, [message("a"), message("b"), message("c")])
    await call(sender.schedule_messages, message("d"), in_an_hour(endpoint.now()))
    found, _ = await receive(receiver, 2)
    await call(receiver.defer_message, found)
    seen = await call(receiver.peek_messages, 10, sequence_number=1)
    active, deferred, scheduled = (
        ServiceBusMessageState.ACTIVE,
        ServiceBusMessageState.DEFERRED,
        ServiceBusMessageState.SCHEDULED,
    )
    assert [(str(item), item.state) for item in seen] == [
        ("a", deferred),
        ("b", active),
        ("c", active),
        ("d", scheduled),
    ]


async def test_a_scheduled_message_comes_at_its_time_unless_it_was_cancelled(
    sdk: Sdk, endpoint: RunningEndpoint
) -> None:
    name, sender, receiver = await sdk.pair()
    numbers = await call(sender.schedule_messages, [message("a"), message("b")], in_an_hour(endpoint.now()))
    await call(sender.cancel_scheduled_messages, numbers[0])
    assert endpoint.counts(name).scheduled == 1
    with pytest.raises(MessageNotFoundError, match="cancelled or enqueued"):
        await call(sender.cancel_scheduled_messages, numbers[0])
    endpoint.advance_clock(3700)
    assert await texts(receiver) == ["b"]


async def test_a_lock_ends_unless_it_is_renewed(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    _, sender, receiver = await sdk.pair()
    await call(sender.send_messages, [message("a"), message("b")])
    kept, lost = await receive(receiver, 2)
    endpoint.advance_clock(40)
    await call(receiver.renew_message_lock, kept)
    endpoint.advance_clock(40)
    await call(receiver.complete_message, kept)
    with pytest.raises(MessageLockLostError):
        await call(receiver.complete_message, lost)
    (again,) = await receive(receiver)
    assert (str(again), again.delivery_count) == ("b", 1)
    await call(receiver.complete_message, again)


async def test_a_receiver_that_deletes_needs_no_settlement(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair("deleting")
    await call(sender.send_messages, [message("a"), message("b")])
    assert [str(item) for item in await receive(receiver, 2)] == ["a", "b"]
    assert endpoint.counts(name).active == endpoint.counts(name).locked == 0


async def test_too_large_a_message_is_refused_and_ends_its_link(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, _ = await sdk.pair("small")
    with pytest.raises(MessageSizeExceededError):
        await call(sender.send_messages, message("x" * 10_000, message_id="large"))
    with pytest.raises(ServiceBusConnectionError):  # The client notices when it wants to send again.
        await call(sender.send_messages, message("a"))
    await call(sender.send_messages, message("a"))
    assert endpoint.counts(name).active == 1


async def test_a_send_that_raises_may_have_worked(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, _ = await sdk.pair()
    endpoint.add_fault(FaultRule("send", name, "cut_after"))
    with pytest.raises(ServiceBusConnectionError):
        await call(sender.send_messages, message("a"))
    assert endpoint.counts(name).active == 1


async def test_a_complete_that_raises_may_have_worked(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, message("a"))
    (found,) = await receive(receiver)
    endpoint.add_fault(FaultRule("complete", name, "cut_after"))
    with pytest.raises((MessageLockLostError, ServiceBusConnectionError)):
        await call(receiver.complete_message, found)
    assert endpoint.counts(name).active == endpoint.counts(name).locked == 0
