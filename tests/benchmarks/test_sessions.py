"""What sessions change is counted as it is told."""

from __future__ import annotations

import pytest

from benchmarks.sessions import Measured, main, problem, table
from local_service_bus.testing import require_endpoint

WITH = Measured("1 hot game", sessions=True, per_second=20.0, conflicts=0)
WITHOUT = Measured("1 hot game", sessions=False, per_second=10.0, conflicts=7)


def test_a_conflict_in_spite_of_sessions_is_a_problem_and_one_without_them_is_none() -> None:
    assert problem([WITH, WITHOUT]) is None
    wrong = Measured("1 hot game", sessions=True, per_second=20.0, conflicts=2)
    assert problem([WITHOUT, wrong]) == "With sessions 1 hot game had 2 conflicts; there must be none."


def test_the_table_has_medians_of_all_rounds() -> None:
    rows = table([WITH, Measured("1 hot game", sessions=True, per_second=40.0, conflicts=0), WITHOUT]).splitlines()
    assert rows[2:] == ["| 1 hot game | on | 30 | 0 |", "| 1 hot game | off | 10 | 7 |"]


@pytest.mark.acceptance
def test_with_sessions_a_hot_game_has_no_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    require_endpoint()
    assert main(["--quick"]) == 0
    assert "| 1 hot game | on |" in capsys.readouterr().out
