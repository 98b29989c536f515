"""The loop of a timer function.

Mirrors `TimerListener` without its schedule monitor: no invocation overlaps another, occurrences that pass while the
function runs are skipped, and nothing is remembered over a restart, so that `past_due` is false unless a caller says so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import azure.functions as func
from azure.functions.timer import TimerRequest

from .functions import TimerTrigger
from .waiting import Wait

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]
"""The time now, with time zone."""


@dataclass(frozen=True, slots=True)
class TimerListener:
    """Serves one timer function, whose name is for the log."""

    name: str
    trigger: TimerTrigger
    call: Callable[[func.TimerRequest], Awaitable[object]]
    clock: Clock
    wait: Wait

    async def run(self, stop: asyncio.Event) -> None:
        """Run the function when it is due, until told to stop."""
        if self.trigger.run_on_startup:
            await self.fire()
        due = self.clock()
        while not stop.is_set():
            # From the last occurrence when the wait ended a little early, which would make it due twice.
            due = self.trigger.schedule.next_after(max(due, self.clock()))
            if not await self._wait_until(due, stop):
                await self.fire()

    async def fire(self, *, past_due: bool = False) -> None:
        """Run the function now; its failure is logged."""
        logger.debug("%s: due", self.name)
        try:
            await self.call(TimerRequest(past_due=past_due, schedule={"AdjustForDST": True}))
        except Exception:
            # Whatever a function raises counts as its failure; nothing of it may end the listener.
            logger.exception("%s: failed", self.name)

    async def _wait_until(self, due: datetime, stop: asyncio.Event) -> bool:
        return await self.wait(stop, max(0.0, (due - self.clock()).total_seconds()))
