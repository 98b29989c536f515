"""The transport over Service Bus, with scripted queues: what it sends, and what it finds out about its namespace before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from azure.core.exceptions import AzureError, ClientAuthenticationError, ServiceRequestError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusError,
    ServiceBusServerBusyError,
)

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import RECEIVER, Output
from exactlyonce.transports.service_bus.sender import HEADER_BYTES, ServiceBusTransport, is_connection_string
from exactlyonce.values.frozen_json import Json

SECRET = "what only the receiver may read"
CONNECTION = "Endpoint=sb://name.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey=c2VjcmV0"
NOT_THERE = MessageNotFoundError()
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


class FakeBatch:
    def __init__(self, most: int, max_size_in_bytes: int) -> None:
        self.messages: list[ServiceBusMessage] = []
        self.max_size_in_bytes = max_size_in_bytes
        self._most = most

    def add_message(self, message: ServiceBusMessage) -> None:
        if len(self.messages) == self._most:
            raise MessageSizeExceededError(message="?")
        self.messages.append(message)


class FakeClient:
    """Its only queue: raises the given errors, send by send, then accepts everything; each call is a list of messages.

    Args:
        errors: of the first sends.
        most: messages of one batch.
        room: bytes that the queue lets a message have.
        answer: to a request to cancel what is not there.
    """

    def __init__(
        self,
        *errors: BaseException | None,
        most: int = 1_000,
        room: int = 256 * 1024,
        answer: Exception | None = NOT_THERE,
    ) -> None:
        self.errors, self.most, self.room, self.answer = list(errors), most, room, answer
        self.sends: list[list[ServiceBusMessage]] = []
        self.refuses: Callable[[Sequence[ServiceBusMessage]], bool] = lambda _: False
        self.ends_links = False
        """Whether a refusal ends its link, which then refuses whatever is sent by it."""
        self.dead = False
        self.opened = self.closed = 0
        self.hanging = False
        self.called = asyncio.Event()

    def get_queue_sender(self, _: str) -> FakeClient:
        self.opened += 1
        self.dead = False
        return self

    async def create_message_batch(self) -> FakeBatch:
        return FakeBatch(self.most, self.room)

    async def send_messages(self, given: FakeBatch | ServiceBusMessage) -> None:
        messages = given.messages if isinstance(given, FakeBatch) else [given]
        self.called.set()
        await (asyncio.Event().wait() if self.hanging else asyncio.sleep(0))
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        if self.dead or self.refuses(messages):
            self.dead = self.ends_links
            raise ServiceBusError(SECRET)
        if messages:
            self.sends.append(messages)

    async def cancel_scheduled_messages(self, _: int) -> None:
        if self.answer is not None:
            raise self.answer

    async def close(self) -> None:
        self.closed += 1

    @property
    def ids(self) -> list[list[str | None]]:
        return [[message.message_id for message in messages] for messages in self.sends]


def sending(patch: pytest.MonkeyPatch, client: FakeClient, **settings: Any) -> ServiceBusTransport:
    """A transport whose every queue is this one."""
    transport = ServiceBusTransport(CONNECTION, now=lambda: NOW, **settings)
    patch.setattr(transport, "_open", lambda: client)
    return transport


def output(id: str = "o-1", *, delay: float = 0.0, session: str | None = None) -> Output:
    """One output."""
    attributes = {} if session is None else {RECEIVER: session}
    return Output(id, "receipts", Json.of({"id": id, **attributes, "data": SECRET}), delay)


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


async def test_sends_that_a_cancelled_send_took_along_take_their_own_turn(to: Sending) -> None:
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


async def test_a_send_that_is_cancelled_before_its_turn_sends_nothing_later(to: Sending) -> None:
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


async def test_sends_during_the_turn_of_another_share_the_next_batch(to: Sending) -> None:
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


async def test_a_refused_message_keeps_no_other_from_its_queue(to: Sending) -> None:
    client = FakeClient()
    client.refuses = lambda messages: any(message.message_id == "bad" for message in messages)
    transport = to(client)
    sends = (("o-1",), ("o-2", "bad", "o-3"), ("o-4",))
    replies = await asyncio.gather(*(transport.send("receipts", tuple(map(output, ids))) for ids in sends))
    assert replies == [PUBLISHED, UNKNOWN, PUBLISHED]
    assert client.ids == [["o-1"], ["o-2"], ["o-3"], ["o-4"]]
    assert await transport.send("receipts", (output("o-5"), output("o-6"))) is PUBLISHED
    assert client.ids[4:] == [["o-5", "o-6"]]  # It was no company that the queue refused.


async def test_a_message_that_arrived_before_the_link_failed_is_published(to: Sending) -> None:
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


REFUSALS: dict[Exception, str] = {
    MessagingEntityNotFoundError(): "no queue and no topic 'receipts'",
    MessagingEntityDisabledError(): "'receipts' is disabled for senders",
    ServiceBusAuthenticationError(): "the role 'Azure Service Bus Data Sender'",
    ServiceBusAuthorizationError(): "the role 'Azure Service Bus Data Sender'",
    ServiceBusError("?", error=ClientAuthenticationError(SECRET)): r"\(ClientAuthenticationError\)",
    ClientAuthenticationError(SECRET): "the role 'Azure Service Bus Data Sender'",
}


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
async def test_a_fault_for_an_operator_is_reported_with_advice(to: Sending, error: Exception) -> None:
    with pytest.raises(ConfigurationError, match=REFUSALS[error]) as caught:
        await to(FakeClient(answer=error)).verify(["receipts", "receipts"])
    assert str(caught.value).count("\n- ") == 1
    assert SECRET not in str(caught.value)


async def test_a_tier_that_takes_less_than_settings_say_is_reported(to: Sending) -> None:
    with pytest.raises(ConfigurationError, match="takes messages of 1000 bytes, but EXACTLYONCE__maxMessageBytes"):
        await to(FakeClient(room=1000)).verify(["receipts"])


async def test_a_namespace_that_does_not_answer_is_asked_again_later(to: Sending) -> None:
    with pytest.raises(TryAgainLater, match="'receipts'"):
        await to(FakeClient(answer=ServiceBusConnectionError())).verify(["receipts"])


@pytest.mark.parametrize("answer", [None, MessageNotFoundError()], ids=["silence", "not found"])
async def test_a_queue_that_is_there_passes(to: Sending, answer: Exception | None) -> None:
    client = FakeClient(answer=answer)
    await to(client).verify(["receipts"])
    assert client.sends == []


def test_there_is_room_for_what_a_message_has_besides_its_envelope() -> None:
    assert ServiceBusTransport(CONNECTION, message_bytes=1024 * 1024).max_bytes == 1024 * 1024 - HEADER_BYTES


async def test_a_host_name_without_a_credential_gets_one_that_is_closed_with_it() -> None:
    transport = ServiceBusTransport("name.servicebus.windows.net")
    transport._link("one")
    assert transport._own_credential is not None
    await transport.close()
    assert transport._own_credential is None


async def test_a_client_serves_all_queues_and_a_link_its_queue_for_good() -> None:
    transport = ServiceBusTransport(CONNECTION)
    assert transport._link("one") is transport._link("one")
    client = transport._client
    assert transport._link("one") is not transport._link("two")
    assert transport._client is client
    await transport.close()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (CONNECTION, True),
        (f"{CONNECTION};UseDevelopmentEmulator=true;", True),
        (f"{CONNECTION};EntityPath=receipts", False),
        ("Endpoint=sb://name.servicebus.windows.net/", False),
        ("name.servicebus.windows.net", False),
        ("AccountName=a;AccountKey=b", False),
        ("", False),
    ],
)
def test_connection_strings_of_a_namespace_are_distinguished_from_others(text: str, is_one: bool) -> None:
    assert is_connection_string(text) is is_one
