"""Time and chance, injected: tests move the clock and seed the chance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from random import Random, SystemRandom
from secrets import token_hex
from typing import Protocol

from exactlyonce.drivers.observer import ObserverSlot
from exactlyonce.effects.effect import Begin, Begun


class Clock(Protocol):
    """The present, and pauses."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause this task."""
        ...

    def block(self, seconds: float) -> None:
        """Pause this thread."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def block(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Runtime:
    """Time, chance and the observer: a driver's inputs besides store and transports.

    Attributes:
        clock: time.
        random: jitter of delays.
        new_transaction: makes unique transaction ids.
        observer_slot: holds the observer, if there is one.
        present: the store's time of day; None for the clock's.
    """

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    new_transaction: Callable[[], str] = field(default=partial(token_hex, 16))
    observer_slot: ObserverSlot = field(default_factory=ObserverSlot)
    present: Callable[[], datetime] | None = None

    def now(self) -> datetime:
        """The present, by the store's time."""
        return (self.present or self.clock.now)()

    def begin(self, effect: Begin) -> Begun:
        """Perform `Begin`."""
        return Begun(self.now(), tuple(self.new_transaction() for _ in range(effect.count)))
