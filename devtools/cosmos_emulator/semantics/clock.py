"""Time, injected: the semantics never ask the operating system."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """A clock that tests can move forward.

    Args:
        source: Seconds since 1970; the system's clock, or a constant for a clock that only moves when told.
    """

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._advanced = 0.0

    def now(self) -> float:
        """Seconds since 1970."""
        return self._source() + self._advanced

    def advance(self, seconds: float) -> float:
        """Move forward; returns the new time in seconds since 1970."""
        if seconds < 0:
            raise ValueError("The clock moves forward only.")
        self._advanced += seconds
        return self.now()
