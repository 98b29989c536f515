"""The search over a model that is a table of moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from yieldcheck.search import check, path_through


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


@pytest.mark.parametrize(
    "board",
    [Board({number: (Jump(number + 1),) for number in range(100)}), Board({0: tuple(map(Jump, range(1, 1_000)))})],
    ids=["a chain", "a state that leads to many"],
)
def test_a_search_that_meets_its_limit_is_not_complete(board: Board) -> None:
    report = check(board, 10)
    assert (report.states, report.complete) == (10, False)


def test_states_that_are_no_path_have_no_moves() -> None:
    board = Board({0: (Jump(1),)})
    assert path_through(board, [0, 1]) == (Jump(1),)
    with pytest.raises(StopIteration):
        path_through(board, [0, 2])


def test_progress_is_shown_within_a_level() -> None:
    wide = Board({0: tuple(map(Jump, range(1, 5_000))), **{number: (Jump(0),) for number in range(1, 5_000)}})
    shown: list[tuple[int, int]] = []
    check(wide, show=lambda report: shown.append((report.depth, report.transitions)))
    assert shown == [(1, 4_999), (1, 6_997), (1, 8_997), (1, 9_998)]


@dataclass(frozen=True, slots=True)
class Step:
    """A place, and how much fuel is left."""

    state: tuple[str, int]
    kind: str = "walk"
    fault: bool = False
    violation: str | None = None


class Roads:
    """From "a" to "b" and "c" by walks, or at once by a drive, which takes fuel; in "c" there is a trap for cars."""

    def start(self) -> tuple[str, int]:
        return "a", 2

    def moves(self, state: tuple[str, int]) -> Iterable[Step]:
        place, fuel = state
        if place == "a":
            yield Step(("b", fuel))
            if fuel:
                yield Step(("b", fuel - 1), "drive")
        elif place == "b":
            yield Step(("c", fuel))
        elif fuel > 1:
            yield Step(("d", fuel - 1), "drive", violation="trapped")

    def is_good_end(self, state: tuple[str, int]) -> bool:
        return state[0] == "c"


def split(state: tuple[str, int]) -> tuple[str, tuple[int, ...]]:
    return state[0], (state[1],)


def test_a_state_with_a_smaller_budget_is_left_out() -> None:
    assert check(Roads(), split=lambda state: (state[0], (0,))).states == 3
    report = check(Roads(), split=split)
    assert (report.states, report.violation, len(report.path)) == (3, "trapped", 3)
    assert check(Roads()).states == 5


def test_states_are_counted_by_the_kinds_of_moves_that_lead_to_them() -> None:
    assert check(Roads()).kinds == {"walk": 3, "drive": 1}


def test_a_search_for_liveness_takes_no_budget() -> None:
    with pytest.raises(ValueError, match="liveness needs every state"):
        check(Roads(), liveness=True, split=split)
