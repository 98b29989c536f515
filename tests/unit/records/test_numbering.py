"""Numbers of outputs: how they are given out, and what is no number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce import InvalidMessage
from exactlyonce.records.sequences import LARGEST_NUMBER, Order, Sequence, Sequences, numbered, order_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

ABOUT = "Message web/m-1 for read model board/b"
PLACES = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), max_size=30)


def with_extensions(**extensions: Any) -> Envelope:
    return Envelope("web", "m-1", "board.scored", Json("{}"), extensions=tuple(sorted(extensions.items())))


@given(PLACES)
@settings(max_examples=200, deadline=None)
def test_every_destination_and_key_is_counted_from_one_on_its_own(places: list[tuple[str, str]]) -> None:
    sequences: Sequences = ()
    counted: dict[tuple[str, str], int] = {}
    for destination, key in places:
        sequences, order = numbered(sequences, destination, key)
        counted[destination, key] = counted.get((destination, key), 0) + 1
        assert order == Order(key, counted[destination, key])
    assert sequences == tuple(Sequence(*place, last) for place, last in counted.items())


def test_counting_goes_on_from_what_the_ledger_says() -> None:
    before = (Sequence("boards", "a", 7), Sequence("boards", "b", 3))
    after, order = numbered(before, "boards", "b")
    assert (after, order) == ((before[0], Sequence("boards", "b", 4)), Order("b", 4))
    assert before[1].last == 3


@given(st.text(min_size=1, max_size=20), st.integers(1, LARGEST_NUMBER))
@settings(max_examples=100, deadline=None)
def test_a_place_is_read_as_it_was_written(key: str, number: int) -> None:
    order = Order(key, number)
    assert order_of(with_extensions(**dict(order.extensions)), ABOUT) == order


def test_numbers_sort_as_texts_on_the_wire() -> None:
    numbers = [1, 2, 10, 99, 100, 2**40, LARGEST_NUMBER]
    texts = [dict(Order("b", number).extensions)["sequence"] for number in numbers]
    assert texts == sorted(texts)
    assert texts[0] == "0000000000000001"
    assert {len(text) for text in texts} == {16}


def test_the_extensions_come_sorted_as_an_envelope_keeps_them() -> None:
    assert Order("b", 3).extensions == (("partitionkey", "b"), ("sequence", "0000000000000003"))


@pytest.mark.parametrize("text", ["7", "007", "0" * 60 + "7", 7])
def test_other_senders_may_write_the_number_as_they_like(text: str | int) -> None:
    assert order_of(with_extensions(sequence=text, partitionkey="b"), ABOUT) == Order("b", 7)


@pytest.mark.parametrize(
    ("extensions", "lacking"),
    [
        ({}, "has no sequence and no partitionkey"),
        ({"sequence": "1"}, "has no partitionkey"),
        ({"partitionkey": "b"}, "has no sequence,"),
    ],
)
def test_a_message_without_a_place_says_what_it_lacks_and_where_to_declare_it(
    extensions: dict[str, str], lacking: str
) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT} {lacking}.*order_by=") as caught:
        order_of(with_extensions(**extensions), ABOUT)
    assert "context.send" in str(caught.value)


NO_NUMBERS = (
    "",
    "0",
    "0000000000000000",
    "-1",
    "+1",
    " 1",
    "1_0",
    "1.0",
    "1e3",
    "x",
    "²",
    "٣",
    "1\n",
    0,
    -1,
    1.5,
    True,
)
TOO_LARGE = (str(LARGEST_NUMBER + 1), LARGEST_NUMBER + 1, "9" * 17, pytest.param("9" * 10_000, id="endless"))


@pytest.mark.parametrize("number", [*NO_NUMBERS, *TOO_LARGE])
def test_what_is_no_number_is_refused_with_the_advice_to_correct_the_sender(number: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT}.*sequence.*Correct the sender"):
        order_of(with_extensions(sequence=number, partitionkey="b"), ABOUT)


@pytest.mark.parametrize("key", [1, True])
def test_an_ordering_key_is_a_string(key: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT}.*partitionkey.*Correct the sender"):
        order_of(with_extensions(sequence="1", partitionkey=key), ABOUT)


def test_the_largest_number_is_taken() -> None:
    assert LARGEST_NUMBER == 9_007_199_254_740_991
    assert order_of(with_extensions(sequence=str(LARGEST_NUMBER), partitionkey="b"), ABOUT).number == LARGEST_NUMBER
