"""Runs generators of effects under asyncio. Cancelling a run equals a crash between two effects: every protocol survives it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.blobs.port import NoBlobs
from exactlyonce.drivers.book import Books
from exactlyonce.drivers.observer import Delivery
from exactlyonce.drivers.overdue import divided
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.retry import Deadline, Pause, Retrying, Runtime
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import CloseNumbers, DeleteBlobs, FindPaid, OpenNumbers, WriteOnce, Written
from exactlyonce.effects.port import AsyncPort
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class AsyncDriver:
    """Performs the effects of generators.

    Args:
        store: the store of documents.
        publisher: the sender of outputs.
        runtime: time and chance.
        blobs: the container for blobs; None for none.
        lifetimes: the application's present lifetimes of messages.
        books: books of this process; None for books of this driver alone.

    Attributes:
        observer_slot: holds the observer, if there is one.
        books: the books of this process.
    """

    def __init__(
        self,
        store: AsyncStore,
        publisher: Publisher,
        runtime: Runtime,
        blobs: AsyncPort | None = None,
        lifetimes: Callable[[], Lifetimes] = Lifetimes,
        *,
        books: Books | None = None,
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._runtime = runtime
        self._lifetimes = lifetimes
        self.observer_slot = runtime.observer_slot
        self.books = books = Books(self._performed, runtime) if books is None else books
        perform_blobs = (blobs or NoBlobs()).perform
        self._others: Mapping[type[Effect[Any]], Callable[[Any], Awaitable[Any]]] = {
            Begin: self._begin,
            OpenNumbers: books.open,
            FindPaid: books.find_paid,
            CloseNumbers: books.close,
            Pause: self._pause,
            Together: self._together,
            Publish: self._publish,
            WriteOnce: perform_blobs,
            DeleteBlobs: perform_blobs,
        }

    def now(self) -> datetime:
        """The present, by the store's time."""
        return self._runtime.now()

    async def run(self, step: Step[Result]) -> Result:
        """Run a generator to its result, or to its exception."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = await self._performed(effect)

    async def process(
        self,
        retrying: Retrying,
        entity: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory,
        deliveries: Sequence[Delivery] | None = None,
        *,
        deadline: Deadline | None = None,
    ) -> Result:
        """Make attempts until an attempt finishes, or there is no time for more, and report them to the observer.

        Args:
            retrying: retries unfinished attempts.
            entity: the attempts' entity.
            attempt: begins an attempt.
            memory: for the first attempt.
            deliveries: the observer's deliveries behind the attempts; None for maintenance.
            deadline: the latest end of all attempts; None for a deadline that starts now.

        Raises:
            As `Retrying.process` does.
        """
        deadline = deadline or retrying.begin(self._runtime.clock.now)
        observer = self.observer_slot.observer
        if observer is None:
            return await self.run(retrying.process(entity, attempt, memory, deadline))
        with observer.watching(entity, deliveries) as watch:
            return await self.run(retrying.process(entity, watch.attempts(attempt), memory, deadline))

    def _performed(self, effect: Effect[Any]) -> Awaitable[Any]:
        perform, observer = self._others.get(type(effect), self._store.perform), self.observer_slot.observer
        return perform(effect) if observer is None else observer.perform(effect, perform)

    async def _begin(self, effect: Begin) -> Begun:
        return self._runtime.begin(effect)

    async def _publish(self, effect: Publish) -> SendReply:
        if effect.owed is None:
            return await self._publisher.publish(effect)
        outputs, overdue = divided(effect, self._lifetimes(), self._runtime.now(), self._publisher.destinations)
        for park in overdue:
            if not isinstance(await self._performed(park), Written):
                return UNKNOWN
            _log.error("output %s was parked under %s: %s", park.message.message, park.entity.key, park.message.reason)
        return await self._publisher.publish(replace(effect, outputs=outputs)) if outputs else PUBLISHED

    async def _pause(self, effect: Pause) -> None:
        await self._runtime.clock.sleep(effect.seconds)

    async def _together(self, effect: Together[Any, Any]) -> tuple[Any, Any]:
        second = asyncio.ensure_future(self._performed(effect.second))
        try:
            # The first runs in this task: a further task would cost more than the driver's whole work for a request.
            return await self._performed(effect.first), await second
        except BaseException:
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)  # So that its error, if any, is retrieved.
            raise
