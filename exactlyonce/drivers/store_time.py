"""The present as the store has it: ages are judged by it, whatever a machine's clock says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from exactlyonce.drivers.runtime import Clock

AGREED: Final = timedelta(seconds=30)
"""By how much a clock may differ from the store's and still be taken: replies tell whole seconds, and travel for a while."""


class StoreTime:
    """This machine's clock, as long as it agrees with what the store's replies tell; else the store's time.

    What it says is never later than the store's time by more than `AGREED`, and earlier by that and the time that the latest
    reply took, which is well within the tolerance that lifetimes have for clocks.

    Args:
        clock: of this machine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = timedelta(0)

    def tell(self, date: datetime) -> None:
        """A reply said when it was made."""
        ahead = date - self._clock.now()
        self._ahead = ahead if abs(ahead) > AGREED else timedelta(0)

    def now(self) -> datetime:
        """The present."""
        return self._clock.now() + self._ahead
