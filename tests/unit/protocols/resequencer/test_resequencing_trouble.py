"""The resequencer under trouble: handlers that raise, mistakes of senders, replies that prove nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import Envelope, TryAgainLater
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import DeleteCompanions, FoundCompanions, HasCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.errors import DamagedDocument, HandlerFailed, InvalidMessage, LedgerRemoved
from exactlyonce.protocols.resequencer.release import FARTHEST_AHEAD
from exactlyonce.records.companions import id_of
from exactlyonce.records.ledger import entity_document
from exactlyonce.values.frozen_json import Json
from tests.unit.boards import BOARD, RESEQUENCER, Readers, channel_of, document_of, received, scored
from tests.unit.protocols.cleaning import listed
from tests.unit.script import AT


def stopped_at_one() -> Readers:
    """A read model whose handler raises for the first message; the second is held as well."""
    readers = Readers()
    readers.broken = {("s", 1)}
    readers.delivered(scored(1), scored(2))
    return readers


class TestAHandlerThatRaises:
    def test_its_message_is_held_with_all_that_follow_and_acknowledged(self) -> None:
        readers = Readers()
        readers.broken = {("s", 2)}
        finished = readers.delivered(scored(1), scored(2), scored(3))
        assert (finished.processed, finished.failed) == (("s/m-1",), ())
        ((key, error),) = finished.stopped
        assert (key, type(error)) == ("s/m-2", HandlerFailed)
        assert readers.seen == ["1"]
        assert readers.reception() == received("s", 2, ((2, 3),), failing="HandlerFailed")
        assert readers.waiting == ["s2", "s3"]

    def test_it_changes_nothing_else(self) -> None:
        readers = stopped_at_one()
        assert (readers.body, readers.ledger.version) == (None, 0)

    def test_every_arrival_tries_again_and_goes_on_once_the_handler_is_fixed(self) -> None:
        readers = stopped_at_one()
        finished = readers.delivered(scored(3))
        assert [key for key, _ in finished.stopped] == ["s/m-1"]
        assert readers.reception() == received("s", 1, ((1, 3),), failing="HandlerFailed")
        readers.broken.clear()
        assert readers.delivered(scored(4)).processed == ("s/m-1", "s/m-2", "s/m-3", "s/m-4")
        assert readers.reception() == received("s", 5)
        assert readers.waiting == []

    @pytest.mark.parametrize("number", [1, 2])
    def test_so_does_a_copy_of_what_is_held(self, number: int) -> None:
        readers = stopped_at_one()
        readers.broken.clear()
        readers.delivered(scored(number))
        assert readers.seen == ["1", "2"]

    def test_while_it_raises_the_same_a_copy_writes_nothing(self) -> None:
        readers = stopped_at_one()
        writes = readers.writes
        played = readers.attempted(scored(1))
        assert played.requests == [LoadEntity, LoadCompanions]
        assert [key for key, _ in played.finished.stopped] == ["s/m-1"]
        assert readers.writes == writes

    def test_another_error_is_written_down(self) -> None:
        readers = stopped_at_one()
        readers.put(entity_document(Json.of({"id": "b", "seen": "damaged"}), replace(readers.ledger, deleted=False)))
        readers.broken.clear()
        readers.delivered(scored(1))
        assert readers.reception() == received("s", 1, ((1, 2),), failing="DamagedDocument")

    def test_the_channel_of_another_source_goes_on(self) -> None:
        readers = stopped_at_one()
        finished = readers.delivered(scored(2, "t"), scored(1, "t"), scored(3))
        assert finished.processed == ("t/m-1", "t/m-2")
        assert [key for key, _ in finished.stopped] == ["s/m-1"]
        assert readers.seen == ["1", "2"]

    def test_one_that_asks_to_try_again_later_does_not_keep_others_waiting(self) -> None:
        """The error of the library's own says something else where a handler raises it."""
        readers = Readers()

        def impatient(before: Before, envelope: Envelope) -> Handled:
            if envelope.source == "s":
                raise TryAgainLater("not yet")
            return readers.handle(before, envelope)

        played = readers.play(RESEQUENCER.attempt(readers.work(scored(1), scored(1, "t"), handle=impatient), Memory()))
        assert played.finished.processed == ("t/m-1",)
        assert readers.reception() == received("s", 1, ((1, 1),), failing="TryAgainLater")

    def test_a_stop_is_no_gap(self) -> None:
        assert stopped_at_one().reception().gap_since is None


class TestMistakesOfSenders:
    def refused(self, readers: Readers, *messages: Envelope) -> tuple[str, str]:
        finished = readers.delivered(*messages)
        ((key, error),) = finished.failed
        assert isinstance(error, InvalidMessage)
        assert f"Message {key} for read model board/b" in str(error)
        return key, str(error)

    def test_a_message_without_a_number_fails_alone(self) -> None:
        readers = Readers()
        key, text = self.refused(readers, replace(scored(2), extensions=()), scored(1))
        assert key == "s/m-2"
        assert "no channel and no partitionkey and no sequence" in text
        assert readers.seen == ["1"]

    def test_a_number_for_another_read_model_would_leave_gaps(self) -> None:
        readers = Readers()
        key, text = self.refused(readers, scored(1, key="c"), scored(1, "t"))
        assert key == "s/m-1"
        assert "numbered for 'board/c'" in text
        assert "entity_by=" in text
        assert readers.handled == ["t1"]

    def test_a_channel_of_another_source_is_refused(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        key, text = self.refused(readers, replace(scored(2), source="t"), scored(2))
        assert (key, f"channel {channel_of('s')}, which belongs to s" in text) == ("t/m-2", True)
        assert readers.handled == ["s1", "s2"]

    def test_of_two_sources_that_begin_one_channel_in_a_group_the_second_is_refused(self) -> None:
        readers = Readers()
        key, _ = self.refused(readers, scored(1), replace(scored(2), source="t"))
        assert (key, readers.handled) == ("t/m-2", ["s1"])

    def test_two_messages_with_one_number_in_a_group(self) -> None:
        readers = Readers()
        key, text = self.refused(readers, scored(1, id="x"), scored(1, id="y"), scored(2))
        assert key == "s/y"
        assert "number 1 in channel froms of s, and so has message s/x" in text
        assert readers.handled == ["s1", "s2"]

    def test_a_second_message_with_the_number_of_one_that_is_held(self) -> None:
        readers = Readers()
        readers.delivered(scored(2, id="x"))
        key, text = self.refused(readers, scored(2, id="y"))
        assert (key, "and so has message s/x" in text) == ("s/y", True)
        assert readers.delivered(scored(1)).processed == ("s/m-1", "s/x")

    def test_a_second_message_with_the_number_of_one_that_was_handled(self) -> None:
        readers = Readers()
        readers.delivered(scored(1, id="x"))
        key, text = self.refused(readers, scored(1, id="y"), scored(2))
        assert (key, "and so has message s/x" in text) == ("s/y", True)
        assert "gives out numbers a second time" in text
        assert readers.handled == ["s1", "s2"]

    def test_a_number_far_ahead_is_not_held(self) -> None:
        readers = Readers()
        readers.delivered(scored(1))
        key, text = self.refused(readers, scored(2 + FARTHEST_AHEAD))
        assert key == f"s/m-{2 + FARTHEST_AHEAD}"
        assert f"2 is next: more than {FARTHEST_AHEAD} ahead" in text
        readers.delivered(scored(1 + FARTHEST_AHEAD))
        assert readers.held == {"s": ((1 + FARTHEST_AHEAD, 1 + FARTHEST_AHEAD),)}

    def test_where_all_are_refused_nothing_is_written(self) -> None:
        readers = Readers()
        played = readers.attempted(scored(1, key="c"))
        assert played.requests == [LoadEntity]
        assert readers.writes == 0


class TestASkippedNumber:
    """Someone gave up on number 1, and said so in its document."""

    def skipped(self) -> Readers:
        readers = Readers()
        readers.delivered(scored(2))
        gone = document_of(1, None, AT)
        ledger = replace(readers.ledger, receptions=(received("s", 2, ((2, 2),)),))
        document = entity_document(Json.of({"id": "b"}), ledger)
        readers.usual(SaveBatch(BOARD, document, '"1"', (gone,)))
        readers.delivered()
        assert (readers.seen, readers.reception()) == (["2"], received("s", 3))
        return readers

    def test_its_message_comes_too_late_is_dropped_and_noted(self) -> None:
        readers = self.skipped()
        finished = readers.delivered(scored(1))
        assert (finished.processed, finished.failed) == ((), ())
        assert readers.seen == ["2"]
        noted = next(companion for companion in readers.companions if id_of(BOARD, companion).endswith(":1"))
        assert noted == document_of(1, "s/m-1", AT)

    def test_a_copy_of_it_writes_nothing_more(self) -> None:
        readers = self.skipped()
        readers.delivered(scored(1))
        writes = readers.writes
        readers.delivered(scored(1))
        assert readers.writes == writes

    def test_another_message_with_its_number_is_refused(self) -> None:
        readers = self.skipped()
        readers.delivered(scored(1))
        ((key, error),) = readers.delivered(scored(1, id="y")).failed
        assert (key, type(error)) == ("s/y", InvalidMessage)

    def test_others_of_its_group_are_handled(self) -> None:
        readers = self.skipped()
        readers.delivered(scored(1), scored(3), scored(1, "t"))
        assert readers.seen == ["2", "3", "1"]


class TestNoAnswers:
    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_a_read_without_an_answer_is_the_last_effect(self, reply: NoAnswer) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        played = readers.attempted(scored(1), memory=Memory(entity_token="0:-1#1"), replies={LoadEntity: reply})
        assert (played.requests, played.again.memory) == ([LoadEntity], Memory(entity_token="0:-1#1"))
        played = readers.attempted(scored(1), replies={LoadCompanions: reply})
        assert (played.requests, played.again.memory) == ([LoadEntity, LoadCompanions], Memory(entity_token="0:-1#2"))
        assert not played.again.progressed

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9"), Conflict(None)])
    def test_what_may_not_be_committed_is_not_published(self, reply: Any) -> None:
        readers = Readers()
        played = readers.attempted(scored(1, answers=1), replies={SaveBatch: reply})
        assert played.requests == [LoadEntity, SaveBatch]
        assert played.again.memory.entity_token == ("0:-1#9" if reply == Conflict("0:-1#9") else "0:-1#0")
        assert not played.again.progressed

    def test_a_message_that_two_hold_at_once_is_held_once(self) -> None:
        readers = Readers()

        def beaten(effect: Any) -> Any:
            readers.attempted(scored(2))
            return readers.usual(effect)

        played = readers.attempted(scored(2), replies={SaveBatch: beaten})
        assert played.again.reason
        assert readers.delivered(scored(2)).failed == ()
        assert readers.waiting == ["s2"]

    def test_what_was_released_while_it_looked_is_looked_at_again(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))

        def beaten(effect: Any) -> Any:
            readers.attempted(scored(1))
            return readers.usual(effect)

        played = readers.attempted(scored(1), replies={LoadCompanions: beaten})
        assert played.requests == [LoadEntity, LoadCompanions]
        assert "older view" in played.again.reason
        assert readers.handled == ["s1", "s2"]

    def test_one_that_was_released_and_cleaned_up_since_is_no_damage(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        old = readers.usual(LoadEntity(BOARD))
        readers.delivered(scored(1))
        readers.usual(DeleteCompanions(BOARD, listed(readers)))
        played = readers.attempted(scored(2), replies={LoadEntity: old})
        assert played.requests == [LoadEntity, LoadCompanions, SaveEntity]
        assert played.again.reason
        assert readers.handled == ["s1", "s2"]

    def test_whether_one_is_gone_is_not_known_without_the_fences_answer(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        played = readers.attempted(scored(2), replies={LoadCompanions: FoundCompanions(()), SaveEntity: UNKNOWN})
        assert played.kinds[-1] is SaveEntity
        assert played.again.reason

    def test_a_held_message_that_is_gone_is_damage(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        with pytest.raises(
            DamagedDocument, match=r"board/b holds number 2 of channel froms.*Restore the document.*or rebuild"
        ):
            readers.attempted(scored(2), replies={LoadCompanions: FoundCompanions(())})

    def test_a_held_message_that_is_gone_is_reported_by_the_attempt_that_would_release_it(self) -> None:
        readers = Readers()
        readers.delivered(scored(2), scored(3))
        readers.usual(DeleteCompanions(BOARD, listed(readers)[:1]))
        readers.delivered(scored(9, "t"))
        with pytest.raises(
            DamagedDocument, match=r"board/b holds number 2 of channel froms, but the document .* is gone"
        ):
            readers.delivered(scored(1))


def test_a_ledger_that_was_removed_is_refused_behind_a_fence() -> None:
    readers = Readers()
    readers.delivered(scored(1))
    body = readers.body
    assert body is not None
    readers.put(Json.of(body))
    with pytest.raises(LedgerRemoved, match="board/b"):
        readers.attempted(scored(2))
    assert [type(effect) for effect in readers.asked] == [LoadEntity, HasCompanions, SaveEntity]


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN, True])
def test_nothing_is_adopted_while_companions_may_exist(reply: Any) -> None:
    readers = Readers(Json.of({"id": "b"}))
    played = readers.attempted(scored(1), replies={HasCompanions: reply, SaveEntity: Conflict("0:-1#3")})
    assert played.requests == (
        [LoadEntity, HasCompanions, SaveEntity] if reply is True else [LoadEntity, HasCompanions]
    )
    assert played.again.reason
