"""Sequences: how numbers are given out, and which sequences are forgotten."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce.records.places import LONGEST_CHANNEL, Place
from exactlyonce.records.sequences import MOST_SEQUENCES, Sequence, Sequences, channel_id, numbered

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
TX = "9f" * 16
RECEIVERS = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), max_size=30)


def full(*, ordered: bool) -> Sequences:
    """As many sequences as are kept."""
    return tuple(Sequence("boards", f"board/{number}", f"c{number}", 7, ordered) for number in range(MOST_SEQUENCES))


@given(RECEIVERS)
@settings(max_examples=200, deadline=None)
def test_every_destination_and_receiver_is_counted_from_one_on_its_own(receivers: list[tuple[str, str]]) -> None:
    sequences: Sequences = ()
    counted: dict[tuple[str, str], int] = {}
    for destination, receiver in receivers:
        sequences, place = numbered(sequences, destination, receiver, destination + receiver)
        counted[destination, receiver] = counted.get((destination, receiver), 0) + 1
        assert place == Place(destination + receiver, receiver, counted[destination, receiver])
    assert sequences == tuple(Sequence(*one, "".join(one), last) for one, last in counted.items())


def test_counting_goes_on_in_the_channel_that_the_ledger_names() -> None:
    before = (Sequence("boards", "a", "c1", 7), Sequence("boards", "b", "c2", 3))
    after, place = numbered(before, "boards", "b", "new")
    assert (after, place) == ((before[0], Sequence("boards", "b", "c2", 4)), Place("c2", "b", 4))
    assert before[1].last == 3


def test_beyond_the_most_that_are_kept_the_one_that_began_first_is_forgotten() -> None:
    before = full(ordered=False)
    after, place = numbered(before, "boards", "board/new", "new")
    assert after == (*before[1:], Sequence("boards", "board/new", "new", 1))
    assert place == Place("new", "board/new", 1)


def test_a_sequence_whose_receiver_takes_messages_in_their_order_is_never_forgotten() -> None:
    before = (*full(ordered=True), Sequence("boards", "board/loose", "c", 3))
    after, _ = numbered(before, "boards", "board/new", "new", ordered=True)
    assert after == (*before[:-1], Sequence("boards", "board/new", "new", 1, ordered=True))
    more, _ = numbered(after, "boards", "board/newer", "newer", ordered=True)
    assert more == (*after, Sequence("boards", "board/newer", "newer", 1, ordered=True))


RECEIVED = Sequence("boards", "a", "c1", 7)


def begun(at: datetime, *, ordered: bool = False) -> Sequence:
    return Sequence("boards", "board/b", channel_id(at, TX, 0), 3, ordered)


def test_a_channel_that_began_before_a_time_gives_way_to_a_fresh_one() -> None:
    before = (begun(AT), RECEIVED)
    after, place = numbered(before, "boards", "board/b", "new", since=AT + timedelta(milliseconds=1))
    assert (after, place) == ((RECEIVED, Sequence("boards", "board/b", "new", 1)), Place("new", "board/b", 1))


def test_one_that_began_at_the_time_goes_on() -> None:
    before = (begun(AT), RECEIVED)
    after, place = numbered(before, "boards", "board/b", "new", since=AT)
    assert (after, place.number) == ((Sequence("boards", "board/b", before[0].channel, 4), RECEIVED), 4)


def test_one_whose_messages_have_an_order_goes_on_and_so_does_one_whose_beginning_is_not_known() -> None:
    later = AT + timedelta(days=900)
    _, place = numbered((begun(AT, ordered=True),), "boards", "board/b", "new", ordered=True, since=later)
    assert place.number == 4
    assert numbered((RECEIVED,), "boards", "a", "new", since=later)[1] == Place("c1", "a", 8)


def test_a_fresh_channel_in_place_of_an_old_one_pushes_none_out() -> None:
    before = (*full(ordered=False)[1:], begun(AT))
    after, _ = numbered(before, "boards", "board/b", "new", since=AT + timedelta(days=1))
    assert after == (*before[:-1], Sequence("boards", "board/b", "new", 1))


def test_a_channel_has_an_id_of_its_own_for_each_time_transaction_and_count() -> None:
    ids = [
        channel_id(at, tx, count)
        for at in (AT, AT + timedelta(milliseconds=1))
        for tx in (TX, "9e" * 16)
        for count in (0, 1, 256)
    ]
    assert len(set(ids)) == len(ids)
    assert {len(id) for id in ids} == {32}
    assert all(id.isalnum() and len(id) <= LONGEST_CHANNEL for id in ids)


def test_ids_of_channels_sort_by_the_time_at_which_they_began() -> None:
    assert channel_id(AT, "ff" * 16, 9) < channel_id(AT + timedelta(milliseconds=1), "00" * 16, 0)
