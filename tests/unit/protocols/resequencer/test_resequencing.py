"""The resequencer, seen from outside: messages come as they like and are handled in the order in which they were sent."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope
from exactlyonce.attempt import Finished, Memory
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.records.companions import NumberedMessage, id_of
from exactlyonce.records.ledger import LEDGER, entity_document
from exactlyonce.values.frozen_json import Json
from tests.unit.boards import BOARD, RESEQUENCER, Readers, document_of, received, scored
from tests.unit.script import AT

FOUR = ["1", "2", "3", "4"]
ORDERS = pytest.mark.parametrize("order", list(permutations((1, 2, 3, 4))), ids=str)
ARRIVALS = st.lists(st.tuples(st.sampled_from("st"), st.integers(1, 6)), max_size=20)


class TestInOrder:
    def test_a_message_in_its_turn_is_handled_at_once(self) -> None:
        readers = Readers()
        played = readers.attempted(scored(1))
        assert played.requests == [LoadEntity, SaveBatch]
        assert played.finished.processed == ("s/m-1",)
        assert readers.seen == ["1"]
        assert readers.ledger.receptions == (received("s", next=2),)
        assert (readers.ledger.version, readers.ledger.protocol) == (1, "resequencer")

    def test_its_number_leaves_a_document_without_the_message(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        assert readers.companions == [document_of(1, "s/m-1", AT)]

    def test_the_next_one_needs_no_look_at_documents(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        assert readers.attempted(scored(2)).requests == [LoadEntity, SaveBatch]

    def test_a_group_is_handled_in_order_whatever_its_own(self) -> None:
        readers = Readers()
        finished = readers.delivered(scored(3), scored(1), scored(4), scored(2))
        assert readers.seen == FOUR
        assert finished.processed == ("s/m-1", "s/m-2", "s/m-3", "s/m-4")
        assert readers.ledger.version == 4

    def test_a_copy_of_what_was_handled_is_dropped(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        played = readers.attempted(scored(1), scored(1))
        assert played.requests == [LoadEntity, LoadCompanions]
        assert played.result == Finished(Memory(entity_token="0:-1#2"))
        assert readers.seen == ["1"]

    def test_what_clean_up_has_forgotten_is_dropped_as_well(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        (document,) = readers.companions
        readers.usual(DeleteCompanions(BOARD, ((id_of(BOARD, document), '"2"'),)))
        assert readers.companions == []
        assert readers.delivered(scored(1)).failed == ()
        assert readers.seen == ["1"]


class TestOutOfOrder:
    def test_a_message_that_is_early_is_held_and_acknowledged(self) -> None:
        readers = Readers()
        played = readers.attempted(scored(3))
        assert played.requests == [LoadEntity, SaveBatch]
        assert (played.finished.processed, played.finished.failed, played.finished.stopped) == ((), (), ())
        assert readers.handled == []
        held = document_of(3, "s/m-3", AT, scored(3).to_json())
        assert readers.companions == [held]
        assert readers.ledger.receptions == (received("s", 1, ((3, 3),), gap_since=AT),)

    def test_what_follows_without_a_gap_is_released_with_what_was_missing(self) -> None:
        readers = Readers()
        for number in (2, 3, 5):
            readers.delivered(scored(number))
        played = readers.attempted(scored(1))
        assert played.requests == [LoadEntity, LoadCompanions, SaveBatch]
        assert played.finished.processed == ("s/m-1", "s/m-2", "s/m-3")
        assert readers.seen == ["1", "2", "3"]
        assert (readers.held, readers.waiting) == ({"s": ((5, 5),)}, ["s5"])

    def test_the_documents_of_what_is_released_are_written_over_as_they_were_read(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        commit = readers.attempted(scored(1)).only(SaveBatch)
        ((released, etag),) = commit.replace
        assert (released, etag) == (document_of(2, "s/m-2", AT), '"2"')
        assert [item.number for item in commit.create if isinstance(item, NumberedMessage)] == [1]

    def test_a_copy_of_what_is_held_is_dropped(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        played = readers.attempted(scored(2))
        assert played.requests == [LoadEntity, LoadCompanions]
        assert (readers.held, readers.ledger.version) == ({"s": ((2, 2),)}, 0)

    def test_held_messages_are_read_at_the_token_of_the_read_model(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        assert readers.attempted(scored(1)).only(LoadCompanions).token == "0:-1#2"

    @ORDERS
    def test_every_order_comes_to_the_same_one_at_a_time(self, order: tuple[int, ...]) -> None:
        readers = Readers()
        for number in order:
            for _ in range(2):
                assert readers.delivered(scored(number)).failed == ()
        self.require_all_handled(readers)

    @ORDERS
    def test_every_order_comes_to_the_same_in_pairs(self, order: tuple[int, ...]) -> None:
        readers = Readers()
        for pair in (order[:2], order[1:3], order[2:], order[:1]):
            readers.delivered(*(scored(number) for number in pair))
        self.require_all_handled(readers)

    def require_all_handled(self, readers: Readers) -> None:
        assert readers.seen == FOUR
        assert readers.handled == ["s1", "s2", "s3", "s4"]
        assert readers.ledger.receptions == (received("s", next=5),)
        assert (readers.waiting, readers.ledger.version) == ([], 4)

    def test_an_attempt_without_messages_releases_what_can_be(self) -> None:
        readers = Readers()
        readers.broken = {("s", 1)}
        readers.delivered(scored(1), scored(2))
        readers.broken.clear()
        readers.delivered()
        assert readers.seen == ["1", "2"]


@given(ARRIVALS, st.integers(1, 4))
def test_each_source_is_handled_as_far_as_it_has_no_gap(arrivals: list[tuple[str, int]], size: int) -> None:
    readers = Readers()
    waiting: list[Envelope] = [scored(number, source) for source, number in arrivals]
    while waiting:
        assert readers.delivered(*waiting[:size]).failed == ()
        waiting = waiting[size:]
    came = {source: {number for name, number in arrivals if name == source} for source in "st"}
    for source, numbers in came.items():
        following = next(number for number in range(1, 9) if number not in numbers)
        assert [item for item in readers.handled if item[0] == source] == [
            f"{source}{item}" for item in range(1, following)
        ]
        assert readers.reception(source).next == following
    held = [f"{name}{item}" for name in "st" for item in sorted(came[name]) if item > readers.reception(name).next]
    assert readers.waiting == held


class TestTwoSources:
    def test_each_is_counted_on_its_own(self) -> None:
        readers = Readers()
        readers.delivered(scored(2, "t"), scored(1, "s"))
        assert readers.handled == ["s1"]
        readers.delivered(scored(1, "t"))
        assert readers.handled == ["s1", "t1", "t2"]
        assert readers.ledger.receptions == (received("s", next=2), received("t", next=3))

    def test_ids_may_be_the_same(self) -> None:
        readers = Readers()
        finished = readers.delivered(scored(1, "s", id="x"), scored(1, "t", id="x"))
        assert finished.processed == ("s/x", "t/x")


class TestGaps:
    def test_a_gap_is_dated_when_it_appears_and_keeps_its_date(self) -> None:
        readers = Readers()
        readers.delivered(scored(3))
        readers.at += timedelta(hours=1)
        readers.delivered(scored(4))
        readers.delivered(scored(4))
        assert readers.reception() == received("s", 1, ((3, 4),), gap_since=AT)

    def test_a_gap_that_becomes_smaller_begins_anew(self) -> None:
        readers = Readers()
        readers.delivered(scored(3))
        readers.at += timedelta(hours=1)
        readers.delivered(scored(1))
        assert readers.reception() == received("s", 2, ((3, 3),), gap_since=readers.at)

    def test_a_gap_that_is_filled_has_no_date(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        readers.delivered(scored(1))
        assert readers.reception().gap_since is None

    def test_what_comes_in_order_has_no_gap(self) -> None:
        readers = Readers()
        readers.delivered(scored(1), scored(2))
        assert readers.reception().gap_since is None

    def test_the_gap_of_one_source_is_none_of_another(self) -> None:
        readers = Readers()
        readers.delivered(scored(2, "t"), scored(1, "s"))
        assert (readers.reception("t").gap_since, readers.reception("s").gap_since) == (AT, None)


class TestTheReadModel:
    def test_it_stays_absent_while_messages_are_only_held(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        assert readers.document is not None
        assert set(readers.document.value) == {"id", LEDGER}
        assert (readers.body, readers.ledger.deleted, readers.ledger.version) == (None, True, 0)
        readers.delivered(scored(1))
        assert (readers.seen, readers.ledger.deleted) == (["1", "2"], False)

    def test_it_keeps_its_state_while_messages_are_only_held(self) -> None:
        readers = Readers(Json.of({"id": "b", "seen": ["0"], "colour": "red"}))
        readers.delivered(scored(2))
        assert readers.body == {"id": "b", "seen": ["0"], "colour": "red"}
        readers.delivered(scored(1))
        assert readers.body is not None
        assert (readers.seen, readers.body["colour"]) == (["0", "1", "2"], "red")

    def test_it_may_be_deleted_and_come_back_within_its_sequence(self) -> None:
        readers = Readers()
        readers.delivered(scored(1), scored(2, ends=True))
        assert (readers.body, readers.ledger.deleted) == (None, True)
        readers.delivered(scored(4))
        assert (readers.body, readers.ledger.deleted) == (None, True)
        readers.delivered(scored(3))
        assert (readers.seen, readers.reception().next) == (["3", "4"], 5)

    def test_its_fence_is_its_ledger(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        stale = readers.usual(LoadEntity(BOARD))
        assert stale.document is not None
        readers.put(entity_document(Json.of({"id": "b"}), readers.ledger))
        played = readers.attempted(scored(1), replies={LoadEntity: stale})
        assert played.requests == [LoadEntity, LoadCompanions, SaveBatch]
        assert not played.again.progressed
        assert readers.seen is None

    def test_a_group_is_at_most_half_a_batch(self) -> None:
        assert RESEQUENCER.group_limit == 49
        assert not RESEQUENCER.forgets(scored(1))
