"""What a transport over Service Bus finds out about its namespace before anything is sent; and its clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusError,
)

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.transports.service_bus.sender import HEADER_BYTES, ServiceBusTransport, is_connection_string
from tests.unit.transports.faking_bus import CONNECTION, SECRET, FakeClient, sending

Sending = Callable[..., ServiceBusTransport]


@pytest.fixture
def to(monkeypatch: pytest.MonkeyPatch) -> Sending:
    """Makes a transport whose every queue is the given one."""
    return partial(sending, monkeypatch)


REFUSALS: dict[Exception, str] = {
    MessagingEntityNotFoundError(): "no queue and no topic 'receipts'",
    MessagingEntityDisabledError(): "'receipts' is disabled for senders",
    ServiceBusAuthenticationError(): "the role 'Azure Service Bus Data Sender'",
    ServiceBusAuthorizationError(): "the role 'Azure Service Bus Data Sender'",
    ServiceBusError("?", error=ClientAuthenticationError(SECRET)): r"\(ClientAuthenticationError\)",
    ClientAuthenticationError(SECRET): "the role 'Azure Service Bus Data Sender'",
}


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
async def test_what_only_an_operator_can_change_is_reported_with_what_to_do(to: Sending, error: Exception) -> None:
    with pytest.raises(ConfigurationError, match=REFUSALS[error]) as caught:
        await to(FakeClient(answer=error)).verify(["receipts", "receipts"])
    assert str(caught.value).count("\n- ") == 1
    assert SECRET not in str(caught.value)


async def test_a_tier_that_takes_less_than_settings_say_is_reported(to: Sending) -> None:
    with pytest.raises(ConfigurationError, match="takes messages of 1000 bytes, but EXACTLYONCE__maxMessageBytes"):
        await to(FakeClient(room=1000)).verify(["receipts"])


async def test_what_does_not_answer_may_do_so_later(to: Sending) -> None:
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


async def test_one_client_serves_all_queues_and_one_link_a_queue_for_good() -> None:
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
