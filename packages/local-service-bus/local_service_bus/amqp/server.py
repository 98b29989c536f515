"""The endpoint on a socket: it accepts connections, and wakes up when time brings something."""

from __future__ import annotations

import asyncio
from math import inf
from random import Random
from typing import Final
from uuid import UUID

from local_service_bus.amqp.authorization import SharedKey
from local_service_bus.amqp.connection import AmqpConnection
from local_service_bus.amqp.service import Service
from local_service_bus.broker.broker import Broker
from local_service_bus.broker.refusals import RefusedError
from local_service_bus.clock import Clock
from local_service_bus.faults import Faults
from local_service_bus.topology import Topology

HOST: Final = "127.0.0.1"
LEAST_PAUSE: Final = 0.01
"""Seconds between two wake-ups: a clock that stands still must not keep the thread busy."""


class AmqpServer:
    """All connections to one service.

    Args:
        clock: The broker's.
    """

    def __init__(self, service: Service, clock: Clock) -> None:
        self.service = service
        self._clock = clock
        self._connections: dict[AmqpConnection, None] = {}
        self._server: asyncio.Server | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def start(self, port: int) -> int:
        """Listen on the loopback; returns the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: AmqpConnection(self), HOST, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """End all connections and listen no longer."""
        if self._server is not None:
            self._server.close()
            self.drop_connections()
            await self._server.wait_closed()
        if self._alarm is not None:
            self._alarm.cancel()

    def drop_connections(self) -> None:
        """End all connections at once, without a word."""
        for connection in list(self._connections):
            connection.cut()
        self.turn()

    def detach_links(self, entity: str, condition: str) -> None:
        """End all links to an entity with an error, as the service ends those that were idle for long."""
        for connection in list(self._connections):
            connection.detach(entity, RefusedError(condition, "The link was ended by the local endpoint."))
        self.turn()

    def advance_clock(self, seconds: float) -> float:
        """Move the broker's time forward, and do what it brings; returns the new time in seconds since 1970."""
        now = self._clock.advance(seconds)
        self.wake_up()
        return now

    def wake_up(self) -> None:
        """Do what time has brought."""
        self.service.pass_time()
        self.turn()

    def opened(self, connection: AmqpConnection) -> None:
        """One more."""
        self._connections[connection] = None

    def closed(self, connection: AmqpConnection) -> None:
        """One less."""
        self._connections.pop(connection, None)

    def turn(self) -> None:
        """Serve whoever waits, send what there is to send, and set the alarm."""
        self.service.serve()
        now = asyncio.get_running_loop().time()
        again = [connection.flush(now) for connection in list(self._connections)]
        beat = min((time - now for time in again if time > 0), default=inf)
        self._set_alarm(min(beat, self.service.next_time() - self._clock.now()))

    def _set_alarm(self, pause: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if pause < inf:
            self._alarm = asyncio.get_running_loop().call_later(max(pause, LEAST_PAUSE), self.wake_up)


def new_server(topology: Topology, clock: Clock, seed: int, shared_key: SharedKey) -> AmqpServer:
    """An endpoint that does not listen yet; its ids and its trouble come from the seed."""
    ids = Random(seed)
    broker = Broker(topology, clock.now, lambda: UUID(int=ids.getrandbits(128), version=4))
    return AmqpServer(Service(broker, Faults(Random(seed)), clock, shared_key), clock)
