"""The transport over Azure Storage queues does what every transport has to do; on Azurite."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import uuid4

import pytest
from azure.storage.queue.aio import QueueClient

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import Output
from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.transports.storage_queue import StorageQueueTransport
from exactlyonce.values.frozen_json import Json
from function_host.azurite import ACCOUNT_KEY, Azurite, azurite
from tests.unreliable import without_replies


@pytest.fixture(scope="module")
def storage() -> Iterator[Azurite]:
    with azurite() as running:
        yield running


@pytest.fixture
async def transport(storage: Azurite) -> AsyncIterator[StorageQueueTransport]:
    transport = StorageQueueTransport(storage.connection_string)
    yield transport
    await transport.close()


@pytest.fixture
async def queue(storage: Azurite) -> AsyncIterator[QueueClient]:
    async with QueueClient.from_connection_string(storage.connection_string, f"queue-{uuid4().hex}") as client:
        yield client


class TestStorageQueueTransport(TransportContract):
    @pytest.fixture
    def transport(self, transport: StorageQueueTransport) -> AsyncTransport:
        return transport

    @pytest.fixture(autouse=True)
    def _storage(self, storage: Azurite) -> None:
        self._connection_string = storage.connection_string

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        async with QueueClient.from_connection_string(self._connection_string, address) as client:
            return [_envelope(message.content) async for message in client.receive_messages(messages_per_page=32)]

    def unanswered(self, transport: AsyncTransport) -> AbstractContextManager[None]:
        assert isinstance(transport, StorageQueueTransport)
        return without_replies(transport)


async def test_the_text_of_a_message_is_base64_of_the_envelope(
    transport: StorageQueueTransport, queue: QueueClient
) -> None:
    output = _output()
    assert await transport.send(queue.queue_name, (output,)) is PUBLISHED
    [message] = await queue.peek_messages()
    assert base64.b64decode(message.content, validate=True).decode() == output.envelope.text


async def test_a_message_lives_for_the_delivery_limit(storage: Azurite, queue: QueueClient) -> None:
    transport = StorageQueueTransport(storage.connection_string, delivery_limit=timedelta(hours=3))
    await transport.send(queue.queue_name, (_output(),))
    [message] = await queue.peek_messages()
    assert message.expires_on is not None
    assert message.inserted_on is not None
    assert message.expires_on - message.inserted_on == timedelta(hours=3)
    await transport.close()


async def test_a_delayed_message_is_invisible_at_first(transport: StorageQueueTransport, queue: QueueClient) -> None:
    outputs = _output(), _output(delay=3600.0)
    assert await transport.send(queue.queue_name, outputs) is PUBLISHED
    assert [_envelope(message.content) for message in await queue.peek_messages(max_messages=32)] == [
        outputs[0].envelope
    ]
    assert (await queue.get_queue_properties()).approximate_message_count == 2


async def test_a_transport_that_was_closed_opens_again(transport: StorageQueueTransport, queue: QueueClient) -> None:
    assert await transport.send(queue.queue_name, (_output(),)) is PUBLISHED
    await transport.close()
    await transport.close()
    assert await transport.send(queue.queue_name, (_output(),)) is PUBLISHED


async def test_an_account_that_refuses_the_key_is_an_unknown_outcome(storage: Azurite, queue: QueueClient) -> None:
    wrong = base64.b64encode(b"not the key").decode()
    transport = StorageQueueTransport(storage.connection_string.replace(ACCOUNT_KEY, wrong))
    assert await transport.send(queue.queue_name, (_output(),)) is UNKNOWN
    await transport.close()


def _output(*, delay: float = 0.0) -> Output:
    id = uuid4().hex
    return Output(id, "receipts", Json.of({"id": id, "data": {"text": "ÄÖÜ"}}), delay)


def _envelope(content: str) -> Json:
    return Json(base64.b64decode(content, validate=True).decode())
