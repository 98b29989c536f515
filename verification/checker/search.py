"""Breadth-first search over all states of a scenario, so that a counterexample is a shortest one."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from verification.checker.aged import AgedExplorer
from verification.checker.beside.aged import AgedBesideExplorer
from verification.checker.beside.explorer import BesideExplorer
from verification.checker.beside.scenarios import BesideScenario
from verification.checker.endless import EndlessExplorer
from verification.checker.explorer import Explorer
from verification.checker.reductions import State
from verification.checker.renewing import RenewingExplorer, RenewingScenario
from verification.checker.returned import ReturningExplorer
from verification.checker.returning import ReturningScenario
from verification.checker.scenarios import Scenario
from verification.checker.trace import Event, replayed, told


@dataclass
class Report:
    """What a search found.

    Attributes:
        states, transitions, depth: of the part that was explored.
        complete: whether that was everything.
        violation: the property that fell; None if none did.
        trace: the steps of a shortest way there.
        witnessed: what was seen somewhere.
        stuck: states from which the work cannot be finished without further faults; None if not looked for.
        runs: how often production code ran.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = False
    violation: str | None = None
    trace: tuple[Event, ...] = ()
    witnessed: set[str] = field(default_factory=set)
    stuck: int | None = None
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
    limit: int = 5_000_000,
    *,
    liveness: bool = False,
    show: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Look at every state, or at the first `limit`.

    Args:
        scenario: what to explore.
        limit: most states.
        liveness: whether to look for states from which the work cannot be finished without further faults. If there are any,
            the trace leads to the first of them.
        show: told of the progress now and then.
    """
    return Search(scenario, limit, liveness=liveness, show=show).run()


def explorer_of(scenario: Scenario) -> Explorer:
    """The explorer for a scenario."""
    if isinstance(scenario, BesideScenario):
        return BesideExplorer(scenario) if scenario.ages is None else AgedBesideExplorer(scenario)
    if isinstance(scenario, ReturningScenario):
        return ReturningExplorer(scenario)
    if isinstance(scenario, RenewingScenario):
        return RenewingExplorer(scenario)
    if scenario.ages is not None:
        return AgedExplorer(scenario)
    return EndlessExplorer(scenario) if scenario.endless else Explorer(scenario)


class Search:
    """One search. The arguments are those of `explore`."""

    def __init__(self, scenario: Scenario, limit: int, *, liveness: bool, show: Callable[[Report], None]) -> None:
        self.report = Report()
        self._explorer = explorer_of(scenario)
        self._limit = limit
        self._liveness = liveness
        self._show = show
        self._numbers: dict[State, int] = {}
        self._came = array("q", [-1])
        self._edges = array("Q")  # Of steps without a fault: where from in the upper half, where to in the lower.
        self._good: list[int] = []

    def run(self) -> Report:
        """Search, level by level."""
        start = self._explorer.start()
        self._numbers[start] = 0
        frontier = [start]
        while frontier:
            following = self._level(frontier)
            if following is None or len(self._numbers) > self._limit:
                return self._closed()
            frontier = following
            self.report.depth += bool(following)
            self.report.states = len(self._numbers)
            self._show(self.report)
        self.report.complete = True
        if self._liveness:
            self._find_stuck()
        return self._closed()

    def _level(self, frontier: list[State]) -> list[State] | None:
        """The states after these; None once a property fell."""
        numbers, came, moves, liveness = self._numbers, self._came, self._explorer.moves, self._liveness
        edges = self._edges
        following: list[State] = []
        transitions = 0
        for state in frontier:
            here = numbers[state]
            if liveness and self._explorer.is_good_end(state):
                self._good.append(here)
            for move in moves(state):
                transitions += 1
                after = move[0]
                if move[2] is not None:
                    self.report.violation = move[2]
                    self.report.transitions += transitions
                    self._tell(here, after)
                    return None
                there = numbers.setdefault(after, len(came))
                if there == len(came):
                    came.append(here)
                    following.append(after)
                if liveness and not move[1]:
                    edges.append(here << 32 | there)
        self.report.transitions += transitions
        return following

    def _tell(self, number: int, *last: State) -> None:
        """Set the trace to the way to a state, and on to a last one."""
        way: list[int] = []
        while number >= 0:
            way.append(number)
            number = self._came[number]
        wanted = set(way)
        found = {number: state for state, number in self._numbers.items() if number in wanted}
        states = [found[one] for one in reversed(way)]
        self.report.trace = replayed(self._explorer, [*states, *last], self.report.violation)

    def _find_stuck(self) -> None:
        """Look for states from which no good end can be reached by steps without faults."""
        before: list[list[int]] = [[] for _ in self._came]
        for edge in self._edges:
            before[edge & 0xFFFFFFFF].append(edge >> 32)
        reached = bytearray(len(before))
        waiting = list(self._good)
        for number in waiting:
            reached[number] = 1
        while waiting:
            for number in before[waiting.pop()]:
                if not reached[number]:
                    reached[number] = 1
                    waiting.append(number)
        self.report.stuck = len(reached) - sum(reached)
        if self.report.stuck:
            self._tell(reached.index(0))

    def _closed(self) -> Report:
        self.report.states = len(self._numbers)
        self.report.witnessed = self._explorer.witnessed
        self.report.runs = self._explorer.workers.runs
        return self.report
