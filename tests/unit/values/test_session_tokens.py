"""Tokens compare only within one range id and version; wherever in doubt, the answer is no."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.values.session_tokens import at_or_after

UNNEEDED = [(None, None), ("0:-1#5", None), ("unreadable", None)]
LATE = [("0:-1#5", "0:-1#5"), ("0:-1#10", "0:-1#9"), ("0:-1#10#1=3#2=8", "0:-1#9#1=400"), ("12:3#7", "12:3#0")]
EARLY = [(None, "0:-1#5"), ("0:-1#4", "0:-1#5"), ("0:-1#9", "0:-1#10")]
OTHER_SCOPES = [("1:-1#9", "0:-1#5"), ("0:0#9", "0:-1#5"), ("0:-1#9,1:-1#3", "0:-1#5"), ("0:9", "0:5"), ("", "0:-1#5")]
UNREADABLE = [("0:-1#", "0:-1#5"), ("0:-1#9", "0:-1#"), ("0:-1#-9", "0:-1#-10"), ("0:-1#x", "0:-1#x")]


@pytest.mark.parametrize(("token", "needed"), [*UNNEEDED, *LATE, *EARLY, *OTHER_SCOPES, *UNREADABLE])
def test_a_view_is_late_enough_only_where_that_is_certain(token: str | None, needed: str | None) -> None:
    assert at_or_after(token, needed) is ((token, needed) in [*UNNEEDED, *LATE])


@given(st.text(max_size=8), st.text(max_size=8))
def test_any_text_is_compared_without_an_error(token: str, needed: str) -> None:
    assert at_or_after(token, needed) in (True, False)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_within_one_partition_the_order_is_that_of_the_positions(number: int, other: int) -> None:
    assert at_or_after(f"0:-1#{number}", f"0:-1#{other}") == (number >= other)
