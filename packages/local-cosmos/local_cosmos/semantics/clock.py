"""Time, injected: the semantics never ask the operating system."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONGEST_MOVE = 100 * 366 * 86_400
"""Seconds."""


class Clock:
    """A clock that tests can move forward.

    Args:
        source: Seconds since 1970; the system's clock, or a constant for a clock that moves only by `advance`.
        advanced: Seconds by which it was moved already.
        keep: Told by how many seconds it is moved in all, before it is.
    """

    def __init__(
        self,
        source: Callable[[], float] = time.time,
        advanced: float = 0.0,
        keep: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._advanced = advanced
        self._keep = keep

    def now(self) -> float:
        """Seconds since 1970."""
        return self._source() + self._advanced

    def advance(self, seconds: float) -> float:
        """Move forward; returns the new time in seconds since 1970."""
        if not 0 <= seconds < _LONGEST_MOVE:
            raise ValueError("The clock moves forward only, and not by more than a century at once.")
        self._keep(self._advanced + seconds)
        self._advanced += seconds
        return self.now()
