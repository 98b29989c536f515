"""Deadlines: how long a delivery or a chore may take, by the clock that drivers are given."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from exactlyonce.drivers.runtime import Clock

ADVICE: Final = (
    "Nothing is lost: give the message back to its queue. If this stays, see why the store or a queue is slow, or raise "
    "EXACTLYONCE__deliveryTimeout."
)
"""What to do when time is over."""


class OutOfTime(Exception):
    """What would have come next would not have ended in time; the text says what that was. It never leaves the drivers."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a delivery, or a chore, has to have come to an end.

    By the time of day: if that is set back meanwhile, the end comes as much later.

    Attributes:
        now: the time of day.
        began: when it did.
        seconds: that it may take.
    """

    now: Callable[[], datetime]
    began: datetime
    seconds: float

    @property
    def left(self) -> float:
        """Seconds until then; 0 or less once it is over."""
        return self.seconds - (self.now() - self.began).total_seconds()

    def require(self, seconds: float, what: str) -> None:
        """Raise `OutOfTime` unless what takes so many seconds ends in time.

        Args:
            seconds: that it takes; 0 if that is not known.
            what: it is, as the subject of a sentence.
        """
        left = self.left
        if left <= seconds:
            needs = f"would have taken {seconds:.3g} s" if seconds else "was not begun"
            raise OutOfTime(f"{self.seconds - left:.3g} of {self.seconds:g} s were over, and {what} {needs}")


class _Timed(NamedTuple):
    done: asyncio.Future[None]
    deadline: Deadline
    late: Callable[[], Exception]


class Timekeeper:
    """Fails waiting deliveries at their deadline; one timer serves all, since a timer for each would be expensive.

    Args:
        clock: waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timed: deque[_Timed] = deque()
        self._timer: asyncio.Task[None] | None = None

    def watch(self, done: asyncio.Future[None], deadline: Deadline, late: Callable[[], Exception]) -> None:
        """Make a future fail at its deadline, unless it is done by then.

        Args:
            done: the future.
            deadline: no earlier than those of the futures that were watched before.
            late: makes the error that it fails with.
        """
        while self._timed and self._timed[0].done.done():
            self._timed.popleft()
        self._timed.append(_Timed(done, deadline, late))
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._keep(), name="exactlyonce deadlines")

    def stop(self) -> None:
        """Stop watching all futures."""
        self._timed.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _keep(self) -> None:
        while self._timed:
            first = self._timed[0]
            left = first.deadline.left
            if left > 0 and not first.done.done():
                await self._clock.sleep(left)
                continue
            self._timed.popleft()
            if not first.done.done():
                first.done.set_exception(first.late())
