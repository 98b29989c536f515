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
    "Nothing is lost: give the message back to its queue. If this persists, find out why the store or a queue is slow, or "
    "raise EXACTLYONCE__deliveryTimeout."
)
"""Advice in the error of an exceeded deadline."""


class OutOfTime(Exception):
    """The next step would not have ended in time; the text names it. It never leaves the drivers."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of the time that a delivery, or an entity's maintenance, may take.

    It goes by the time of day: a clock that is set back moves the end by as much.

    Attributes:
        now: the time of day.
        began: the start.
        seconds: that may pass from the start.
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
            seconds: duration of the step; 0 if it is not known.
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
    """Calls back at deadlines; one timer serves all, since a timer for each would be expensive.

    Args:
        clock: waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timed: deque[_Timed] = deque()
        self._timer: asyncio.Task[None] | None = None

    def watch(self, deadline: Deadline, is_over: Callable[[], bool], call: Callable[[], None]) -> None:
        """Call back at a deadline, unless what it is for is over by then.

        Args:
            deadline: no earlier than those that were watched before.
            is_over: whether the call is needed no more.
            call: what to call.
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
