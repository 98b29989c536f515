"""How long something may take, by the clock that drivers are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

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
