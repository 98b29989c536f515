"""Channels: what is known of the messages that came through one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.channels import (
    FARTHEST_AHEAD,
    MARKS,
    MOST_RANGES,
    Channel,
    Forgotten,
    beginning,
    by_id,
    earliest_after,
    holds_place,
)
from exactlyonce.records.ledger import Apart
from exactlyonce.records.library import ChannelDocument
from exactlyonce.records.places import Place
from exactlyonce.records.sequences import channel_id
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


@pytest.mark.parametrize(
    ("channel", "began"),
    [
        ("00000000000a", 10),
        ("0193a7b2c4d15f3e9a8b7c6d5e4f0001", 0x0193A7B2C4D1),
        ("ffffffffffffx", 2**48 - 1),
        ("00000000000A", None),
        ("00000000000", None),
        ("c1", None),
        ("", None),
        ("+0000000000a", None),
    ],
)
def test_the_id_of_a_channel_says_when_it_began_or_nothing(channel: str, began: int | None) -> None:
    assert beginning(channel) == began


def test_the_library_names_channels_so() -> None:
    at = datetime(2026, 1, 1, 0, 0, 1, 250_000, tzinfo=timezone.utc)
    assert beginning(channel_id(at, "t" * 32, 3)) == int(at.timestamp() * 1000)


@pytest.mark.parametrize("began", [0, 9, 0x0193A7B2C4D1])
def test_ids_sort_by_when_channels_began(began: int) -> None:
    assert f"{began:012x}ffff" < earliest_after(began) <= f"{began + 1:012x}0000"


@pytest.mark.parametrize(
    ("channel", "may_be"), [("000000000009x", True), ("00000000000ax", True), ("00000000000bx", False), ("c1", False)]
)
def test_a_channel_may_have_been_forgotten_if_it_began_by_the_mark(channel: str, *, may_be: bool) -> None:
    apart = Apart(channels=True, forgotten=Forgotten(10, "t1"))
    assert apart.forgets(channel) is may_be
    assert Apart(channels=True).forgets(channel) is False
    document = ChannelDocument("e", Channel(channel, "s"), 1)
    assert document.counts(apart) is not may_be
    assert replace(document, turn="t1").counts(apart)
    assert document.counts(Apart())


def test_documents_are_named_by_channel_version_and_turn() -> None:
    document = ChannelDocument("e", Channel("c1", "s"), 7)
    assert (document.name, replace(document, turn="t1").name) == ("c1:7", "c1:7:t1")
