"""Time and chance for all drivers, and deadlines."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from random import Random, SystemRandom
from secrets import token_hex
from typing import Final, NamedTuple, Protocol

from exactlyonce.drivers.observer import ObserverSlot
from exactlyonce.effects.effect import Begin, Begun

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
        random: jitter of delays.
        present: the store's time of day; None for the clock's.
        now: tells the present, by the store's time.
    """

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    new_transaction: Callable[[], str] = field(default=partial(token_hex, 16))
    observer_slot: ObserverSlot = field(default_factory=ObserverSlot)
    present: Callable[[], datetime] | None = None
    now: Callable[[], datetime] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "now", self.present or self.clock.now)

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
    """Calls back at deadlines; a single timer serves all, since a timer for each would be expensive."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timed: deque[_Timed] = deque()
        self._timer: asyncio.Task[None] | None = None

    def watch(self, deadline: Deadline, is_over: Callable[[], bool], call: Callable[[], None]) -> None:
        """Call back at a deadline, unless the call is no longer needed by then.

        Args:
            deadline: no earlier than deadlines watched before.
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
