"""The polling loop of a queue function.

Mirrors `QueueListener` of the WebJobs SDK: fetch a batch, start a task for each message, fetch again when few enough are in
flight; pause while the queue is empty, missing or in trouble.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from .backoff import Chance, PollingInterval
from .host_json import QueueOptions
from .storage_queue import Delivery, Queue, QueueMissingError, StorageError
from .waiting import Wait

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class QueueListener:
    """Serves one queue function.

    Attributes:
        invisible: seconds for which a dequeued message stays invisible.
    """

    name: str
    queue: Queue
    process: Callable[[Delivery], Awaitable[None]]
    options: QueueOptions
    invisible: float
    wait: Wait
    chance: Chance
    _in_flight: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until told to stop, then let the messages in flight end; cancelled, drop them as a crash would."""
        try:
            await self._poll_until(stop)
            await self._until_in_flight(0)
        finally:
            for task in self._in_flight:
                task.cancel()
            await asyncio.gather(*self._in_flight, return_exceptions=True)

    async def _poll_until(self, stop: asyncio.Event) -> None:
        interval = PollingInterval(self.options.max_polling_interval.total_seconds(), self.chance)
        found = False
        while not stop.is_set():
            if batch := await self._receive():
                found = True
                self._in_flight.update(asyncio.ensure_future(self.process(delivery)) for delivery in batch)
                await self._until_in_flight(self.options.threshold())
            else:
                await self.wait(stop, interval.next(found=found))
                found = False

    async def _receive(self) -> list[Delivery]:
        try:
            return await self.queue.receive(self.options.batch_size, self.invisible)
        except QueueMissingError:
            logger.debug("%s: its queue does not exist yet", self.name)
        except StorageError as error:
            logger.warning("%s: polling failed: %s", self.name, error)
        return []

    async def _until_in_flight(self, limit: int) -> None:
        while len(self._in_flight) > limit:
            done, _ = await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)
            self._collect(done)
        self._collect({task for task in self._in_flight if task.done()})

    def _collect(self, done: set[asyncio.Task[None]]) -> None:
        self._in_flight -= done
        for task in done:
            task.result()  # An error here is the host's own: let it end the listener loudly.
