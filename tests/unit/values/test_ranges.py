"""Ranges are sets of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.outbox import Ranges, from_number, highest, holds, is_ascending, union, with_number

NUMBERS = st.sets(st.integers(1, 30))


def ranges_of(numbers: set[int]) -> Ranges:
    """The simplest way to say it: a run begins where the number below is missing, and ends where that above is."""
    firsts = sorted(number for number in numbers if number - 1 not in numbers)
    lasts = sorted(number for number in numbers if number + 1 not in numbers)
    return tuple(zip(firsts, lasts, strict=True))


@given(NUMBERS, st.integers(1, 30))
def test_ranges_are_the_set_of_their_numbers(numbers: set[int], number: int) -> None:
    ranges = ranges_of(numbers)
    assert holds(ranges, number) == (number in numbers)
    assert with_number(ranges, number) == ranges_of(numbers | {number})
    assert from_number(ranges, number) == ranges_of({item for item in numbers if item >= number})


@given(NUMBERS, NUMBERS)
def test_a_union_has_the_numbers_of_both(some: set[int], others: set[int]) -> None:
    assert union(ranges_of(some), ranges_of(others)) == ranges_of(some | others)


@given(NUMBERS, st.integers(0, 8))
def test_the_highest_numbers_come_from_the_top(numbers: set[int], most: int) -> None:
    assert highest(ranges_of(numbers), most) == tuple(sorted(numbers, reverse=True)[:most])


def test_the_highest_of_very_many_numbers_are_found_at_once() -> None:
    assert highest(((1, 2**53),), 2) == (2**53, 2**53 - 1)


@given(NUMBERS)
def test_ranges_of_a_set_are_ascending(numbers: set[int]) -> None:
    assert is_ascending(ranges_of(numbers), 1, 30)


@pytest.mark.parametrize(
    "ranges",
    [((0, 1),), ((1, 31),), ((2, 1),), ((1, 2), (3, 4)), ((1, 4), (3, 6)), ((5, 6), (1, 2))],
    ids=["below the least", "above the greatest", "backward", "touching", "overlapping", "descending"],
)
def test_ranges_that_cannot_be_are_known(ranges: Ranges) -> None:
    assert not is_ascending(ranges, 1, 30)
