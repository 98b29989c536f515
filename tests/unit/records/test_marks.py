"""Marks: texts that come back as they were, and whose order is that of their times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.ledger import (
    DIGITS,
    KEPT,
    KINDS,
    SEPARATOR,
    Mark,
    by_hash,
    content_in,
    destination_digit,
    destination_place,
    hash_in,
    is_after,
    is_timed,
    read_time,
    split,
    time_in,
    written,
    written_time,
)
from exactlyonce.values.envelope import message_hash

LATEST = 64**7 - 1
times = st.integers(0, LATEST)
places = st.integers(0, 5_000)
sent = st.lists(st.one_of(places.map(destination_digit), st.just(KEPT)), max_size=5).map("".join)
contents = st.text("ABCDabcd0123+/", min_size=4, max_size=4)
marks = st.builds(Mark, times, st.text().map(message_hash), st.sampled_from(KINDS), st.booleans(), contents, sent)


@given(marks)
def test_a_mark_comes_back_as_it_was(mark: Mark) -> None:
    assert Mark.read(mark.text) == mark
    parts = (time_in(mark.text), hash_in(mark.text), is_timed(mark.text), content_in(mark.text))
    assert parts == (mark.since, mark.hash, mark.timed, mark.content)


@given(times, times)
def test_the_order_of_times_is_that_of_their_texts(number: int, other: int) -> None:
    assert (written_time(number) < written_time(other)) == (number < other)
    assert read_time(written_time(number)) == number


@given(marks, times)
def test_whether_a_mark_is_after_a_time_is_told_by_its_text(mark: Mark, time: int) -> None:
    assert is_after(mark.text, written_time(time)) == (mark.since > time)


@given(st.lists(marks, max_size=10))
def test_marks_that_stand_together_come_back_in_the_order_of_their_times(many: list[Mark]) -> None:
    texts = split(written(item.text for item in many))
    assert sorted(texts) == sorted(item.text for item in many)
    assert [time_in(text) for text in texts] == sorted(item.since for item in many)
    assert {*by_hash(written(item.text for item in many))} == {item.hash for item in many}


@given(places)
def test_the_character_of_a_destination_is_none_of_the_marks_own(place: int) -> None:
    digit = destination_digit(place)
    assert len(digit) == 1
    assert digit not in (SEPARATOR, KEPT)
    assert destination_place(digit) == place


@pytest.mark.parametrize(("time", "taken"), [(-1, 0), (-(10**15), 0), (LATEST + 1, LATEST), (10**15, LATEST)])
def test_a_time_that_seven_digits_do_not_hold_is_the_nearest_one(time: int, taken: int) -> None:
    assert read_time(written_time(time)) == taken


@pytest.mark.parametrize("text", ["", "-" * 27, "-" * 23 + "x" + "AAAA", "." * 7 + "A" * 16 + "fAAAA"])
def test_a_malformed_mark_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"mark|substring"):
        Mark.read(text)


def test_the_digits_are_in_their_order() -> None:
    assert "".join(sorted(DIGITS)) == DIGITS
    assert len(DIGITS) == 64
