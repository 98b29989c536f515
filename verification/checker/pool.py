"""Scenarios explored side by side, each in a process of its own: one search takes one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import Manager
from typing import Final

from verification.checker.report import Finding, finding
from verification.checker.search import Progress, explore
from verification.scenarios.catalogue import everything
from verification.world.scenario import Scenario

_LOOK_EVERY: Final = 1.0  # Seconds.

Found = tuple[Finding, tuple[str, ...]]
"""A finding, and how it came to it if anything fell."""


def explored(
    scenarios: Sequence[Scenario], limit: int, jobs: int, show: Callable[[Sequence[str]], None]
) -> Iterator[Found]:
    """Explore scenarios of the catalogue; each as soon as it is done.

    Args:
        scenarios: to explore. They go to the processes by their names, since broken twins cannot be sent.
        limit: most states of each.
        jobs: how many at a time.
        show: called now and then with the progress of each running search.
    """
    with Manager() as manager, ProcessPoolExecutor(jobs) as pool:
        progress: MutableMapping[str, str] = manager.dict()
        waiting: set[Future[Found]] = {pool.submit(_explore, scenario.name, limit, progress) for scenario in scenarios}
        try:
            while waiting:
                done, waiting = wait(waiting, _LOOK_EVERY, FIRST_COMPLETED)
                for item in done:
                    yield item.result()
                show(sorted(progress.values()))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _explore(name: str, limit: int, progress: MutableMapping[str, str]) -> Found:
    scenario = next(item for item in everything() if item.name == name)
    started = time.process_time()

    def show(report: Progress) -> None:
        speed = report.transitions / (time.process_time() - started)
        progress[name] = f"{name}: {report.states:,} states, depth {report.depth}, {speed:,.0f} transitions/s"

    report = explore(scenario, limit, liveness=True, show=show)
    progress.pop(name, None)
    return finding(scenario, report, time.process_time() - started), report.ending
