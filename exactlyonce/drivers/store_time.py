"""The store's time, by which ages are judged whatever a machine's clock says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from exactlyonce.drivers.runtime import Clock

AGREED: Final = timedelta(seconds=30)
"""Tolerated difference of a clock from the store's: the dates of replies are whole seconds, and replies take time to arrive."""


class StoreTime:
    """This machine's clock, as long as it agrees with the dates of the store's replies; else the store's time.

    It is at most `AGREED` ahead of the store's time, and at most `AGREED` and the latest reply's latency behind it: well within
    the tolerance that lifetimes have for clocks.

    Args:
        clock: of this machine.
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
