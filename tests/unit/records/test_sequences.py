"""Sequences: how numbers are given out, and how channels are named."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.records.outbox import LONGEST_CHANNEL, Place, Sequence, Sequences, channel_id, numbered
from tests.unit.bookkeeping import tx

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
