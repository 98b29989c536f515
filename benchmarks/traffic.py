"""Load for an application: which messages come, and how fast they are processed while so many are under way."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from statistics import median, quantiles
from typing import Final

from benchmarks.application import Application
from benchmarks.contenders import Contender
from exactlyonce import Envelope

GAMES: Final = 200
COPIES: Final = 0.1
"""Share of deliveries that are copies of one of the latest messages."""

RECENT: Final = 1_000
PATIENCE: Final = 5
"""How many times as long as is measured those that are still under way may take to come to an end."""

WINDOW: Final = 16
SINGLE: Final = 3
"""Messages one by one that each entity has processed before: after as many a process may start from what it remembers."""

_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Load:
    """What comes.

    Attributes:
        workload: "uniform" or "zipf" over 200 entities, or "hot": all for one.
        in_flight: how many messages are under way at any time.
        latency: milliseconds that the store takes longer for each request.
    """

    workload: str
    in_flight: int
    latency: float

    def __str__(self) -> str:
        return f"{self.workload}, {self.in_flight} in flight, {self.latency:g} ms"


@dataclass(frozen=True, slots=True)
class Pace:
    """How one run went.

    Attributes:
        speed: messages per second, while it was measured.
        taken: seconds that each of these messages took, in ascending order; none if fewer were processed before than are
            in flight, so that the slow ones would be missing.
        processed: messages, those before and after included.
        cpu: seconds of CPU time of this process for them.
    """

    speed: float
    taken: tuple[float, ...]
    processed: int
    cpu: float

    @property
    def p50(self) -> float | None:
        """Milliseconds that the median message took; None if that is not known."""
        return median(self.taken) * 1000 if self.taken else None

    @property
    def p99(self) -> float | None:
        """Milliseconds that one message in a hundred took at least; None if that is not known."""
        return quantiles(self.taken, n=_PERCENT)[-1] * 1000 if len(self.taken) > 1 else None


@dataclass
class Traffic:
    """All messages for a contender, over all runs.

    Attributes:
        contender: that they are for.
        application: processes them.
    """

    contender: Contender
    application: Application
    _sent: dict[str, int] = field(default_factory=dict)

    async def prepare(self, games: int = GAMES) -> None:
        """Let all games process their first messages: their windows are not filled alike, so that not all leave at once."""
        groups = self.contender.groups
        waiting = iter(range(games))

        async def work() -> None:
            for number in waiting:
                game = f"game-{number}"
                first = self._first(game, 1 + number % WINDOW if groups else 1)
                await self.application.feed(first, len(first))
                await self.application.feed(self._first(game, SINGLE), 1)

        await asyncio.gather(*(work() for _ in range(WINDOW)))

    async def run(self, load: Load, random: Random, seconds: float, *, games: int = GAMES) -> Pace:
        """Process messages for some time, and then measure for so many seconds.

        Raises:
            Exception: whatever processing a message raises.
        """
        spent = time.process_time()
        hot = f"hot-{random.getrandbits(64):x}"
        first = self._first(hot, WINDOW if self.contender.groups else 1) if load.workload == "hot" else []
        await self.application.feed(first, WINDOW)
        coming = messages(self.contender, load.workload, random, self._sent, hot=hot, games=games)
        run = _Run(self.application, coming, load.in_flight)
        tasks = [asyncio.create_task(run.work()) for _ in range(load.in_flight)]
        warm = await run.warmed_up(seconds)
        began, before = time.perf_counter(), len(run.taken)
        await asyncio.sleep(seconds)
        measured, speed = run.taken[before:], (len(run.taken) - before) / (time.perf_counter() - began)
        run.stopped = True
        if not await _ended(tasks, PATIENCE * seconds):
            self.application.crash()
        processed = len(first) + len(run.taken)
        return Pace(speed, tuple(sorted(measured)) if warm else (), processed, time.process_time() - spent)

    def _first(self, game: str, number: int) -> list[Envelope]:
        return [next_message(self.contender, game, self._sent) for _ in range(number)]


def messages(
    contender: Contender, workload: str, random: Random, sent: dict[str, int], *, hot: str, games: int
) -> Iterator[Envelope]:
    """Messages without end, some of them copies.

    Args:
        contender: that they are for.
        workload: as in `Load`.
        random: the source of chance.
        sent: how many messages each entity was sent before; it is kept up.
        hot: name of the one entity.
        games: how many are many.
    """
    weights = [1 / rank if workload == "zipf" else 1 for rank in range(1, games + 1)]
    cumulated, names = list(accumulate(weights)), [f"game-{game}" for game in range(games)]
    recent: deque[Envelope] = deque(maxlen=RECENT)
    while True:
        if recent and random.random() < COPIES:
            yield random.choice(recent)
            continue
        game = hot if workload == "hot" else random.choices(names, cum_weights=cumulated)[0]
        recent.append(next_message(contender, game, sent))
        yield recent[-1]


def next_message(contender: Contender, game: str, sent: dict[str, int]) -> Envelope:
    """The message after those that a game was sent."""
    sent[game] = sent.get(game, 0) + 1
    return contender.message(game, sent[game])


class _Run:
    """What is under way, and how long what is over took."""

    def __init__(self, application: Application, messages: Iterator[Envelope], in_flight: int) -> None:
        self.taken: list[float] = []
        self.stopped = False
        self._application = application
        self._messages = messages
        self._in_flight = in_flight
        self._warm = asyncio.Event()

    async def work(self) -> None:
        """Process one message after the other."""
        while not self.stopped:
            began = time.perf_counter()
            await self._application.process(next(self._messages))
            self.taken.append(time.perf_counter() - began)
            if len(self.taken) == 2 * self._in_flight:
                self._warm.set()

    async def warmed_up(self, seconds: float) -> bool:
        """Wait until twice as many messages were processed as are in flight, or so many seconds; return whether it is enough
        to know how long messages take."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._warm.wait(), seconds)
        return len(self.taken) >= self._in_flight


async def _ended(tasks: list[asyncio.Task[None]], seconds: float) -> bool:
    """Let tasks come to their end; return whether all have. Those that take too long are stopped in the middle of it."""
    done, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return not late
