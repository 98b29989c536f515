"""Explores a scenario: the search of `yieldcheck` with the explorer that the scenario needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yieldcheck
from verification.endless.explorer import EndlessExplorer
from verification.explorers.ages import AgedExplorer
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.explorers.renewal import RenewingExplorer, RenewingScenario
from verification.explorers.returns import ReturningExplorer
from verification.explorers.settlement import ReturningScenario
from verification.explorers.trace import Event, events_of, told
from verification.world.scenario import Scenario

Progress = yieldcheck.Report[State, Move]


@dataclass
class Report(yieldcheck.Report[State, Move]):
    """What a search found.

    Attributes:
        trace: the events of a shortest way to the violation.
        witnessed: what was seen somewhere.
        runs: how often production code ran.
    """

    trace: tuple[Event, ...] = ()
    witnessed: set[str] = field(default_factory=set)
    runs: int = 0

    @property
    def story(self) -> tuple[str, ...]:
        """The trace for people."""
        return tuple(str(event) for event in self.trace)

    @property
    def ending(self) -> tuple[str, ...]:
        """The trace for people, and what the store holds in the end."""
        return told(self.trace) if self.trace else ()


def explore(
    scenario: Scenario,
    limit: int = yieldcheck.MOST_STATES,
    *,
    liveness: bool = False,
    show: Callable[[Progress], None] = lambda _: None,
) -> Report:
    """Look at every state, or at the first `limit`; the arguments are those of `yieldcheck.check`."""
    explorer = explorer_of(scenario)
    found: dict[str, Any] = vars(yieldcheck.check(explorer, limit, liveness=liveness, show=show))
    trace = events_of(explorer, explorer.start(), found["path"])
    return Report(**found, trace=trace, witnessed=explorer.witnessed, runs=explorer.workers.runs)


def explorer_of(scenario: Scenario) -> Explorer:
    """The explorer for a scenario."""
    if isinstance(scenario, ReturningScenario):
        return ReturningExplorer(scenario)
    if isinstance(scenario, RenewingScenario):
        return RenewingExplorer(scenario)
    if scenario.ages is not None:
        return AgedExplorer(scenario)
    return EndlessExplorer(scenario) if scenario.endless else Explorer(scenario)
