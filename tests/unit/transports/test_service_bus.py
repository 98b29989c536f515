"""The transport over Service Bus, with a scripted sender."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from azure.core.exceptions import AzureError, ClientAuthenticationError, ServiceRequestError
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusConnectionError,
    ServiceBusError,
    ServiceBusServerBusyError,
)

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.transports.service_bus.sender import ServiceBusTransport
from tests.unit.transports.faking_bus import NOW, SECRET, FakeClient, output, sending

Sending = Callable[..., ServiceBusTransport]


@pytest.fixture
def to(monkeypatch: pytest.MonkeyPatch) -> Sending:
    """Makes a transport whose every queue is the given one."""
    return partial(sending, monkeypatch)


FAILURES = [
    AzureError("?"),
    ServiceBusConnectionError(),
    ServiceBusAuthenticationError(),
    ServiceBusServerBusyError(),
    MessagingEntityNotFoundError(),
    OperationTimeoutError(),
    ClientAuthenticationError("?"),
    ServiceBusError("?", error=ClientAuthenticationError("?")),
    ServiceBusError("?", error=ConnectionResetError()),
    ServiceBusError("?", error=ServiceRequestError("?")),
    asyncio.TimeoutError(),
    ConnectionResetError(),
    ValueError("The handler has already been shutdown."),
]


@pytest.mark.parametrize("error", [ServiceBusError("?"), *FAILURES], ids=lambda error: type(error).__name__)
async def test_every_failure_to_send_is_an_unknown_outcome(to: Sending, error: Exception) -> None:
    assert await to(FakeClient(error, error)).send("receipts", (output(),)) is UNKNOWN


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_after_a_failure_of_its_link_the_next_send_opens_another(to: Sending, error: Exception) -> None:
    client = FakeClient(error)
    transport = to(client)
    assert await transport.send("receipts", (output(),)) is UNKNOWN
    assert await transport.send("receipts", (output(),)) is PUBLISHED
    assert (client.opened, client.closed) == (2, 1)


@pytest.mark.parametrize(
    "error",
    [ServiceBusError("?"), *(error for error in FAILURES if isinstance(error, ServiceBusError))],
    ids=lambda error: type(error).__name__,
)
async def test_a_link_that_died_since_its_last_use_costs_no_message(to: Sending, error: Exception) -> None:
    client = FakeClient(None, error)
    transport = to(client)
    for id in ("o-1", "o-2", "o-3"):
        assert await transport.send("receipts", (output(id), output(f"{id}-too"))) is PUBLISHED
    assert client.ids == [["o-1", "o-1-too"], ["o-2", "o-2-too"], ["o-3", "o-3-too"]]
    assert (client.opened, client.closed) == (2, 1)


async def test_a_link_that_a_refusal_has_ended_is_not_used_again(to: Sending) -> None:
    client = FakeClient()
    client.refuses, client.ends_links = lambda messages: any(message.message_id == "bad" for message in messages), True
    transport = to(client)
    for ids, reply in ((("o-1",), PUBLISHED), (("o-2", "bad", "o-3"), UNKNOWN), (("o-4",), PUBLISHED)):
        assert await transport.send("receipts", tuple(map(output, ids))) is reply
    assert client.ids == [["o-1"], ["o-2"], ["o-3"], ["o-4"]]
    assert client.opened == 4  # Two refuse them together, since the first may have been dead, and one the bad one.


async def test_a_failure_is_logged_by_class_and_queue_and_never_with_the_body(
    to: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="exactlyonce"):
        await to(FakeClient(ServiceBusConnectionError(message=SECRET))).send("receipts", (output(),))
    assert "receipts" in caplog.text
    assert "ServiceBusConnectionError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_send_that_takes_too_long_is_an_unknown_outcome(to: Sending) -> None:
    client = FakeClient()
    client.hanging = True
    assert await to(client, time_limit=0.01).send("receipts", (output(),)) is UNKNOWN
    assert client.closed == 1


async def test_cancelling_a_send_is_not_an_outcome_and_others_do_not_wait_for_ever(to: Sending) -> None:
    client = FakeClient()
    client.hanging = True
    transport = to(client)
    send = asyncio.ensure_future(transport.send("receipts", (output("o-1"),)))
    await client.called.wait()
    other = asyncio.ensure_future(transport.send("receipts", (output("o-2"),)))
    client.hanging = False
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    assert await other is PUBLISHED
    assert client.ids == [["o-2"]]
    assert client.closed == 1


async def test_those_whom_a_cancelled_one_took_along_take_their_own_turn(to: Sending) -> None:
    client = FakeClient()
    transport = to(client)
    first, *others = (
        asyncio.ensure_future(transport.send("receipts", (output(f"o-{number}"),))) for number in range(4)
    )
    await first
    client.hanging = True
    client.called.clear()
    await client.called.wait()  # The second sends for all.
    for cancelled in (others[2], others[0]):
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        client.hanging = False
    assert await others[1] is PUBLISHED
    assert client.ids == [["o-0"], ["o-2"]]


async def test_who_is_cancelled_before_his_turn_sends_nothing_later(to: Sending) -> None:
    client = FakeClient()
    client.hanging = True
    transport = to(client)
    first = asyncio.ensure_future(transport.send("receipts", (output("o-1"),)))
    await client.called.wait()
    second = asyncio.ensure_future(transport.send("receipts", (output("o-2"),)))
    await asyncio.sleep(0)
    for item in (second, first):
        item.cancel()
        with pytest.raises(asyncio.CancelledError):
            await item
    client.hanging = False
    assert await transport.send("receipts", (output("o-3"),)) is PUBLISHED
    assert client.ids == [["o-3"]]


async def test_what_is_sent_while_another_has_its_turn_shares_the_next_batch(to: Sending) -> None:
    client = FakeClient()
    transport = to(client)
    replies = await asyncio.gather(*(transport.send("receipts", (output(f"o-{number}"),)) for number in range(5)))
    assert set(replies) == {PUBLISHED}
    assert client.ids == [["o-0"], ["o-1", "o-2", "o-3", "o-4"]]


async def test_more_than_a_batch_takes_goes_in_several_and_what_fits_none_by_itself(to: Sending) -> None:
    client = FakeClient(most=2)
    outputs = tuple(output(f"o-{number}") for number in range(5))
    assert await to(client).send("receipts", outputs) is PUBLISHED
    assert client.ids == [["o-0", "o-1"], ["o-2", "o-3"], ["o-4"]]
    client = FakeClient(most=0)
    assert await to(client).send("receipts", outputs[:2]) is PUBLISHED
    assert client.ids == [["o-0"], ["o-1"]]


async def test_a_queue_that_takes_no_company_gets_each_by_itself_from_then_on(to: Sending) -> None:
    client = FakeClient()
    client.refuses = lambda messages: len(messages) > 1
    transport = to(client)
    for _ in range(2):
        assert await transport.send("receipts", (output("o-1"), output("o-2"))) is PUBLISHED
    assert client.ids == [["o-1"], ["o-2"], ["o-1"], ["o-2"]]


async def test_a_queue_with_sessions_takes_a_message_that_names_none_in_its_own(to: Sending) -> None:
    client = FakeClient()
    client.refuses = lambda messages: any(message.session_id is None for message in messages)
    assert await to(client).send("receipts", (output("o-1"), output("o-2", session="g-1"))) is PUBLISHED
    assert [[message.session_id for message in messages] for messages in client.sends] == [["o-1"], ["g-1"]]


async def test_one_that_is_refused_keeps_no_other_from_its_queue(to: Sending) -> None:
    client = FakeClient()
    client.refuses = lambda messages: any(message.message_id == "bad" for message in messages)
    transport = to(client)
    sends = (("o-1",), ("o-2", "bad", "o-3"), ("o-4",))
    replies = await asyncio.gather(*(transport.send("receipts", tuple(map(output, ids))) for ids in sends))
    assert replies == [PUBLISHED, UNKNOWN, PUBLISHED]
    assert client.ids == [["o-1"], ["o-2"], ["o-3"], ["o-4"]]
    assert await transport.send("receipts", (output("o-5"), output("o-6"))) is PUBLISHED
    assert client.ids[4:] == [["o-5", "o-6"]]  # It was no company that the queue refused.


async def test_what_arrived_before_the_link_failed_is_published(to: Sending) -> None:
    """The group is refused, twice since its link may have been dead; apart, the first is taken before the link fails."""
    client = FakeClient(*[None] * 4, ServiceBusConnectionError())
    client.refuses = lambda messages: len(messages) > 1
    transport = to(client)
    replies = await asyncio.gather(*(transport.send("receipts", (output(f"o-{number}"),)) for number in range(4)))
    assert replies == [PUBLISHED, PUBLISHED, UNKNOWN, UNKNOWN]
    assert client.ids == [["o-0"], ["o-1"]]


@pytest.mark.parametrize(
    ("limit", "lifetime"),
    [(timedelta(days=7), timedelta(days=7)), (timedelta(seconds=0.2), timedelta(seconds=1))],
    ids=["a week", "not for ever"],
)
async def test_a_message_lives_for_the_delivery_limit(to: Sending, limit: timedelta, lifetime: timedelta) -> None:
    client = FakeClient()
    await to(client, delivery_limit=limit).send("receipts", (output(),))
    assert client.sends[0][0].time_to_live == lifetime


async def test_a_delay_is_a_time_to_appear(to: Sending) -> None:
    client = FakeClient()
    await to(client).send("receipts", (output(), output(delay=60.5)))
    assert [message.scheduled_enqueue_time_utc for message in client.sends[0]] == [None, NOW + timedelta(seconds=60.5)]


async def test_ids_and_sessions_that_are_too_long_are_hashed_the_same_every_time(to: Sending) -> None:
    client = FakeClient()
    for _ in range(2):
        await to(client).send("receipts", (output("o" * 129, session="s" * 129), output("o" * 128, session="s" * 128)))
    await to(client).send("receipts", (output("🎯" * 65),))
    (first, exact), (second, _), (astral,) = client.sends
    assert len(astral.message_id or "") == 64  # The service counts in UTF-16.
    assert (len(first.message_id or ""), len(first.session_id or "")) == (64, 64)
    assert (first.message_id, first.session_id) == (second.message_id, second.session_id)
    assert (exact.message_id, exact.session_id) == ("o" * 128, "s" * 128)
