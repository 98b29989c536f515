"""Runs generators of effects under asyncio. Cancelling it equals a crash between two effects, which every protocol survives."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.blobs.port import NoBlobs
from exactlyonce.drivers.book import Books
from exactlyonce.drivers.observer import Delivery
from exactlyonce.drivers.overdue import divided
from exactlyonce.drivers.retry import Deadline, Pause, Retrying, Runtime
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.effects.library import CloseNumbers, DeleteBlobs, FindPaid, OpenNumbers, WriteOnce, Written
from exactlyonce.effects.port import AsyncPort
from exactlyonce.records.outbox import Output
from exactlyonce.stores.port import AsyncStore
from exactlyonce.transports.port import AsyncTransport, SendReply
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes

# The publisher: sends outputs to the queues and topics of their destinations.
#
# Many outputs go in portions. Accepted portions stay accepted when another one fails, and the retry sends only the rest.
# Otherwise a message with five thousand outputs would never be done where a queue takes a thousand in the time of a delivery.


PORTION: Final = 128
"""Most outputs in one call of a transport."""
LONGEST: Final = 30.0
"""Seconds after which no further portion is sent."""
MOST_REMEMBERED: Final = 100_000
"""Accepted outputs that are remembered: some 20 MB."""
REMEMBERED_FOR: Final = 600.0
"""Seconds for which an accepted output is remembered: its publish is tried again within minutes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """The queue or topic of a destination.

    Attributes:
        transport: carries its messages.
        name: of the queue or topic.
    """

    transport: AsyncTransport
    name: str


class _Key(NamedTuple):
    id: str
    content: int  # A hash: an output of the same id may have another content.


class Accepted:
    """Outputs of a partly failed publish that their queues already accepted, so that the retry sends only the rest.

    They are forgotten once the whole publish succeeds: publishing the same outputs again after that is intended. Losing an
    entry costs a copy, never the guarantee.

    Args:
        now: seconds, from any moment on.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[_Key, float] = OrderedDict()

    def missing(self, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
        """The outputs that are not known to be accepted."""
        if not self._seen:
            return outputs  # As nearly always.
        oldest = self._now() - REMEMBERED_FOR
        return tuple(one for one in outputs if self._seen.get(_key(one), oldest) <= oldest)

    def note(self, outputs: Iterable[Output]) -> None:
        """Remember outputs that their queues took, though not all of their publish."""
        for key in map(_key, outputs):
            self._seen.pop(key, None)  # An output that is noted again becomes the newest.
            self._seen[key] = self._now()
        while len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)

    def forget(self, outputs: Iterable[Output]) -> None:
        """Forget the outputs of a publish that succeeded as a whole."""
        if self._seen:
            for output in outputs:
                self._seen.pop(_key(output), None)


def _key(output: Output) -> _Key:
    return _Key(output.id, hash(output))


class Publisher:
    """Performs `Publish`: each output goes to its destination's address; all addresses are served at the same time.

    Args:
        addresses: of all destinations.
        new_mark: makes a unique mark for each publish, which becomes part of the ids that the transport sees; None for no
            mark. Without a mark, a broker with duplicate detection drops outputs that are sent again. Envelopes do not change.
        remembers: whether accepted outputs of a partly failed publish are left out of the retry.
        now: seconds, from any moment on.
    """

    def __init__(
        self,
        addresses: Mapping[str, Address],
        new_mark: Callable[[], str] | None = None,
        *,
        remembers: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = dict(addresses)
        self._new_mark = new_mark
        self._accepted = Accepted(now) if remembers else None
        self._now = now
        self._portions = dict.fromkeys(self._addresses, PORTION)

    @property
    def destinations(self) -> frozenset[str]:
        """The destinations that the application has."""
        return frozenset(self._addresses)

    @property
    def limits(self) -> dict[str, int]:
        """For each destination the longest envelope it takes, in bytes."""
        return {name: address.transport.max_bytes for name, address in self._addresses.items()}

    async def publish(self, effect: Publish) -> SendReply:
        """Publish outputs; UNKNOWN if any may not have arrived, or has a destination that the application no longer has."""
        missing = effect.outputs if self._accepted is None else self._accepted.missing(effect.outputs)
        by_destination: dict[str, deque[Output]] = defaultdict(deque)
        for output in missing:
            by_destination[output.destination].append(output)
        # The entity goes on owing what has no destination: dropping it would lose it.
        lost = [by_destination.pop(name) for name in sorted(by_destination.keys() - self._addresses.keys())]
        for outputs in lost:
            text = "output %s is owed to %s, which is no longer a destination of this application"
            _log.error(text, outputs[0].id, outputs[0].destination)
        mark = None if self._new_mark is None else self._new_mark()
        sends = [self._send_all(name, outputs, mark) for name, outputs in by_destination.items()]
        # A single destination, as nearly always, needs no task of its own.
        rests = await asyncio.gather(*sends) if len(sends) > 1 else [await one for one in sends]
        return self._replied(effect, {output for rest in (*rests, *lost) for output in rest})

    def _replied(self, effect: Publish, rest: set[Output]) -> SendReply:
        """The reply to an effect, given the outputs that may not have arrived."""
        if self._accepted is None:
            return UNKNOWN if rest else PUBLISHED
        if rest:
            self._accepted.note(output for output in effect.outputs if output not in rest)
            return UNKNOWN
        self._accepted.forget(effect.outputs)
        return PUBLISHED

    async def _send_all(self, destination: str, outputs: deque[Output], mark: str | None) -> deque[Output]:
        """Send to one destination, and return the outputs that may not have arrived.

        A failed portion goes to the end of the line, since one of its outputs may be the cause; two failures in a row are the
        destination's fault. After a failure portions are half as large, until one is accepted: a slow destination that takes
        ten outputs in time would never take a large portion.
        """
        began, failed = self._now(), False
        while outputs and self._now() - began < LONGEST:
            size = self._portions[destination]
            portion = [outputs.popleft() for _ in range(min(size, len(outputs)))]
            if await self._send(destination, portion, mark) is PUBLISHED:
                failed = False
                if len(portion) == size:  # A smaller portion says nothing about larger ones.
                    self._portions[destination] = min(2 * size, PORTION)
            else:
                self._portions[destination] = max(len(portion) // 2, 1)
                others = bool(outputs)
                outputs.extend(portion)
                if failed or not others:
                    break
                failed = True
        return outputs

    async def _send(self, destination: str, outputs: Sequence[Output], mark: str | None) -> SendReply:
        address = self._addresses[destination]
        marked = outputs if mark is None else [replace(output, id=f"{output.id}#{mark}") for output in outputs]
        return await address.transport.send(address.name, tuple(marked))


Result = TypeVar("Result")


class AsyncDriver:
    """Performs the effects that generators yield.

    Args:
        store: of documents.
        publisher: of outputs.
        runtime: time and chance.
        blobs: the container for blobs; None for none.
        lifetimes: the application's present lifetimes of messages.
        books: the books of this process; None for some of this driver's own.

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
        """Run a generator to its result, or to the exception that it raises."""
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
        """Make attempts until one finishes, or there is no time for more, and report them to the observer.

        Args:
            retrying: retries unfinished attempts.
            entity: the attempts' entity.
            attempt: begins an attempt.
            memory: for the first attempt.
            deliveries: the observer's deliveries that the attempts are for; None for maintenance.
            deadline: for all attempts; None for one that starts now.

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
            # The first runs in this task: another task would cost more than the driver's whole work for a request.
            return await self._performed(effect.first), await second
        except BaseException:
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)  # So that its error, if any, is retrieved.
            raise
