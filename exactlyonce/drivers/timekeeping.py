"""Telling those who wait that their time is over, whatever is under way for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from exactlyonce.drivers.deadlines import Deadline
from exactlyonce.drivers.runtime import Clock


class _Timed(NamedTuple):
    done: asyncio.Future[None]
    deadline: Deadline
    late: Callable[[], Exception]


class Timekeeper:
    """One timer for all who wait, since one for each would cost a good part of what a delivery costs.

    Args:
        clock: waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timed: deque[_Timed] = deque()
        self._timer: asyncio.Task[None] | None = None

    def watch(self, done: asyncio.Future[None], deadline: Deadline, late: Callable[[], Exception]) -> None:
        """See that a future is done at its deadline.

        Args:
            done: the future.
            deadline: no earlier than those of all that were watched before.
            late: what it fails with, if it is not done by then.
        """
        while self._timed and self._timed[0].done.done():
            self._timed.popleft()
        self._timed.append(_Timed(done, deadline, late))
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._keep(), name="exactlyonce deadlines")

    def stop(self) -> None:
        """Watch nobody any more."""
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
