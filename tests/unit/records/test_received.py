"""Channels: what is known of the messages that came through one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.channels import FARTHEST_AHEAD, MARKS, MOST_RANGES, Channel, by_id, holds_place
from exactlyonce.records.places import Place
from exactlyonce.values.ranges import holds

NUMBERS = st.lists(st.integers(1, 60), unique=True)


def received(*numbers: int, prefix: str = "m") -> Channel:
    channel = Channel("c1", "order/o-1")
    for number in numbers:
        channel = channel.with_message(number, f"{prefix}-{number}")
    return channel


@given(NUMBERS)
def test_a_channel_knows_what_it_has_received_in_whatever_order(numbers: list[int]) -> None:
    channel = received(*numbers)
    assert [number for number in range(1, 61) if holds(channel.received, number)] == sorted(numbers)
    assert channel == received(*sorted(numbers))


@given(NUMBERS)
def test_another_message_under_one_of_the_latest_numbers_is_a_fork_and_a_copy_is_none(numbers: list[int]) -> None:
    channel = received(*numbers)
    for number in sorted(numbers, reverse=True)[:MARKS]:
        assert channel.is_fork(number, f"other-{number}")
        assert not channel.is_fork(number, f"m-{number}")


def test_a_source_that_goes_back_further_than_the_marks_is_not_noticed() -> None:
    channel = received(*range(1, MARKS + 2))
    assert not channel.is_fork(1, "other-1")
    assert channel.is_fork(2, "other-2")


@given(NUMBERS, NUMBERS)
def test_two_views_of_a_channel_together_know_what_either_knows(some: list[int], others: list[int]) -> None:
    united = received(*some).united(received(*others))
    assert united.received == received(*{*some, *others}).received
    assert united.includes(received(*some))
    assert united.includes(received(*others))
    assert not any(united.is_fork(number, f"m-{number}") for number in (*some, *others))


@given(NUMBERS, NUMBERS)
def test_views_of_the_same_channel_include_one_another_as_their_numbers_do(some: list[int], others: list[int]) -> None:
    assert received(*some).includes(received(*others)) == ({*others} <= {*some})


def test_several_views_of_one_channel_are_united_and_channels_stay_apart() -> None:
    known = by_id((received(1, 2), Channel("c2", "order/o-2", ((7, 7),)), received(3)))
    assert known["c1"] == received(1, 2, 3)
    assert holds_place(known, Place("c2", "board/b", 7))
    assert not holds_place(known, Place("c2", "board/b", 1))
    assert not holds_place(known, Place("c3", "board/b", 1))


@pytest.mark.parametrize(("number", "refused"), [(9, False), (8 + FARTHEST_AHEAD, False), (9 + FARTHEST_AHEAD, True)])
def test_a_number_very_far_ahead_is_refused(number: int, refused: bool) -> None:
    assert (received(8).refusal(number) is not None) is refused


def test_a_channel_has_a_bounded_number_of_gaps() -> None:
    channel = Channel("c1", "s", tuple((first, first) for first in range(1, 4 * MOST_RANGES, 4)))
    assert len(channel.received) == MOST_RANGES
    assert channel.refusal(4 * MOST_RANGES + 1) == f"its channel has {MOST_RANGES} gaps already"
    assert channel.refusal(2) is None, "it closes up to another"


def test_a_channel_without_gaps_stays_as_small_as_it_is() -> None:
    assert len(received(*range(1, 500)).marks) == len(received(*range(1, 600)).marks) == 5 * MARKS
