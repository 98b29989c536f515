"""A transport over Service Bus, and what its consumers get."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusReceivedMessage, ServiceBusReceiveMode
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver

from exactlyonce.transports.service_bus.sender import ServiceBusTransport

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

MODE = ServiceBusReceiveMode.RECEIVE_AND_DELETE
PATIENCE = 0.01
"""Seconds that the SDK waits for a frame before it looks for something else to do."""


class Opened:
    """A transport to the endpoint, and what its consumers get. Links stay open until the module is done."""

    def __init__(self, bus: RunningEndpoint) -> None:
        self.transport = ServiceBusTransport(bus.connection_string)
        self.bus = bus
        self._client = ServiceBusClient.from_connection_string(bus.connection_string, retry_backoff_factor=0.01)
        self._receivers: dict[str, ServiceBusReceiver] = {}

    async def all(self, address: str) -> list[ServiceBusReceivedMessage]:
        """Everything that is in a queue, or in the subscription of the topic."""
        wanted = self.bus.counts("topic/Subscriptions/all" if address == "topic" else address).active
        found: list[ServiceBusReceivedMessage] = []
        while len(found) < wanted:
            found += await self._receiver(address).receive_messages(wanted - len(found), max_wait_time=5)
        return found

    async def session(self, address: str) -> tuple[str, list[str]]:
        """The next session, and the ids of its messages."""
        receiver = self._client.get_queue_receiver(
            address, session_id=NEXT_AVAILABLE_SESSION, receive_mode=MODE, socket_timeout=PATIENCE
        )
        async with receiver:
            found = await receiver.receive_messages(max_message_count=10, max_wait_time=0.3)
            return str(receiver.session.session_id), [str(item.message_id) for item in found]

    async def close(self) -> None:
        """Close everything at once."""
        await asyncio.gather(self.transport.close(), *(receiver.close() for receiver in self._receivers.values()))
        await self._client.close()

    def _receiver(self, address: str) -> ServiceBusReceiver:
        if address not in self._receivers:
            given: dict[str, Any] = {"receive_mode": MODE, "socket_timeout": PATIENCE}
            self._receivers[address] = (
                self._client.get_subscription_receiver(address, "all", **given)
                if address == "topic"
                else self._client.get_queue_receiver(address, **given)
            )
        return self._receivers[address]
