"""Seeded trouble for stores, and clocks that only tests move."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from random import Random

from exactlyonce.stores.memory.trouble import Fate


class SeededTrouble:
    """Draws the fate of writes and the age of views; the same seed gives the same.

    Args:
        random: the source of chance.
        fates: probability of each fate other than `ANSWERED`.
        stale: probability that a read is served by a replica that is behind.
        lag: how many writes such a replica is behind at most.
    """

    def __init__(self, random: Random, fates: Mapping[Fate, float], stale: float = 0.0, lag: int = 0) -> None:
        self._random = random
        self._fates = tuple(fates)
        self._weights = tuple(fates.values())
        self._stale = stale
        self._lag = lag

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        rest = 1.0 - sum(self._weights)
        return self._random.choices((*self._fates, Fate.ANSWERED), (*self._weights, rest))[0]

    def replica(self, newest: int) -> int:
        if self._random.random() >= self._stale:
            return newest
        return max(0, newest - self._random.randint(1, self._lag))


class ManualClock:
    """A clock that stands still until `advance` is called."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._order = 0

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), self._order, woken))
        await woken

    def block(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock, and wake the sleepers whose time has come."""
        self._now += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


class InstantClock(ManualClock):
    """A clock on which a sleep takes no time: it moves the clock."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)
