"""With sessions a game has no conflicts, and one that had any is reported."""

from __future__ import annotations

import pytest

from benchmarks.sessions import Measured, measure, missed
from local_service_bus.testing import require_endpoint


def test_a_conflict_is_a_miss_with_sessions_only() -> None:
    runs = [Measured("1 hot game", sessions=sessions, per_second=20.0, conflicts=2) for sessions in (True, False)]
    assert list(missed(runs)) == ["With sessions 1 hot game had 2 conflicts; there must be none."]


@pytest.mark.acceptance
async def test_with_sessions_a_hot_game_has_no_conflicts() -> None:
    require_endpoint()
    measured = await measure("1 hot game", sessions=True, shots=20)
    assert (measured.conflicts, measured.per_second > 0) == (0, True)
