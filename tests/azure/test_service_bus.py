"""Queues of a real namespace do what every transport has to do. One run at a time: their queues are there, and shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from itertools import cycle
from uuid import uuid4

import pytest
import pytest_asyncio
from azure.identity.aio import DefaultAzureCredential
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusReceivedMessage, ServiceBusReceiveMode
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver

from exactlyonce import ConfigurationError
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.hosting.config.connections import ServiceBusConnection
from exactlyonce.records.outbox import RECEIVER, Output
from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.transports.service_bus.binding import read
from exactlyonce.transports.service_bus.sender import ServiceBusTransport
from exactlyonce.values.frozen_json import Json
from tests.azure.conftest import Environment
from tests.servicebus import content_of, without_replies

QUEUES = ("contract-1", "contract-2")
SESSIONS = "contract-sessions"
MODE = ServiceBusReceiveMode.RECEIVE_AND_DELETE
SECONDS = 20

Receivers = dict[str, ServiceBusReceiver]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def identity(namespace: ServiceBusConnection) -> AsyncIterator[DefaultAzureCredential | None]:
    """Of the namespace; None where a connection string brings its own."""
    if "=" in namespace.namespace:
        yield None
        return
    async with DefaultAzureCredential(managed_identity_client_id=namespace.client_id) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(
    namespace: ServiceBusConnection, identity: DefaultAzureCredential | None
) -> AsyncIterator[ServiceBusClient]:
    if identity is None:
        client = ServiceBusClient.from_connection_string(namespace.namespace)
    else:
        client = ServiceBusClient(namespace.namespace, identity)
    async with client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def transport(
    environment: Environment, namespace: ServiceBusConnection, identity: DefaultAzureCredential | None
) -> AsyncIterator[ServiceBusTransport]:
    transport = ServiceBusTransport(namespace.namespace, identity, message_bytes=environment[0].message_bytes)
    yield transport
    await transport.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def receivers(client: ServiceBusClient) -> AsyncIterator[Receivers]:
    """One of each queue."""
    opened = {name: client.get_queue_receiver(name, receive_mode=MODE) for name in QUEUES}
    yield opened
    await asyncio.gather(*(receiver.close() for receiver in opened.values()))


class TestServiceBusInAzure(TransportContract):
    """On two queues, which are emptied before and after every test."""

    @pytest_asyncio.fixture(loop_scope="module", autouse=True)
    async def _queues(self, receivers: Receivers) -> AsyncIterator[None]:
        self._receivers, self._next = receivers, cycle(QUEUES)
        await self._empty()
        yield
        await self._empty()

    @pytest.fixture
    def transport(self, transport: ServiceBusTransport) -> AsyncTransport:
        return transport

    def address(self) -> str:
        return next(self._next)

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        return [Json(read(content_of(item)).decode()) for item in await all_of(self._receivers[address])]

    def unanswered(self, transport: AsyncTransport) -> AbstractContextManager[None]:
        return without_replies()

    async def _empty(self) -> None:
        await asyncio.gather(*(all_of(receiver) for receiver in self._receivers.values()))


async def test_messages_of_one_session_come_together_and_one_that_names_none_has_its_own(
    client: ServiceBusClient, transport: ServiceBusTransport
) -> None:
    session, loner = uuid4().hex, uuid4().hex
    outputs = [_output(uuid4().hex, session), _output(uuid4().hex, session), _output(loner, None)]
    assert await transport.send(SESSIONS, tuple(outputs)) is PUBLISHED
    found: dict[str, list[str | None]] = {}
    while not {session, loner} <= found.keys():  # What a run left that was killed is in the way.
        receiver = client.get_queue_receiver(
            SESSIONS, session_id=NEXT_AVAILABLE_SESSION, receive_mode=MODE, max_wait_time=SECONDS
        )
        async with receiver:
            found[str(receiver.session.session_id)] = [item.message_id for item in await all_of(receiver)]
    assert (found[session], found[loner]) == ([output.id for output in outputs[:2]], [loner])


async def test_a_namespace_is_examined_without_sending_anything(
    transport: ServiceBusTransport, receivers: Receivers
) -> None:
    await transport.verify(QUEUES)
    with pytest.raises(ConfigurationError, match="no queue and no topic 'contract-absent'"):
        await transport.verify([*QUEUES, "contract-absent"])
    for receiver in receivers.values():
        assert await receiver.peek_messages(sequence_number=1) == []


async def all_of(receiver: ServiceBusReceiver) -> list[ServiceBusReceivedMessage]:
    """What is there now, and no longer after that. No more is asked for: it would come to a link that nobody looks at."""
    found: list[ServiceBusReceivedMessage] = []
    while waiting := len(await receiver.peek_messages(100, sequence_number=1)):
        wanted = len(found) + waiting
        while len(found) < wanted:
            found += await receiver.receive_messages(wanted - len(found), max_wait_time=SECONDS)
    return found


def _output(id: str, session: str | None) -> Output:
    attributes = {} if session is None else {RECEIVER: session}
    return Output(id, "receipts", Json.of({"id": id, **attributes, "data": None}))
