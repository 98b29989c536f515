"""Faults, as the unmodified client meets them; the two that matter most are in test_sdk.py, for both its forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from azure.servicebus.exceptions import (
    MessageLockLostError,
    ServiceBusConnectionError,
    ServiceBusError,
    ServiceBusServerBusyError,
    SessionLockLostError,
)

from local_service_bus.faults import FaultRule
from local_service_bus_tests.sdk import Sdk, call, message, queue, receive, refusals, texts

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdk(endpoint: RunningEndpoint) -> AsyncIterator[Sdk]:
    """The client, and it never tries again."""
    async with opened(endpoint, 0, {"plain": 7, "sessions": 1}) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def patient(endpoint: RunningEndpoint) -> AsyncIterator[Sdk]:
    """The client with its usual habit of trying again."""
    async with opened(endpoint, 2, {"plain": 3, "unique": 1}) as client:
        yield client


@asynccontextmanager
async def opened(endpoint: RunningEndpoint, retries: int, kinds: Mapping[str, int]) -> AsyncIterator[Sdk]:
    client = Sdk(endpoint.connection_string, is_sync=False, retries=retries)
    await client.prepare(kinds)
    yield client
    await client.close()


@pytest.mark.parametrize(
    ("action", "error"), [("cut_before", ServiceBusConnectionError), ("server_busy", ServiceBusServerBusyError)]
)
async def test_a_send_that_raises_may_have_failed(
    sdk: Sdk, endpoint: RunningEndpoint, action: str, error: type[Exception]
) -> None:
    name, sender, _ = await sdk.pair()
    endpoint.add_fault(FaultRule("send", name, action))
    with pytest.raises(error):
        await call(sender.send_messages, message("a"))
    assert endpoint.counts(name).active == 0


@pytest.mark.parametrize(
    ("kind", "kept"), [("plain", 2), ("unique", 1)], ids=["as it is", "once where duplicates are detected"]
)
async def test_a_client_that_tries_again_sends_twice(
    patient: Sdk, endpoint: RunningEndpoint, kind: str, kept: int
) -> None:
    name, sender, _ = await patient.pair(kind)
    endpoint.add_fault(FaultRule("send", name, "cut_after"))
    await call(sender.send_messages, message("a"))
    assert endpoint.counts(name).active == kept


async def test_a_complete_that_was_cut_off_is_done_the_other_way(patient: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await patient.pair()
    await call(sender.send_messages, message("a"))
    (found,) = await receive(receiver)
    endpoint.add_fault(FaultRule("complete", name, "cut_before"))
    await call(receiver.complete_message, found)
    assert endpoint.counts(name).active == endpoint.counts(name).locked == 0


async def test_a_lock_that_is_lost_early_lets_the_message_come_again(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, message("a"))
    endpoint.add_fault(FaultRule("receive", name, "lock_lost"))
    (first,) = await receive(receiver)
    (second,) = await receive(receiver)
    assert [first.delivery_count, second.delivery_count] == [0, 1]
    with pytest.raises(MessageLockLostError):
        await call(receiver.complete_message, first)
    await call(receiver.complete_message, second)


async def test_a_settlement_may_find_its_lock_lost(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, message("a"))
    (found,) = await receive(receiver)
    endpoint.add_fault(FaultRule("complete", name, "lock_lost", message_id="a"))
    with pytest.raises(MessageLockLostError):
        await call(receiver.complete_message, found)
    assert endpoint.counts(name).active == 1


async def test_a_session_may_be_lost_early(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair("sessions")
    await call(sender.send_messages, message("a", session_id="one"))
    (found,) = await receive(receiver)
    endpoint.add_fault(FaultRule("complete", name, "lock_lost"))
    with pytest.raises(SessionLockLostError):
        await call(receiver.complete_message, found)
    assert endpoint.counts(name).active == 1


async def test_a_session_that_could_not_be_accepted_is_free(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    names = [queue("sessions") for _ in range(3)]
    for name, action in zip(names, ("cut_before", "cut_after", "server_busy"), strict=True):
        endpoint.add_fault(FaultRule("accept_session", name, action))
    told = await refusals(*(sdk.receiver(name, session_id="one") for name in names))
    assert all(isinstance(refusal, ServiceBusError) for refusal in told)
    receivers = await asyncio.gather(*(sdk.receiver(name, session_id="one") for name in names))
    assert [receiver.session.session_id for receiver in receivers] == ["one"] * 3


async def test_a_message_may_be_delivered_twice(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    for operation in ("send", "receive", "complete"):
        endpoint.add_fault(FaultRule(operation, name, "redeliver"))
        await call(sender.send_messages, message(operation))
        seen = await texts(receiver, 2)
        if len(seen) == 1:  # It came again after the first was completed.
            seen += await texts(receiver)
        assert seen == [operation, operation]
        assert endpoint.counts(name).active == endpoint.counts(name).locked == 0


async def test_what_is_slow_is_done_when_its_time_has_come(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, _ = await sdk.pair()
    rule = endpoint.add_fault(FaultRule("send", name, "slow", seconds=100))
    sending = asyncio.ensure_future(call(sender.send_messages, message("a")))
    while not endpoint.fault_hits(rule):  # noqa: ASYNC110  # What another thread does is no event.
        await asyncio.sleep(0)
    assert endpoint.counts(name).active == 0
    endpoint.advance_clock(100)
    await sending
    assert endpoint.counts(name).active == 1


async def test_the_history_has_every_accepted_operation_in_order(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair()
    await call(sender.send_messages, message("a"))
    (found,) = await receive(receiver)
    await call(receiver.abandon_message, found)
    await texts(receiver)
    told = [(item.operation, item.outcome, item.delivery_count) for item in endpoint.history() if item.entity == name]
    assert told == [
        ("send", "active", 0),
        ("receive", "locked", 0),
        ("abandon", "active", 1),
        ("receive", "locked", 1),
        ("complete", "removed", 1),
    ]


async def test_dropped_connections_are_opened_again(patient: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await patient.pair()
    endpoint.drop_connections()
    await call(sender.send_messages, message("a"))
    assert await texts(receiver) == ["a"]
    assert endpoint.counts(name).locked == 0
