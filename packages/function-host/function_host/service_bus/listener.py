"""The loops of a Service Bus function.

Mirrors `ServiceBusListener` of the WebJobs SDK and the processors of its client. Each loop has a receiver of its own and
calls the function again when the last call is settled: up to `maxConcurrentCalls` loops with one message each, up to
`maxConcurrentSessions` loops that each serve one session after the other, or one loop with batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from function_host.host_json import ServiceBusOptions
from function_host.waiting import Wait

from .processor import ServiceBusProcessor
from .receiver import BrokerError, Receiver, Source

T = TypeVar("T")

logger = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 5.0
"""How long one request waits at the broker, for a message or for a session that has some. Nobody sees where one ends."""
_SPARE: Final = 2
"""Loops that wait for something to do. More are begun when they have found it: each takes a connection of its own."""
_PAUSE_SECONDS: Final = 1.0
"""After trouble with the broker, beyond what the client's own retries took."""


class ServiceBusListener:
    """Serves one function: with receivers from a source, as host.json's section on Service Bus says."""

    def __init__(self, source: Source, processor: ServiceBusProcessor, options: ServiceBusOptions, wait: Wait) -> None:
        self._source = source
        self._processor = processor
        self._idle_seconds = options.session_idle_timeout.total_seconds()
        self._wait = wait
        if processor.many:  # Batches are taken one after the other, with sessions too.
            self._count, self._most = options.max_message_batch_size, 1
        else:
            self._count = 1
            self._most = options.max_concurrent_sessions if processor.sessions else options.calls()
        self._running = self._busy = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, and let the running calls end; cancelled, drop their messages as a crash would."""
        async with asyncio.TaskGroup() as loops:  # An error in it is the host's own: let it end the listener loudly.
            self._ensure_spare(loops, stop)

    def _ensure_spare(self, loops: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        while self._running < self._most and self._running - self._busy < _SPARE:
            self._running += 1
            loops.create_task(self._serve(loops, stop))

    async def _serve(self, loops: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        """One loop, until told to stop, or until enough others wait."""
        while not stop.is_set() and not self._is_surplus():
            try:
                receiver = await _unless(stop, self._source.open(_WAIT_SECONDS))
                if receiver is not None:
                    await self._drain(loops, receiver, stop)
            except BrokerError as error:  # noqa: PERF203 - the loop goes on whatever the broker does
                logger.warning("%s: receiving failed: %s", self._processor.name, error)
                await self._wait(stop, _PAUSE_SECONDS)
        self._running -= 1

    async def _drain(self, loops: asyncio.TaskGroup, receiver: Receiver, stop: asyncio.Event) -> None:
        try:
            if self._processor.sessions:
                with self._at_work(loops, stop):
                    async with self._processor.holding(receiver):
                        await self._process_session(receiver, stop)
            else:
                await self._process_messages(loops, receiver, stop)
        finally:
            with suppress(BrokerError):
                await receiver.close()

    async def _process_session(self, receiver: Receiver, stop: asyncio.Event) -> None:
        """Process what comes, until told to stop, until nothing comes for long, or until the lock is lost."""
        seconds = min(_WAIT_SECONDS, self._idle_seconds)
        idle, good = 0.0, True
        while good and not stop.is_set() and idle < self._idle_seconds:
            if deliveries := await _unless(stop, receiver.receive(self._count, seconds)):
                good, idle = await self._processor.process(receiver, deliveries), 0.0
            else:
                idle += seconds

    async def _process_messages(self, loops: asyncio.TaskGroup, receiver: Receiver, stop: asyncio.Event) -> None:
        """Process what comes, until told to stop, until nothing comes and others wait for it, or until a lock is lost."""
        good = True
        while good and not stop.is_set():
            if deliveries := await _unless(stop, receiver.receive(self._count, _WAIT_SECONDS)):
                with self._at_work(loops, stop):
                    good = await self._processor.process(receiver, deliveries)
            elif self._is_surplus():
                return

    def _is_surplus(self) -> bool:
        return self._running - self._busy > _SPARE

    @contextmanager
    def _at_work(self, loops: asyncio.TaskGroup, stop: asyncio.Event) -> Iterator[None]:
        self._busy += 1
        self._ensure_spare(loops, stop)
        try:
            yield
        finally:
            self._busy -= 1


async def _unless(stop: asyncio.Event, request: Coroutine[Any, Any, T]) -> T | None:
    """The reply to a request; None if told to stop while it waits, which takes it back."""
    asking, told = asyncio.create_task(request), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({asking, told}, return_when=asyncio.FIRST_COMPLETED)
        return await asking if asking.done() else None
    finally:
        told.cancel()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
