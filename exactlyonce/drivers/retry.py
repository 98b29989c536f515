"""Retries, deadlines, time and chance for both drivers. Retries are generators around generators, pure but for chance and time.

Delays grow by exponential back-off with decorrelated jitter and a cap ("Exponential Backoff And Jitter", AWS Architecture
Blog): each is drawn between the base and three times the delay before, so that attempts that collided do not collide again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from random import Random, SystemRandom
from secrets import token_hex
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.observer import ObserverSlot
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.port import Busy
from exactlyonce.errors import TryAgainLater
from exactlyonce.values.envelope import EntityRef

# Time and chance, injected: tests move the clock and seed the chance.


class Clock(Protocol):
    """The present, and pauses."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause this task."""
        ...

    def block(self, seconds: float) -> None:
        """Pause this thread."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def block(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Runtime:
    """Time, chance and the observer: a driver's inputs besides store and transports.

    Attributes:
        clock: time.
        random: jitter of delays.
        new_transaction: makes unique transaction ids.
        observer_slot: holds the observer, if there is one.
        present: the store's time of day; None for the clock's.
    """

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    new_transaction: Callable[[], str] = field(default=partial(token_hex, 16))
    observer_slot: ObserverSlot = field(default_factory=ObserverSlot)
    present: Callable[[], datetime] | None = None

    def now(self) -> datetime:
        """The present, by the store's time."""
        return (self.present or self.clock.now)()

    def begin(self, effect: Begin) -> Begun:
        """Perform `Begin`."""
        return Begun(self.now(), tuple(self.new_transaction() for _ in range(effect.count)))


# The store's time judges ages, whatever a machine's clock says.


AGREED: Final = timedelta(seconds=30)
"""Tolerated difference of a clock from the store's: the dates of replies are whole seconds, and replies take time to arrive."""


class StoreTime:
    """This machine's clock, as long as it agrees with the dates of the store's replies; else the store's time.

    It is at most `AGREED` ahead of the store's time, and at most `AGREED` and the latest reply's latency behind it: well within
    the tolerance of lifetimes for clocks.

    Args:
        clock: the clock of this machine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = timedelta(0)

    def compare(self, date: datetime) -> None:
        """Compare the clock with the date of a reply."""
        ahead = date - self._clock.now()
        self._ahead = ahead if abs(ahead) > AGREED else timedelta(0)

    def now(self) -> datetime:
        """The present."""
        return self._clock.now() + self._ahead


# Deadlines: longest duration of a delivery or a chore, by the drivers' clock.


ADVICE: Final = (
    "Nothing is lost: give the message back to its queue. If this persists, find out why the store or a queue is slow, or "
    "raise EXACTLYONCE__deliveryTimeout."
)
"""Advice in the error of an exceeded deadline."""


class OutOfTime(Exception):
    """The next step would not have ended in time; the text names it. It never leaves the drivers."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The latest end of a delivery, or of an entity's maintenance.

    It goes by the time of day: a clock that is set back moves the end by as much.

    Attributes:
        now: the time of day.
        began: the start.
        seconds: longest time since the start.
    """

    now: Callable[[], datetime]
    began: datetime
    seconds: float

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 or less after it."""
        return self.seconds - (self.now() - self.began).total_seconds()

    def require(self, seconds: float, what: str) -> None:
        """Raise `OutOfTime` unless a step of so many seconds ends in time.

        Args:
            seconds: duration of the step; 0 if unknown.
            what: the step, as the subject of a sentence.
        """
        left = self.left
        if left <= seconds:
            needs = f"would have taken {seconds:.3g} s" if seconds else "was not begun"
            raise OutOfTime(f"{self.seconds - left:.3g} of {self.seconds:g} s were over, and {what} {needs}")


class _Timed(NamedTuple):
    deadline: Deadline
    is_over: Callable[[], bool]
    call: Callable[[], None]


class Timekeeper:
    """Calls back at deadlines; a single timer serves all, since a timer for each would be expensive.

    Args:
        clock: the clock for waiting.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timed: deque[_Timed] = deque()
        self._timer: asyncio.Task[None] | None = None

    def watch(self, deadline: Deadline, is_over: Callable[[], bool], call: Callable[[], None]) -> None:
        """Call back at a deadline, unless the call is no longer needed by then.

        Args:
            deadline: no earlier than deadlines watched before.
            is_over: whether the call is no longer needed.
            call: the function to call.
        """
        while self._timed and self._timed[0].is_over():
            self._timed.popleft()
        self._timed.append(_Timed(deadline, is_over, call))
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._keep(), name="exactlyonce deadlines")

    def stop(self) -> None:
        """Stop watching."""
        self._timed.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _keep(self) -> None:
        while self._timed:
            first = self._timed[0]
            left = first.deadline.left
            if left > 0 and not first.is_over():
                await self._clock.sleep(left)
                continue
            self._timed.popleft()
            if not first.is_over():
                first.call()


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
            reply = yield from effect
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
            reply = yield from effect
        return UNKNOWN if isinstance(reply, Busy) else reply


def _wait(seconds: float, deadline: Deadline | None, what: str) -> Step[None]:
    """Pause; raise `OutOfTime` if the pause would outlast the deadline."""
    if deadline is not None:
        deadline.require(seconds, what)
    yield from Pause(seconds)


def _is_refused(reply: Any) -> bool:
    return isinstance(reply, Busy) or reply is BEHIND
