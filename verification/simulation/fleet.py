"""Many episodes, one process for each core."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Final

from verification.simulation.episode import Report, run_episode
from verification.simulation.twins import protocols_of

MESSAGES: Final = 1000
"""Sent from outside in an episode, by default."""
_GLANCE: Final = 0.25  # Seconds between two looks at the time.


@dataclass
class Tally:
    """All episodes so far."""

    started: float = field(default_factory=time.monotonic)
    episodes: int = 0
    messages: int = 0
    deliveries: int = 0
    entities: int = 0
    hours: float = 0.0
    violations: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    guilty: Report | None = None
    digest: str = ""

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.started

    def add(self, report: Report) -> None:
        self.episodes += 1
        self.messages += report.messages
        self.deliveries += report.deliveries
        self.entities += report.entities
        self.hours += report.hours
        self.violations += len(report.violations)
        self.counted.update(report.counted)
        self.digest = report.digest
        if report.violations and (self.guilty is None or report.seed < self.guilty.seed):
            self.guilty = report


def run_fleet(options: Namespace, tally: Tally, show: Callable[[], None]) -> None:
    """Run episodes until time is over (one for no seconds), or one has a violation; each is counted in as it ends."""
    jobs = options.jobs if options.seconds else 1
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_the_parent)
    seed = options.seed
    running: set[Future[Report]] = set()
    try:
        while True:
            more = tally.guilty is None and (tally.seconds < options.seconds or seed == options.seed)
            while more and len(running) < jobs:
                running.add(pool.submit(_episode, seed, options.messages, options.twin))
                seed += 1
            if not running:
                return
            done, running = wait(running, _GLANCE, FIRST_COMPLETED)
            for future in done:
                tally.add(future.result())
            show()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _episode(seed: int, messages: int, twin: str) -> Report:
    return run_episode(seed, messages, protocols_of(twin))


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
