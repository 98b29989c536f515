"""One message from its arrival to its end: call, renew, then delete, release or move to the poison queue.

Mirrors `QueueListener.ProcessMessageAsync` and `QueueProcessor` of the WebJobs SDK, odd corners included: a lost pop receipt
is only a debug line, although the message will then be processed again; and copy and deletion of a poison message are two
requests. The log names function and message, never a body; only a failing function's own error text might quote one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from azure.functions.queue import QueueMessage

from .backoff import RenewalInterval
from .host_json import QueueOptions
from .kill_switch import Checkpoint, Point
from .queue_rules import decode_body
from .storage_queue import Delivery, MessageGoneError, Queue, StorageError
from .waiting import Wait

logger = logging.getLogger(__name__)

Call = Callable[[QueueMessage], Awaitable[object]]
"""The function, as its listener sees it."""


class Step(Enum):
    """What happens next with a message."""

    DELETE = "delete the message: done"
    RELEASE = "make it visible again after host.json's visibilityTimeout"
    POISON = "copy it to the poison queue, then delete it; not atomic"
    LEAVE = "leave it invisible until its invisibility ends: there is no poison queue to move it to"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageProcessor:
    """Processes the messages of one queue function.

    Attributes:
        poison: its poison queue; None where there is none.
        invisible: seconds for which a message in work stays invisible without renewal.
        checkpoint: told of each point a message passes.
    """

    name: str
    call: Call
    queue: Queue
    poison: Queue | None
    options: QueueOptions
    invisible: float
    wait: Wait
    checkpoint: Checkpoint

    async def process(self, delivery: Delivery) -> None:
        """Bring a message to its end. Trouble with storage is logged; the message then comes back by itself."""
        self.checkpoint(Point.RECEIVED)
        body = decode_body(delivery.text, self.options.message_encoding)
        # A count above the maximum: the last delivery ended without a verdict, as of a killed host.
        if body is None or delivery.dequeue_count > self.options.max_dequeue_count:
            step = self._poison_step()
        else:
            succeeded, delivery = await self._call_renewing(delivery, body)
            step = self._step_after(succeeded, delivery.dequeue_count)
            if succeeded:
                self.checkpoint(Point.HANDLED)
        try:
            await self._perform(step, delivery)
        except MessageGoneError:
            logger.debug("%s: message %s is in other hands; it may be processed again", self.name, delivery.id)
        except StorageError as error:
            logger.warning("%s: message %s was not settled (%s): %s", self.name, delivery.id, step.name, error)

    def _step_after(self, succeeded: bool, dequeue_count: int) -> Step:
        """Without a poison queue a failed message is not released, since it would come back at once and for ever."""
        if succeeded:
            return Step.DELETE
        if self.poison is not None and dequeue_count < self.options.max_dequeue_count:
            return Step.RELEASE
        return self._poison_step()

    def _poison_step(self) -> Step:
        return Step.LEAVE if self.poison is None else Step.POISON

    async def _call_renewing(self, delivery: Delivery, body: bytes) -> tuple[bool, Delivery]:
        """Whether the function succeeded, and the message with its latest pop receipt."""
        done = asyncio.Event()
        renewal = asyncio.create_task(self._renew_until(done, delivery))
        try:
            succeeded = await self._call_logging(delivery, body)
        except asyncio.CancelledError:
            renewal.cancel()
            raise
        # A renewal under way is awaited, not cancelled: its reply holds the pop receipt that the deletion needs.
        done.set()
        return succeeded, await renewal

    async def _call_logging(self, delivery: Delivery, body: bytes) -> bool:
        logger.debug("%s: message %s, delivery %d", self.name, delivery.id, delivery.dequeue_count)
        try:
            await self.call(_queue_message(delivery, body))
        except Exception:
            # Whatever a function raises counts as its failure; nothing of it may end the listener.
            logger.exception("%s: failed for message %s, delivery %d", self.name, delivery.id, delivery.dequeue_count)
            return False
        return True

    async def _renew_until(self, done: asyncio.Event, delivery: Delivery) -> Delivery:
        interval = RenewalInterval(self.invisible)
        pause = interval.first()
        while not await self.wait(done, pause):
            try:
                delivery = await self.queue.renew(delivery, self.invisible)
                pause = interval.next(succeeded=True)
            except MessageGoneError:  # noqa: PERF203 - renewals are far apart
                logger.debug("%s: message %s is in other hands; no more renewals", self.name, delivery.id)
                break
            except StorageError as error:
                logger.warning("%s: message %s was not renewed: %s", self.name, delivery.id, error)
                pause = interval.next(succeeded=False)
        return delivery

    async def _perform(self, step: Step, delivery: Delivery) -> None:
        match step:
            case Step.DELETE:
                await self.queue.delete(delivery)
            case Step.RELEASE:
                await self.queue.renew(delivery, self.options.visibility_timeout.total_seconds())
            case Step.POISON if self.poison is not None:
                logger.warning("%s: message %s goes to the poison queue", self.name, delivery.id)
                await self.poison.put(delivery.text)
                self.checkpoint(Point.COPIED)
                await self.queue.delete(delivery)
            case _:
                logger.warning("%s: message %s is left invisible: it has no poison queue", self.name, delivery.id)


def _queue_message(delivery: Delivery, body: bytes) -> QueueMessage:
    return QueueMessage(  # type: ignore[no-untyped-call]
        id=delivery.id,
        body=body,
        dequeue_count=delivery.dequeue_count,
        expiration_time=delivery.expires,
        insertion_time=delivery.inserted,
        time_next_visible=delivery.next_visible,
        pop_receipt=delivery.pop_receipt,
    )
