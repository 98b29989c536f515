"""An event loop on virtual time: hours pass in no time, and one seed runs the same way everywhere.

Nothing here waits, and nothing reads a clock of the machine. Ready callbacks run in the order of becoming ready, as asyncio
promises; seeds differ in the times at which replies arrive.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from datetime import datetime, timedelta, timezone
from itertools import count
from math import inf
from typing import Any, Final, TypeVar

Result = TypeVar("Result")
START: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Overdue(Exception):
    """Work was still under way at a time when all should be at rest."""


class Interrupted(Exception):
    """An event after which there is no need to go on."""


class _Task(asyncio.Task[Any]):
    """Hashes to its number, not to its address: sets of tasks have the same order in every run."""

    def __init__(self, number: int, *arguments: Any, **more: Any) -> None:
        self._number = number
        super().__init__(*arguments, **more)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that tasks, futures and timers need. There is no I/O here.

    Args:
        limit: most timers that may go off in all.

    Attributes:
        complaints: exceptions without a handler.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self.complaints: list[str] = []
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.Handle]] = []
        self._order = count()
        self._numbers = count()

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def run(self, job: Coroutine[Any, Any, Result]) -> Result:
        """Run until a coroutine is done, and then all ready callbacks; return the result, or raise as the coroutine does.

        Raises:
            Overdue: the coroutine waits for an event that nothing planned brings about; or there were too many timers.
        """
        task = self.create_task(job)
        with suppress(Interrupted):
            self.run_until_idle(inf, task.done)
        if not task.done():
            raise Overdue("it waits for what nothing planned brings about")
        return task.result()

    def run_for(self, seconds: float) -> None:
        """Run the ready callbacks, and the timers of the next seconds. Raises `Overdue` after too many timers."""
        end = self._now + seconds
        with suppress(Interrupted):
            self.run_until_idle(inf, lambda: not self._timers or self._timers[0][0] > end)
        self._now = max(self._now, end)

    def run_until_idle(self, deadline: float, unless: Callable[[], bool] = lambda: False) -> None:
        """Run until nothing is ready and nothing is planned.

        Args:
            deadline: in virtual seconds since the start.
            unless: whether there is no need to go on.

        Raises:
            Interrupted: `unless` is true.
            Overdue: a timer is planned for after the deadline; or there were too many timers.
        """
        around = asyncio._get_running_loop()  # noqa: SLF001  # Made for event loops. A test may be a coroutine itself.
        asyncio._set_running_loop(self)  # noqa: SLF001
        try:
            self._run(deadline, unless)
        finally:
            asyncio._set_running_loop(around)  # noqa: SLF001

    def _run(self, deadline: float, unless: Callable[[], bool]) -> None:
        ready, timers = self._ready, self._timers
        while True:
            while ready:
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()  # noqa: SLF001  # Loops run handles so, here and in the standard library.
            if unless():
                raise Interrupted
            if not timers:
                return
            when, _, handle = heapq.heappop(timers)
            if handle.cancelled():
                continue
            self._left -= 1
            if self._left < 0:
                raise Overdue("it goes on and on: more timers went off than may")
            if when > deadline:
                raise Overdue("something is planned for later than the deadline")
            self._now = max(self._now, when)
            ready.append(handle)

    def call_soon(  # type: ignore[override]  # Python 3.10 has no words for the arguments of a callback.
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, Result] | Coroutine[Any, Any, Result],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        more = {} if context is None else {"context": context}  # Python 3.10 knows no contexts here.
        return _Task(next(self._numbers), coro, loop=self, name=name, **more)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by asyncio; a cancelled timer is skipped when its time comes."""


class VirtualClock:
    """The loop's time as the drivers' clock, and as the store's; `ahead` is the seconds by which it is wrong."""

    def __init__(self, loop: VirtualLoop, ahead: float = 0.0, start: datetime = START) -> None:
        self._loop = loop
        self._ahead = ahead
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time() + self._ahead)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def block(self, seconds: float) -> None:
        raise NotImplementedError(f"Nobody may block a simulation, not even for {seconds} s.")
