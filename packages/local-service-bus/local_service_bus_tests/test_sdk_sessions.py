"""Sessions, topics and refusals, as the unmodified client of Python finds them, sync and async."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from local_service_bus_tests.sdk import Sdk, call, in_an_hour, message, queue, receive, refusals, texts

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

PREPARED = {"sessions": 3}
"""Pairs of links that are opened beforehand; the receivers hold session "one"."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_session_is_held_by_one_receiver_and_in_order(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair("sessions")
    for text, session in (("a", "one"), ("b", "two"), ("c", "one")):
        await call(sender.send_messages, message(text, session_id=session))
    with pytest.raises(SessionCannotBeLockedError, match="somebody else holds session 'one'"):
        await sdk.receiver(name, session_id="one")
    found = await receive(receiver, 2)
    assert [(str(item), item.session_id) for item in found] == [("a", "one"), ("c", "one")]
    await call(receiver.abandon_message, found[0])
    (again,) = await receive(receiver)
    assert (str(again), again.delivery_count) == ("a", 1)
    for item in (again, found[1]):
        await call(receiver.complete_message, item)
    assert endpoint.counts(name).active == 1


async def test_the_next_session_is_one_with_messages_that_nobody_holds(sdk: Sdk) -> None:
    name, sender, first = await sdk.pair("sessions")
    await call(sender.send_messages, [message(text, session_id=text) for text in ("one", "two")])
    second = await sdk.receiver(name, session_id=NEXT_AVAILABLE_SESSION)
    assert [first.session.session_id, second.session.session_id] == ["one", "two"]
    (refusal,) = await refusals(sdk.receiver(name, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=0.1))
    assert isinstance(refusal, OperationTimeoutError)
    assert "no session" in str(refusal)


async def test_a_session_keeps_its_state_and_ends_unless_it_is_renewed(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    name, sender, receiver = await sdk.pair("sessions")
    await call(sender.send_messages, message("a", session_id="one"))
    session: Any = receiver.session
    assert await call(session.get_state) is None
    await call(session.set_state, "kept")
    assert await call(session.get_state) == b"kept"
    await receive(receiver)
    endpoint.advance_clock(40)
    await call(session.renew_lock)
    endpoint.advance_clock(40)
    assert endpoint.counts(name).locked == 1
    endpoint.advance_clock(40)
    assert endpoint.counts(name).active == 1
    with pytest.raises(SessionLockLostError):
        await call(session.renew_lock)


async def test_a_subscription_gets_what_passes_its_filters(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    sender, reds = await asyncio.gather(sdk.topic_sender("events"), sdk.subscriber("events", "red"))
    before = endpoint.counts("events/Subscriptions/all").active
    small = {"application_properties": {"size": 1}}
    for item in (
        message("a", subject="red", message_id=f"a {before}", **small),
        message("b", subject="red", message_id=f"b {before}"),
        message("c", to="red", message_id=f"c {before}"),
        message("c", to="red", message_id=f"c {before}"),
    ):
        await call(sender.send_messages, item)
    assert await texts(reds, 2) == ["a", "c"]
    assert endpoint.counts("events/Subscriptions/all").active == before + 3
    dead = endpoint.counts("events/Subscriptions/grouped").dead_letters
    assert dead == before + 3, "a subscription with sessions cannot hold what has none"


async def test_a_topic_keeps_scheduled_messages_until_their_time(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    sender = await sdk.topic_sender("events")
    before = endpoint.counts("events/Subscriptions/all").active
    numbers = await call(
        sender.schedule_messages, [message(f"{before}"), message(f"{before}+")], in_an_hour(endpoint.now())
    )
    await call(sender.cancel_scheduled_messages, numbers[1])
    assert endpoint.counts("events").scheduled == 1
    assert endpoint.counts("events/Subscriptions/all").active == before
    endpoint.advance_clock(3700)
    assert endpoint.counts("events/Subscriptions/all").active == before + 1


async def test_an_entity_that_is_not_there_is_named(sdk: Sdk) -> None:
    for refusal in await refusals(sdk.sender("missing"), sdk.receiver("missing")):
        assert isinstance(refusal, MessagingEntityNotFoundError)
        assert "'missing'" in str(refusal)


async def test_sessions_have_to_be_asked_for_where_they_are(sdk: Sdk) -> None:
    told = await refusals(
        sdk.receiver(queue("sessions")), sdk.receiver(queue(), session_id="one"), sent_to(sdk, queue("sessions"))
    )
    assert all(isinstance(item, ServiceBusError) for item in told)
    wrong = ("has sessions; accept one", "has no sessions; receive without one", "has no session id; set one")
    assert all(part in str(item) for part, item in zip(wrong, told, strict=True))


async def test_a_wrong_key_is_refused(sdk: Sdk, endpoint: RunningEndpoint) -> None:
    wrong = Sdk(endpoint.connection_string.replace("SAS_KEY_VALUE", "another"), is_sync=sdk.is_sync)
    with pytest.raises(ServiceBusAuthenticationError):
        await wrong.sender(queue())
    await wrong.close()


async def sent_to(sdk: Sdk, name: str) -> None:
    await call((await sdk.sender(name)).send_messages, message("a"))
