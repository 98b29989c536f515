"""Breadth-first search over all states of a scenario, so that a counterexample is a shortest one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from devtools.modelcheck.explorer import Explorer, State
from devtools.modelcheck.scenarios import Scenario


@dataclass
class Report:
    """What a search found.

    Attributes:
        states, transitions, depth: of the part that was explored.
        complete: whether that was everything.
        violation: the property that fell; None if none did.
        story: the steps of a shortest way there.
        witnessed: what was seen somewhere.
        stuck: states from which the work cannot be finished without further faults; None if not looked for.
        runs: how often production code ran.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = False
    violation: str | None = None
    story: tuple[str, ...] = ()
    witnessed: set[str] = field(default_factory=set)
    stuck: int | None = None
    runs: int = 0


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
        liveness: whether to look for states from which the work cannot be finished without further faults.
        show: told of the progress after each level.
    """
    explorer = Explorer(scenario)
    start = explorer.start()
    numbers: dict[State, int] = {start: 0}
    came: list[tuple[int, str]] = [(-1, "")]
    before: list[list[int]] = [[]]
    good: list[int] = []
    report = Report(complete=True)
    frontier = [start]
    while frontier:
        following: list[State] = []
        for state in frontier:
            here = numbers[state]
            if liveness and explorer.is_good_end(state):
                good.append(here)
            for move in explorer.moves(state):
                report.transitions += 1
                if move.violation is not None:
                    report.violation = move.violation
                    report.story = (*_story(came, here), move.said)
                    report.complete = False
                    return _closed(report, explorer, len(numbers))
                there = numbers.get(move.state)
                if there is None:
                    there = numbers[move.state] = len(came)
                    came.append((here, move.said))
                    before.append([])
                    following.append(move.state)
                if liveness and not move.fault:
                    before[there].append(here)
        if len(numbers) > limit:
            report.complete = False
            return _closed(report, explorer, len(numbers))
        frontier = following
        report.depth += bool(following)
        report.states = len(numbers)
        show(report)
    if liveness:
        report.stuck = len(came) - len(_reaching(good, before))
    return _closed(report, explorer, len(numbers))


def _closed(report: Report, explorer: Explorer, states: int) -> Report:
    report.states = states
    report.witnessed = explorer.witnessed
    report.runs = explorer.workers.runs
    return report


def _story(came: list[tuple[int, str]], number: int) -> list[str]:
    steps: list[str] = []
    while number > 0:
        number, said = came[number]
        steps.append(said)
    return steps[::-1]


def _reaching(good: list[int], before: list[list[int]]) -> set[int]:
    """All states from which a good end can be reached by steps without faults."""
    reached = set(good)
    waiting = list(good)
    while waiting:
        for number in before[waiting.pop()]:
            if number not in reached:
                reached.add(number)
                waiting.append(number)
    return reached
