"""Breadth-first search over all states of a model, so that a counterexample is a shortest one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import ge
from typing import Any, Generic, Protocol, TypeVar, cast

State = TypeVar("State")
SomeMove = TypeVar("SomeMove", bound="Move[Any]")
MOST_STATES = 5_000_000
"""At which a search ends, unless it is given another limit."""
_SHOWN_EVERY = 2_000  # States that are taken up between two reports of progress.
Budget = tuple[int, ...]
"""How much is left of what the moves from a state may use up, such as faults."""


class Move(Protocol[State]):  # type: ignore[misc]  # A read-only state is covariant, and a type variable that two protocols share is not.
    """One step from a state. `str` of it is a line of a story."""

    @property
    def state(self) -> State:
        """The state afterwards."""

    @property
    def fault(self) -> bool:
        """Whether it took a fault, so that finishing the work must not rely on it."""

    @property
    def violation(self) -> str | None:
        """The property that it breaks; None if it breaks none."""


class Model(Protocol[State, SomeMove]):  # type: ignore[misc]
    """What is searched. States are hashable, and `moves` gives the same for the same state."""

    def start(self) -> State:
        """The state in which nothing has happened."""

    def moves(self, state: State) -> Iterable[SomeMove]:
        """Every step from a state."""

    def is_good_end(self, state: State) -> bool:
        """Whether the work is finished. Asked only where liveness is checked."""


@dataclass
class Report(Generic[State, SomeMove]):
    """What a search found.

    Attributes:
        states, transitions, depth: of the part that was explored.
        complete: whether that was everything.
        violation: the property that fell; None if none did.
        path: the moves of a shortest way there.
        stuck: states from which the work cannot be finished without further faults; None if not looked for.
        kinds: by the kind of the move that led to them how many states there are; of moves that have an attribute `kind`.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = False
    violation: str | None = None
    path: tuple[SomeMove, ...] = ()
    stuck: int | None = None
    kinds: Counter[Hashable] = field(default_factory=Counter)

    @property
    def story(self) -> tuple[str, ...]:
        """The path for people, one line for each move."""
        return tuple(map(str, self.path))


def check(
    model: Model[State, SomeMove],
    limit: int = MOST_STATES,
    *,
    liveness: bool = False,
    show: Callable[[Report[State, SomeMove]], None] = lambda _: None,
    split: Callable[[State], tuple[Hashable, Budget]] | None = None,
) -> Report[State, SomeMove]:
    """Look at every state, or at the first `limit`; end at the first violation.

    Args:
        model: to search.
        limit: most states.
        liveness: whether to look for states from which the work cannot be finished without further faults. If there are any,
            the path leads to the first of them.
        show: called with the progress, every two thousand states and after each level.
        split: parts a state from its budget. A state is left out where one was met that differs from it in nothing but a
            budget that is larger, or as large, in each place: whatever follows from the poorer state follows from the richer
            one as well. So moves must depend on a budget in no other way than that they need it, and use it up.

    Raises:
        ValueError: `split` is given together with `liveness`, which needs every state.
    """
    if liveness and split is not None:
        raise ValueError("A search for liveness needs every state, so it takes no split=.")
    return _Search(model, limit, liveness=liveness, show=show, split=split).run()


def path_through(
    model: Model[State, SomeMove], states: Sequence[State], violation: str | None = None
) -> tuple[SomeMove, ...]:
    """The moves that lead through these states.

    Args:
        states: each but the first a successor of the one before.
        violation: the property that falls with the last move, where several moves lead to the same state.
    """
    moves: list[SomeMove] = []
    for number, (before, after) in enumerate(pairwise(states)):
        wanted = violation if number == len(states) - 2 else None
        moves.append(next(move for move in model.moves(before) if move.state == after and move.violation == wanted))
    return tuple(moves)


class _Search(Generic[State, SomeMove]):
    """One search. The arguments are those of `check`."""

    def __init__(
        self,
        model: Model[State, SomeMove],
        limit: int,
        *,
        liveness: bool,
        show: Callable[[Report[State, SomeMove]], None],
        split: Callable[[State], tuple[Hashable, Budget]] | None,
    ) -> None:
        self._report: Report[State, SomeMove] = Report()
        self._model = model
        self._limit = limit
        self._liveness = liveness
        self._show = show
        self._split = split
        self._budgets: dict[Hashable, list[Budget]] = {}
        self._numbers: dict[State, int] = {}
        self._came = array("q", [-1])
        self._edges = array("Q")  # Of moves without a fault: where from in the upper half, where to in the lower.
        self._good: list[int] = []

    def run(self) -> Report[State, SomeMove]:
        """Search, level by level."""
        start = self._model.start()
        self._numbers[start] = 0
        self._is_poorer(start)
        frontier = [start]
        while frontier:
            following = self._level(frontier)
            if following is None:
                return self._closed()
            frontier = following
            self._report.depth += bool(following)
            self._show(self._closed())
        self._report.complete = True
        if self._liveness:
            self._find_stuck()
        return self._closed()

    def _level(self, frontier: list[State]) -> list[State] | None:
        """The states after these; None once a property fell, or where there are more states than the limit."""
        numbers, came, moves, liveness = self._numbers, self._came, self._model.moves, self._liveness
        edges, report = self._edges, self._report
        following: list[State] = []
        for here, state in enumerate(
            frontier, len(numbers) - len(frontier)
        ):  # Those found last have the highest numbers.
            if here % _SHOWN_EVERY == _SHOWN_EVERY - 1:
                self._show(self._closed())
            if liveness and self._model.is_good_end(state):
                self._good.append(here)
            for move in moves(state):
                report.transitions += 1
                after = move.state
                if move.violation is not None:
                    report.violation = move.violation
                    self._lead_to(here, after)
                    return None
                there = numbers.get(after)
                if there is None and not self._is_poorer(after):
                    if len(came) >= self._limit:
                        return None
                    there = numbers[after] = len(came)
                    came.append(here)
                    following.append(after)
                    report.kinds[getattr(move, "kind", None)] += 1
                if liveness and not move.fault:
                    edges.append(here << 32 | cast("int", there))
        return following

    def _is_poorer(self, state: State) -> bool:
        """Whether a state was met that is as this one, with no smaller budget; this one is met from now on."""
        if self._split is None:
            return False
        rest, budget = self._split(state)
        met = self._budgets.setdefault(rest, [])
        if any(all(map(ge, item, budget)) for item in met):
            return True
        met.append(budget)
        return False

    def _lead_to(self, number: int, *last: State) -> None:
        """Set the path to the way to a state, and on to a last one."""
        way: list[int] = []
        while number >= 0:
            way.append(number)
            number = self._came[number]
        wanted = set(way)
        found = {number: state for state, number in self._numbers.items() if number in wanted}
        states = [*(found[item] for item in reversed(way)), *last]
        self._report.path = path_through(self._model, states, self._report.violation)

    def _find_stuck(self) -> None:
        """Look for states from which no good end can be reached by moves without faults."""
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
        self._report.stuck = len(reached) - sum(reached)
        if self._report.stuck:
            self._lead_to(reached.index(0))

    def _closed(self) -> Report[State, SomeMove]:
        self._report.states = len(self._numbers)
        return self._report
