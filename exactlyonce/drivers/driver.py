"""Drivers: run generators of effects, and retry requests and attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, TypeVar

from exactlyonce.drivers.book import BlockingBooks, Books
from exactlyonce.drivers.observer import Delivery
from exactlyonce.drivers.overdue import divided
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import ADVICE, Deadline, OutOfTime, Runtime
from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, AsyncPort, Begin, Begun, Busy, Effect, Port, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import CloseNumbers, DeleteBlobs, FindPaid, OpenNumbers, WriteOnce, Written
from exactlyonce.errors import TryAgainLater
from exactlyonce.stores.blobs.port import NoBlobs
from exactlyonce.stores.port import AsyncStore, Store
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

# Retries: generators around generators, pure but for chance and time.
#
# Delays grow by exponential back-off with decorrelated jitter and a cap ("Exponential Backoff And Jitter", AWS Architecture
# Blog): each is drawn between the base and three times the delay before, so that attempts that collided do not collide again.


Result = TypeVar("Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pause(Effect[None]):
    """Ask the driver to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """A retry policy.

    Attributes:
        base: shortest delay, in seconds.
        cap: longest delay, in seconds.
        tries: number of tries, the first included.
        seconds: longest time of all tries of a delivery, or of an entity's maintenance; None for no limit.
    """

    base: float = 0.02
    cap: float = 2.0
    tries: int = 10
    seconds: float | None = None

    def delays(self, random: Random) -> Iterator[float]:
        """The delays between the tries, in seconds: the number of tries less 1."""
        delay = self.base
        for _ in range(self.tries - 1):
            delay = min(self.cap, random.uniform(self.base, delay * 3))
            yield delay


@dataclass(frozen=True)
class Retrying:
    """Applies a policy to requests and to attempts."""

    backoff: Backoff
    random: Random

    def begin(self, now: Callable[[], datetime]) -> Deadline | None:
        """The deadline of a delivery that starts now; None if the policy has no time limit.

        Args:
            now: the time of day.
        """
        seconds = self.backoff.seconds
        return None if seconds is None else Deadline(now, now(), seconds)

    def process(
        self,
        entity: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory,
        deadline: Deadline | None = None,
    ) -> Step[Result]:
        """Make attempts until a result is not `Again`, each with the memory of the attempt before.

        No request is made after the deadline, and no pause that would outlast it, even in the middle of an attempt: the stop
        equals a crash between two effects.

        Raises:
            TryAgainLater: the policy's tries are used up, or there was no time for more.
            StoredDataError: the strategy refused a document of the store.
        """
        delays = self.backoff.delays(self.random)
        number, before = 0, ""
        try:
            while True:
                number += 1
                outcome = yield from self.insist(attempt(memory), deadline)
                if not isinstance(outcome, Again):
                    return outcome
                memory, before = outcome.memory, f"; the attempt before it did not finish because {outcome.reason}"
                if outcome.progressed:
                    delays = self.backoff.delays(self.random)
                    continue
                delay = next(delays, None)
                if delay is None:
                    raise TryAgainLater(
                        f"Entity {entity}: {self.backoff.tries} attempts did not finish, the last one because "
                        f"{outcome.reason}. Nothing is lost: give the message back to its queue."
                    )
                text = "entity %s: attempt %d did not finish, because %s; the next one starts in %.3f s"
                _log.info(text, entity, number, outcome.reason, delay)
                yield from _wait(delay, deadline, "the pause before the next attempt")
        except OutOfTime as over:
            raise TryAgainLater(f"Entity {entity}: {over}, in attempt {number}{before}. {ADVICE}") from None

    def insist(self, step: Step[Result], deadline: Deadline | None = None) -> Step[Result]:
        """Run a strategy, and repeat its requests while the store is busy or a replica is behind.

        Raises:
            OutOfTime: there is a deadline, and no time for the next request, or for the pause before it.
        """
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            if deadline is not None:
                deadline.require(0, type(effect).__name__)
            reply = yield effect
            if isinstance(effect, Together):
                first = yield from self._answer(effect.first, reply[0], deadline)
                second = yield from self._answer(effect.second, reply[1], deadline)
                reply = first, second
            else:
                reply = yield from self._answer(effect, reply, deadline)

    def _answer(self, effect: Effect[Any], reply: Any, deadline: Deadline | None) -> Step[Any]:
        """Repeat a request until it is answered. After the last try, a refused request counts as of unknown outcome."""
        if not _is_refused(reply):
            return reply  # As nearly always; no delay is drawn.
        for delay in self.backoff.delays(self.random):
            if not _is_refused(reply):
                return reply
            wanted = reply.retry_after if isinstance(reply, Busy) else None
            whom = "a busy store" if isinstance(reply, Busy) else "a replica that is behind"
            what = f"the pause before asking {whom} for {type(effect).__name__} again"
            yield from _wait(max(delay, wanted or 0.0), deadline, what)
            reply = yield effect
        return UNKNOWN if isinstance(reply, Busy) else reply


def _wait(seconds: float, deadline: Deadline | None, what: str) -> Step[None]:
    """Pause; raise `OutOfTime` if the pause would outlast the deadline."""
    if deadline is not None:
        deadline.require(seconds, what)
    yield Pause(seconds)


def _is_refused(reply: Any) -> bool:
    return isinstance(reply, Busy) or reply is BEHIND


# The drivers: under asyncio, and in a single thread for scripts and for Spark's executors.


class AsyncDriver:
    """Performs the effects of generators. Cancelling a run equals a crash between two effects: every protocol survives it.

    Args:
        blobs: the container for blobs; None for none.
        lifetimes: the application's present lifetimes of messages.
        books: books of this process; None for books of this driver alone.
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


class BlockingDriver:
    """Performs the effects of generators; the effects of a `Together` in sequence.

    Args:
        blobs: the container for blobs; None for none.

    Attributes:
        books: books of this process. End them with the process, or the sweeper searches for the unproved transactions.
    """

    def __init__(
        self,
        store: Store,
        publish: Callable[[Publish], SendReply],
        runtime: Runtime,
        blobs: Port | None = None,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self.books = books = BlockingBooks(self._perform, runtime)
        perform_blobs = (blobs or NoBlobs()).perform
        self._others: Mapping[type[Effect[Any]], Callable[[Any], Any]] = {
            Begin: runtime.begin,
            OpenNumbers: books.open,
            FindPaid: books.find_paid,
            CloseNumbers: books.close,
            Pause: self._pause,
            Together: self._together,
            Publish: publish,
            WriteOnce: perform_blobs,
            DeleteBlobs: perform_blobs,
        }

    def run(self, step: Step[Result]) -> Result:
        """Run a generator to its result, or to its exception."""
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
            reply = self._perform(effect)

    def _perform(self, effect: Effect[Any]) -> Any:
        return self._others.get(type(effect), self._store.perform)(effect)

    def _pause(self, effect: Pause) -> None:
        self._runtime.clock.block(effect.seconds)

    def _together(self, effect: Together[Any, Any]) -> tuple[Any, Any]:
        return self._perform(effect.first), self._perform(effect.second)
