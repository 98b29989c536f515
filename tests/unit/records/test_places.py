"""Places on the wire, which are refused, how numbers are given out, and how channels are named."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.errors import InvalidMessage
from exactlyonce.records.outbox import (
    LARGEST_NUMBER,
    LONGEST_CHANNEL,
    Place,
    Sequence,
    Sequences,
    channel_id,
    is_numbered,
    numbered,
    place_of,
    stated_place,
)
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.unit.bookkeeping import tx

ABOUT = "Message web/m-1 for read model board/b"
BOARD = EntityRef("board", ("b",), "b")
CHANNELS = st.text("abcXYZ019", min_size=1, max_size=LONGEST_CHANNEL)


def with_extensions(**extensions: Any) -> Envelope:
    return Envelope("web", "m-1", "board.scored", Json("{}"), extensions=tuple(sorted(extensions.items())))


def placed(receiver: EntityRef = BOARD, **other: Any) -> Place:
    """The place that is read from an envelope with that of number 7, but for these extensions."""
    place = {"channel": "c1", "partitionkey": "board/b", "sequence": "7"}
    return place_of(with_extensions(**{**place, **other}), receiver, ABOUT)


@given(CHANNELS, st.text(min_size=1, max_size=20), st.integers(1, LARGEST_NUMBER))
def test_a_place_is_read_as_it_was_written(channel: str, id: str, number: int) -> None:
    receiver = EntityRef("board", (id,), id)
    place = Place(channel, receiver.source, number)
    assert place_of(with_extensions(**dict(place.extensions)), receiver, ABOUT) == place


def test_numbers_sort_as_texts_on_the_wire() -> None:
    numbers = [1, 2, 10, 99, 100, 2**40, LARGEST_NUMBER]
    texts = [dict(Place("c1", "board/b", number).extensions)["sequence"] for number in numbers]
    assert texts == sorted(texts)
    assert texts[0] == "0000000000000001"
    assert {len(text) for text in texts} == {16}


def test_the_extensions_come_sorted_as_an_envelope_keeps_them() -> None:
    assert Place("c1", "board/b", 3).extensions == (
        ("channel", "c1"),
        ("partitionkey", "board/b"),
        ("sequence", "0000000000000003"),
    )


@pytest.mark.parametrize("text", ["7", "007", "0" * 60 + "7", 7])
def test_other_senders_may_write_the_number_as_they_like(text: str | int) -> None:
    assert placed(sequence=text) == Place("c1", "board/b", 7)


@pytest.mark.parametrize(
    ("extensions", "lacking"),
    [
        ({}, "has no channel and no partitionkey and no sequence"),
        ({"sequence": "1"}, "has no channel and no partitionkey,"),
        ({"channel": "c1", "sequence": "1"}, "has no partitionkey,"),
        ({"partitionkey": "board/b", "channel": "c1"}, "has no sequence,"),
    ],
)
def test_a_message_without_a_place_says_what_it_lacks_and_where_to_declare_it(
    extensions: dict[str, str], lacking: str
) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT} {lacking}.*Destination\(.*entity_by="):
        place_of(with_extensions(**extensions), BOARD, ABOUT)


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
    0,
    -1,
    True,
)
TOO_LARGE = (str(LARGEST_NUMBER + 1), LARGEST_NUMBER + 1, "9" * 17, pytest.param("9" * 10_000, id="endless"))


@pytest.mark.parametrize("number", [*NO_NUMBERS, *TOO_LARGE])
def test_a_malformed_number_is_refused_with_the_advice_to_correct_the_sender(number: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT}.*sequence.*Correct the sender"):
        placed(sequence=number)


@pytest.mark.parametrize("channel", ["", "x" * (LONGEST_CHANNEL + 1), "a-b", "a/b", "ü", "a b", 1, True], ids=repr)
def test_a_malformed_channel_is_refused_with_the_advice_to_correct_the_sender(channel: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT}.* channel .*Correct the sender"):
        placed(channel=channel)


@pytest.mark.parametrize("receiver", ["board/c", "b", "", "board/eu/b", 1, True], ids=repr)
def test_a_message_for_another_receiver_is_refused(receiver: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{ABOUT} is numbered for {receiver!r}.*entity_by="):
        placed(partitionkey=receiver)


def test_receivers_that_share_an_id_are_told_apart() -> None:
    with pytest.raises(InvalidMessage, match="is numbered for 'board/eu/b'"):
        placed(EntityRef("board", ("us",), "b"), partitionkey="board/eu/b")


def test_a_message_that_names_a_channel_says_that_it_has_a_place() -> None:
    assert is_numbered(with_extensions(channel="c1"))
    assert not is_numbered(with_extensions(partitionkey="board/b", sequence="1"))


def test_the_largest_number_is_taken() -> None:
    assert LARGEST_NUMBER == 9_007_199_254_740_991
    assert placed(sequence=str(LARGEST_NUMBER)).number == LARGEST_NUMBER


def test_the_place_that_a_message_says_it_has_is_read_whoever_receives_it() -> None:
    place = Place("c1", "board/=7/b", 3)
    assert stated_place(with_extensions(**dict(place.extensions))) == place


@pytest.mark.parametrize(
    "extensions",
    [
        {},
        {"partitionkey": "board/b"},
        {"channel": "c1", "sequence": "3"},
        {"channel": "c1", "partitionkey": "board/b", "sequence": "0"},
        {"channel": "c1", "partitionkey": "of no entity", "sequence": "3"},
        {"channel": "c1", "partitionkey": 7, "sequence": "3"},
        {"channel": "c 1", "partitionkey": "board/b", "sequence": "3"},
    ],
)
def test_a_message_without_a_place_or_with_one_that_cannot_be_states_none(
    extensions: dict[str, Any],
) -> None:
    assert stated_place(with_extensions(**extensions)) is None


AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
RECEIVERS = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), max_size=30)


@given(RECEIVERS)
def test_every_destination_and_receiver_is_counted_from_one_on_its_own(receivers: list[tuple[str, str]]) -> None:
    sequences: Sequences = ()
    counted: dict[tuple[str, str], int] = {}
    for destination, receiver in receivers:
        sequences, place = numbered(sequences, destination, receiver, destination + receiver)
        counted[destination, receiver] = counted.get((destination, receiver), 0) + 1
        assert place == Place(destination + receiver, receiver, counted[destination, receiver])
    assert sequences == tuple(Sequence(*item, "".join(item), last) for item, last in counted.items())


def test_counting_goes_on_in_the_channel_that_the_ledger_names() -> None:
    before = (Sequence("boards", "a", "c1", 7), Sequence("boards", "b", "c2", 3))
    after, place = numbered(before, "boards", "b", "new")
    assert (after, place) == ((before[0], Sequence("boards", "b", "c2", 4)), Place("c2", "b", 4))
    assert before[1].last == 3


def test_a_channel_has_an_id_of_its_own_for_each_time_transaction_and_count() -> None:
    ids = [
        channel_id(at, transaction, count)
        for at in (AT, AT + timedelta(milliseconds=1))
        for transaction in (tx(1), tx(2))
        for count in (0, 1, 256)
    ]
    assert len(set(ids)) == len(ids)
    assert {len(id) for id in ids} == {32}
    assert all(id.isalnum() and len(id) <= LONGEST_CHANNEL for id in ids)


def test_ids_of_channels_sort_by_the_time_at_which_they_began() -> None:
    assert channel_id(AT, tx(9), 9) < channel_id(AT + timedelta(milliseconds=1), tx(1), 0)
