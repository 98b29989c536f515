"""The search over a model that is a table of moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from yieldcheck.search import Report, check, path_through


@dataclass(frozen=True, slots=True)
class Jump:
    state: int
    fault: bool = False
    violation: str | None = None

    def __str__(self) -> str:
        return f"jumps to {self.state}"


class Board:
    """Numbers, with jumps from each to others; good ends are some of them."""

    def __init__(self, jumps: dict[int, tuple[Jump, ...]], *ends: int) -> None:
        self._jumps = jumps
        self._ends = ends

    def start(self) -> int:
        return 0

    def moves(self, state: int) -> Iterable[Jump]:
        return self._jumps.get(state, ())

    def is_good_end(self, state: int) -> bool:
        return state in self._ends


def test_every_state_is_counted_once() -> None:
    report = check(Board({0: (Jump(1), Jump(2)), 1: (Jump(3),), 2: (Jump(3),), 3: (Jump(0),)}))
    assert (report.states, report.transitions, report.depth) == (4, 5, 2)
    assert report.complete
    assert report.violation is None
    assert report.path == ()


def test_a_counterexample_is_a_shortest_one() -> None:
    jumps = {
        0: (Jump(1), Jump(4)),
        1: (Jump(2),),
        2: (Jump(3, violation="far"),),
        4: (Jump(3), Jump(3, violation="near")),
    }
    report = check(Board(jumps))
    assert report.violation == "near"
    assert report.path == (Jump(4), Jump(3, violation="near"))
    assert report.story == ("jumps to 4", "jumps to 3")
    assert not report.complete


def test_a_state_from_which_only_a_fault_leads_on_is_stuck() -> None:
    report = check(Board({0: (Jump(1), Jump(2)), 1: (Jump(3),), 2: (Jump(3, fault=True),)}, 3), liveness=True)
    assert report.stuck == 1
    assert report.path == (Jump(2),)


def test_none_is_stuck_where_every_state_reaches_a_good_end() -> None:
    board = Board({0: (Jump(1), Jump(2)), 1: (Jump(3),), 2: (Jump(3),)}, 3)
    assert check(board, liveness=True).stuck == 0
    assert check(board).stuck is None


def test_a_search_that_meets_its_limit_is_not_complete() -> None:
    chain = Board({number: (Jump(number + 1),) for number in range(100)})
    report = check(chain, 10)
    assert report.states == 11
    assert not report.complete


def test_progress_is_shown_after_each_level() -> None:
    shown: list[int] = []

    def show(report: Report[int, Jump]) -> None:
        shown.append(report.states)

    check(Board({0: (Jump(1), Jump(2)), 1: (Jump(3),)}), show=show)
    assert shown == [3, 4, 4]


def test_states_that_are_no_path_have_no_moves() -> None:
    board = Board({0: (Jump(1),)})
    assert path_through(board, [0, 1]) == (Jump(1),)
    with pytest.raises(StopIteration):
        path_through(board, [0, 2])
