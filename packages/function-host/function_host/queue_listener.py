"""The polling loop of a queue function.

Mirrors `QueueListener` of the WebJobs SDK: fetch a batch, start a task for each message, fetch again when few enough are in
flight; pause while the queue is empty, missing or in trouble.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .backoff import Chance, PollingInterval
from .host_json import QueueOptions
from .storage_queue import Delivery, Queue, QueueMissingError, StorageError
from .waiting import Wait

logger = logging.getLogger(__name__)


class QueueListener:
    """Serves one queue function.

    Args:
        name: the function's name, for the log.
        queue: where messages come from.
        process: what is done with each.
        options: host.json's section on queues.
        invisible: seconds for which a dequeued message stays invisible.
        wait: how to wait.
        chance: the chance in the back-off.
    """

    def __init__(
        self,
        *,
        name: str,
        queue: Queue,
        process: Callable[[Delivery], Awaitable[None]],
        options: QueueOptions,
        invisible: float,
        wait: Wait,
        chance: Chance,
    ) -> None:
        self._name = name
        self._queue = queue
        self._process = process
        self._batch_size = options.batch_size
        self._threshold = options.threshold()
        self._interval = PollingInterval(options.max_polling_interval.total_seconds(), chance)
        self._invisible = invisible
        self._wait = wait
        self._in_flight: set[asyncio.Task[None]] = set()

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
        found = False
        while not stop.is_set():
            if batch := await self._receive():
                found = True
                self._in_flight.update(asyncio.create_task(self._run_one(delivery)) for delivery in batch)
                await self._until_in_flight(self._threshold)
            else:
                await self._wait(stop, self._interval.next(found=found))
                found = False

    async def _receive(self) -> list[Delivery]:
        try:
            return await self._queue.receive(self._batch_size, self._invisible)
        except QueueMissingError:
            logger.debug("%s: its queue does not exist yet", self._name)
        except StorageError as error:
            logger.warning("%s: polling failed: %s", self._name, error)
        return []

    async def _run_one(self, delivery: Delivery) -> None:
        await self._process(delivery)

    async def _until_in_flight(self, limit: int) -> None:
        while len(self._in_flight) > limit:
            done, _ = await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)
            self._collect(done)
        self._collect({task for task in self._in_flight if task.done()})

    def _collect(self, done: set[asyncio.Task[None]]) -> None:
        self._in_flight -= done
        for task in done:
            task.result()  # An error here is the host's own: let it end the listener loudly.
