"""The endpoint inside a test's own process: a server in a thread of its own, on a free port."""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from local_service_bus.amqp.authorization import SharedKey
from local_service_bus.amqp.server import AmqpServer, new_server
from local_service_bus.broker.history import Accepted
from local_service_bus.broker.queue import Counts
from local_service_bus.broker.refusals import DETACH_FORCED
from local_service_bus.clock import Clock
from local_service_bus.faults import FaultRule
from local_service_bus.topology import Topology

Result = TypeVar("Result")


def in_loop(loop: AbstractEventLoop, action: Callable[[], Result]) -> Result:
    """Run a step in the thread of a loop and wait for it. What it raises comes out here."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(action())
        except Exception as error:  # It belongs to the caller.
            done.set_exception(error)

    loop.call_soon_threadsafe(run)
    return done.result()


class RunningEndpoint:
    """A running endpoint; its methods may be called from any thread.

    Attributes:
        port: On 127.0.0.1.
        connection_string: For `ServiceBusClient.from_connection_string`.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, server: AmqpServer, clock: Clock, port: int, *, shared_key: SharedKey
    ) -> None:
        self.port = port
        self.connection_string = shared_key.connection_string(port)
        self._loop = loop
        self._server = server
        self._clock = clock

    def add_fault(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""
        return self._call(lambda: self._server.service.faults.add(rule))

    def clear_faults(self) -> None:
        """Disarm all rules."""
        self._call(self._server.service.faults.clear)

    def fault_hits(self, rule_id: int) -> int:
        """How often a rule has hit."""
        return self._call(lambda: self._server.service.faults.hits(rule_id))

    def now(self) -> float:
        """The endpoint's time in seconds since 1970."""
        return self._call(self._clock.now)

    def advance_clock(self, seconds: float) -> float:
        """Move its time forward; returns the new time in seconds since 1970."""
        return self._call(lambda: self._server.advance_clock(seconds))

    def counts(self, entity: str) -> Counts:
        """What there is in a queue, subscription (`topic/Subscriptions/name`) or dead-letter queue."""
        return self._call(lambda: self._server.service.broker.counts(entity))

    def history(self, after: int = 0) -> list[Accepted]:
        """The accepted operations after number `after`, in order.

        Raises:
            ForgottenError: there were so many since that not all are kept.
        """
        return self._call(lambda: self._server.service.broker.history.read(after))

    def drop_connections(self) -> None:
        """End all connections at once, without a word."""
        self._call(self._server.drop_connections)

    def detach_links(self, entity: str, condition: str = DETACH_FORCED) -> None:
        """End all links to an entity with an error; connections stay. The service does so after ten idle minutes."""
        self._call(lambda: self._server.detach_links(entity, condition))

    def close(self) -> None:
        """Stop serving. It may be called again."""
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()

    def _call(self, action: Callable[[], Result]) -> Result:
        """Run a step in the server's thread and wait for it."""
        return in_loop(self._loop, action)


@contextmanager
def running_endpoint(
    topology: Topology, *, clock: Clock | None = None, seed: int = 0, port: int = 0
) -> Iterator[RunningEndpoint]:
    """Run an endpoint for the length of a `with` block.

    Args:
        topology: Which queues and topics there are.
        clock: Its time; the system's by default.
        seed: Of lock tokens and of faults with a probability.
        port: 0 for a free one.
    """
    time = clock or Clock()
    shared_key = SharedKey()
    server = new_server(topology, time, seed, shared_key)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="service-bus-endpoint", daemon=True)
    thread.start()
    try:
        bound = asyncio.run_coroutine_threadsafe(server.start(port), loop).result()
        endpoint = RunningEndpoint(loop, server, time, bound, shared_key=shared_key)
        try:
            yield endpoint
        finally:
            endpoint.close()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
