"""Messages from their arrival to their end: call, renew, then complete or abandon.

Mirrors `ServiceBusListener` of the WebJobs SDK and `ReceiverManager` of its client, odd corners included: a message that
cannot be completed is only a line in the log, although it will be processed again; and the locks of a batch are not renewed.

The log names function and message, never a body; only a failing function's own error text might quote one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Final

from function_host.kill_switch import Checkpoint, Point
from function_host.waiting import Wait

from .receiver import BrokerError, Delivery, LockLostError, Receiver

logger = logging.getLogger(__name__)

Call = Callable[[Sequence[Delivery]], Awaitable[object]]
"""The function, as its listener sees it."""
Clock = Callable[[], datetime]
"""The time now, with time zone."""

_RENEWAL_BUFFER: Final = 10.0
"""Seconds before the end of a lock at which it is renewed; half of what is left, if that is less."""
_SHORTEST_PAUSE: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBusProcessor:
    """Processes the messages of one function.

    Attributes:
        sessions: whether the entity has sessions, which are locked as a whole.
        auto_complete: whether success completes; nothing else can here, so that otherwise messages come again.
        renewal: seconds for which the lock of a message is renewed. That of a session is renewed as long as it is served, where
            the real client stops so long after its last message; those of batches never are.
        checkpoint: told of each point a message passes.
    """

    name: str
    call: Call
    many: bool
    sessions: bool
    auto_complete: bool
    renewal: float
    clock: Clock
    wait: Wait
    checkpoint: Checkpoint

    async def process(self, receiver: Receiver, deliveries: Sequence[Delivery]) -> bool:
        """Bring messages to their end.

        Returns:
            Whether all was settled as it should be; otherwise another receiver is needed.
        """
        for _ in deliveries:
            self.checkpoint(Point.RECEIVED)
        succeeded = await self._call_renewing(receiver, deliveries)
        if succeeded:
            for _ in deliveries:
                self.checkpoint(Point.HANDLED)
            if not self.auto_complete:
                return True
        settle = self._complete if succeeded else self._abandon
        # One after the other, where the real host does it side by side: Python's receivers are not for several at once. Here it
        # would be no faster, and once a connection is cut nearly all would fail with errors of the client's own.
        return all([await settle(receiver, delivery) for delivery in deliveries])

    async def _call_renewing(self, receiver: Receiver, deliveries: Sequence[Delivery]) -> bool:
        if self.sessions or self.many:
            return await self._call_logging(deliveries)
        async with self._renewing(receiver, deliveries[0], self.renewal):
            return await self._call_logging(deliveries)

    async def _call_logging(self, deliveries: Sequence[Delivery]) -> bool:
        ids = ", ".join(delivery.id for delivery in deliveries)
        logger.debug("%s: messages %s", self.name, ids)
        try:
            await self.call(deliveries)
        except Exception:
            # Whatever a function raises counts as its failure; nothing of it may end the listener.
            logger.exception("%s: failed for messages %s", self.name, ids)
            return False
        return True

    @asynccontextmanager
    async def holding(self, receiver: Receiver) -> AsyncIterator[None]:
        """Keep a session's lock as long as the context is open, while nothing comes, too; that of batches is not kept."""
        if self.many or not self.renewal:
            yield
            return
        async with self._renewing(receiver, None, inf):
            yield

    @asynccontextmanager
    async def _renewing(self, receiver: Receiver, delivery: Delivery | None, seconds: float) -> AsyncIterator[None]:
        done = asyncio.Event()
        renewal = asyncio.create_task(self._renew_until(done, receiver, delivery, seconds))
        try:
            yield
        finally:
            # A renewal under way is awaited: its connection is the one that settles.
            done.set()
            await renewal

    async def _renew_until(
        self, done: asyncio.Event, receiver: Receiver, delivery: Delivery | None, left: float
    ) -> None:
        what, until = "its session" if delivery is None else f"message {delivery.id}", receiver.locked_until(delivery)
        while (locked := (until - self.clock()).total_seconds()) > 0:
            pause = max(locked - min(locked / 2, _RENEWAL_BUFFER), _SHORTEST_PAUSE)
            if pause > left or await self.wait(done, pause):
                return
            left -= pause
            try:
                until = await receiver.renew(delivery)
            except LockLostError:
                logger.warning("%s: the lock of %s was lost", self.name, what)
                return
            except BrokerError as error:
                logger.warning("%s: the lock of %s was not renewed: %s", self.name, what, error)

    async def _complete(self, receiver: Receiver, delivery: Delivery) -> bool:
        try:
            await receiver.complete(delivery)
        except BrokerError as error:
            logger.warning("%s: message %s was processed, but not completed: %s", self.name, delivery.id, error)
            # The real client gives back what it could not complete, unless the lock is lost; a batch it leaves locked.
            if not self.many and not isinstance(error, LockLostError):
                await self._abandon(receiver, delivery)
            return False
        return True

    async def _abandon(self, receiver: Receiver, delivery: Delivery) -> bool:
        try:
            await receiver.abandon(delivery)
        except BrokerError as error:
            logger.warning("%s: message %s was not given back: %s", self.name, delivery.id, error)
            return False
        return True
