"""Explores a scenario: the search of `yieldcheck` with the explorer that the scenario needs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yieldcheck
from verification.explorers.choice import explorer_of
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move, State
from verification.explorers.trace import Event, events_of, story_of
from verification.world.scenario import Scenario

Progress = yieldcheck.Report[State, Move]


@dataclass
class Report(yieldcheck.Report[State, Move]):
    """What a search found.

    Attributes:
        runs: how often production code ran.
    """

    trace: tuple[Event, ...] = ()
    witnessed: set[str] = field(default_factory=set)
    runs: int = 0

    @property
    def story(self) -> tuple[str, ...]:
        return tuple(str(event) for event in self.trace)

    @property
    def ending(self) -> tuple[str, ...]:
        """The trace for people, and what the store holds in the end."""
        return story_of(self.trace) if self.trace else ()


def explore(
    scenario: Scenario,
    limit: int = yieldcheck.MOST_STATES,
    *,
    liveness: bool = False,
    show: Callable[[Progress], None] = lambda _: None,
) -> Report:
    """Look at every state, or at the first `limit`; the arguments are those of `yieldcheck.check`."""
    with _no_collections():
        explorer = explorer_of(scenario)
        try:
            return _explored(explorer, limit, liveness=liveness, show=show)
        finally:  # What refers to itself would wait for the collector, and what it remembers with it.
            vars(explorer.workers).clear()
            vars(explorer).clear()


def _explored(explorer: Explorer, limit: int, *, liveness: bool, show: Callable[[Progress], None]) -> Report:
    found: dict[str, Any] = vars(yieldcheck.check(explorer, limit, liveness=liveness, show=show))
    trace = events_of(explorer, explorer.start(), found["path"])
    return Report(**found, trace=trace, witnessed=explorer.witnessed, runs=explorer.workers.runs)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Python looks for no cycles of garbage: what a search makes lives as long as the search, so there are few.

    Else the collector takes a tenth of the time, to go through millions of states.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
