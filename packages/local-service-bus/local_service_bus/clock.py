"""Time, injected: the broker never asks the operating system."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONGEST_MOVE = 100 * 366 * 86_400
"""Seconds."""


class Clock:
    """A clock that tests can move forward.

    Args:
        source: Seconds since 1970; the system's clock, or a constant for a clock that moves by `advance` only.
    """

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._advanced = 0.0

    def now(self) -> float:
        """Seconds since 1970."""
        return self._source() + self._advanced

    def advance(self, seconds: float) -> float:
        """Move forward; returns the new time in seconds since 1970.

        Raises:
            ValueError: It would move backward, or by more than a century.
        """
        if not 0 <= seconds < _LONGEST_MOVE:
            raise ValueError("The clock moves forward only, and not by more than a century at once.")
        self._advanced += seconds
        return self.now()
