"""The resequencer, seen from outside: messages come as they like and are handled in the order in which they were sent, whatever
handlers raise and senders mistake; and what is done about messages that do not come."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError, Envelope, Outbox, TryAgainLater, VersionStream
from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory
from exactlyonce.effects.companions import DeleteCompanions, FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish, SaveEntity
from exactlyonce.errors import DamagedDocument, HandlerFailed, InvalidMessage
from exactlyonce.protocols.resequencer.gaps import REPLAY, Rebuild, read_request
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS, FARTHEST_AHEAD
from exactlyonce.protocols.stream.replay import Missing
from exactlyonce.records.companions import NumberedMessage, id_of
from exactlyonce.records.ledger import entity_document
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts
from tests.unit.boards import BOARD, RESEQUENCER, Readers, channel_of, document_of, received, scored
from tests.unit.protocols.cleaning import listed
from tests.unit.script import AT, Played

ARRIVALS = st.lists(st.tuples(st.sampled_from("st"), st.integers(1, 6)), max_size=20)


class TestInOrder:
    def test_a_message_in_its_turn_is_handled_at_once(self, readers: Readers) -> None:
        played = readers.attempted(scored(1))
        assert played.requests == [LoadEntity, SaveBatch]
        assert played.finished.processed == ("s/m-1",)
        assert readers.seen == ["1"]
        assert readers.ledger.receptions == (received("s", next=2),)
        assert (readers.ledger.version, readers.ledger.protocol) == (1, "resequencer")

    def test_a_copy_of_what_was_handled_is_dropped(self, readers: Readers) -> None:
        readers.delivered(scored(1))
        played = readers.attempted(scored(1), scored(1))
        assert played.requests == [LoadEntity, LoadCompanions]
        assert played.result == Finished(Memory(entity_token="0:-1#2"))
        assert readers.seen == ["1"]


class TestOutOfOrder:
    def test_messages_that_follow_without_a_gap_are_released_with_the_missing_message(self, readers: Readers) -> None:
        for number in (2, 3, 5):
            readers.delivered(scored(number))
        played = readers.attempted(scored(1))
        assert played.requests == [LoadEntity, LoadCompanions, SaveBatch]
        assert played.finished.processed == ("s/m-1", "s/m-2", "s/m-3")
        assert readers.seen == ["1", "2", "3"]
        assert (readers.held, readers.waiting) == ({"s": ((5, 5),)}, ["s5"])


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


class TestGaps:
    def test_a_gap_is_dated_when_it_appears_and_keeps_its_date(self, readers: Readers) -> None:
        readers.delivered(scored(3))
        readers.at += timedelta(hours=1)
        readers.delivered(scored(4))
        readers.delivered(scored(4))
        assert readers.reception() == received("s", 1, ((3, 4),), gap_since=AT)

    def test_a_gap_that_becomes_smaller_begins_anew(self, readers: Readers) -> None:
        readers.delivered(scored(3))
        readers.at += timedelta(hours=1)
        readers.delivered(scored(1))
        assert readers.reception() == received("s", 2, ((3, 3),), gap_since=readers.at)


class TestTheReadModel:
    def test_it_may_be_deleted_and_come_back_within_its_sequence(self, readers: Readers) -> None:
        readers.delivered(scored(1), scored(2, ends=True))
        assert (readers.body, readers.ledger.deleted) == (None, True)
        readers.delivered(scored(4))
        assert (readers.body, readers.ledger.deleted) == (None, True)
        readers.delivered(scored(3))
        assert (readers.seen, readers.reception().next) == (["3", "4"], 5)

    def test_a_group_is_at_most_half_a_batch(self) -> None:
        assert RESEQUENCER.group_limit == 49
        assert not RESEQUENCER.forgets(scored(1))


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

    def test_every_arrival_tries_again_and_goes_on_once_the_handler_is_fixed(self) -> None:
        readers = stopped_at_one()
        finished = readers.delivered(scored(3))
        assert [key for key, _ in finished.stopped] == ["s/m-1"]
        assert readers.reception() == received("s", 1, ((1, 3),), failing="HandlerFailed")
        readers.broken.clear()
        assert readers.delivered(scored(4)).processed == ("s/m-1", "s/m-2", "s/m-3", "s/m-4")
        assert readers.reception() == received("s", 5)
        assert readers.waiting == []

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

    def test_one_that_asks_to_try_again_later_does_not_keep_others_waiting(self, readers: Readers) -> None:
        """The error of the library's own says something else where a handler raises it."""

        def impatient(before: Before, envelope: Envelope) -> Handled:
            if envelope.source == "s":
                raise TryAgainLater("not yet")
            return readers.handle(before, envelope)

        played = readers.play(RESEQUENCER.attempt(readers.work(scored(1), scored(1, "t"), handle=impatient), Memory()))
        assert played.finished.processed == ("t/m-1",)
        assert readers.reception() == received("s", 1, ((1, 1),), failing="TryAgainLater")


class TestMistakesOfSenders:
    def refused(self, readers: Readers, *messages: Envelope) -> tuple[str, str]:
        finished = readers.delivered(*messages)
        ((key, error),) = finished.failed
        assert isinstance(error, InvalidMessage)
        assert f"Message {key} for read model board/b" in str(error)
        return key, str(error)

    @pytest.mark.parametrize(
        ("before", "group", "key", "words", "handled"),
        [
            (
                (),
                (replace(scored(2), extensions=()), scored(1)),
                "s/m-2",
                "no channel and no partitionkey and no sequence",
                ["s1"],
            ),
            ((), (scored(1, key="c"), scored(1, "t")), "s/m-1", "numbered for 'board/c'.*entity_by=", ["t1"]),
            (
                (scored(1),),
                (replace(scored(2), source="t"), scored(2)),
                "t/m-2",
                f"channel {channel_of('s')}, which belongs to s",
                ["s1", "s2"],
            ),
            (
                (),
                (scored(1, id="x"), scored(1, id="y"), scored(2)),
                "s/y",
                "number 1 in channel froms of s, and so has message s/x",
                ["s1", "s2"],
            ),
            (
                (scored(1, id="x"),),
                (scored(1, id="y"), scored(2)),
                "s/y",
                "and so has message s/x.*gives out numbers a second time",
                ["s1", "s2"],
            ),
        ],
        ids=["no number", "for another", "another's channel", "a number twice", "a number of one that was handled"],
    )
    def test_a_message_that_is_numbered_wrongly_fails_alone(
        self, before: tuple[Envelope, ...], group: tuple[Envelope, ...], key: str, words: str, handled: list[str]
    ) -> None:
        readers = Readers()
        readers.delivered(*before)
        refused, text = self.refused(readers, *group)
        assert refused == key
        assert re.search(words, text)
        assert readers.handled == handled

    def test_a_number_far_ahead_is_not_held(self, readers: Readers) -> None:
        readers.delivered(scored(1))
        key, text = self.refused(readers, scored(2 + FARTHEST_AHEAD))
        assert key == f"s/m-{2 + FARTHEST_AHEAD}"
        assert f"2 is next: more than {FARTHEST_AHEAD} ahead" in text
        readers.delivered(scored(1 + FARTHEST_AHEAD))
        assert readers.held == {"s": ((1 + FARTHEST_AHEAD, 1 + FARTHEST_AHEAD),)}


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


class TestNoAnswers:
    def test_one_that_was_released_and_cleaned_up_since_is_no_damage(self, readers: Readers) -> None:
        readers.delivered(scored(2))
        old = readers.usual(LoadEntity(BOARD))
        readers.delivered(scored(1))
        readers.usual(DeleteCompanions(BOARD, listed(readers)))
        played = readers.attempted(scored(2), replies={LoadEntity: old})
        assert played.requests == [LoadEntity, LoadCompanions, SaveEntity]
        assert played.again.reason
        assert readers.handled == ["s1", "s2"]

    def test_a_held_message_that_is_gone_is_damage(self, readers: Readers) -> None:
        readers.delivered(scored(2))
        with pytest.raises(
            DamagedDocument, match=r"board/b holds number 2 of channel froms.*Restore the document.*or rebuild"
        ):
            readers.attempted(scored(2), replies={LoadCompanions: FoundCompanions(())})


HOUR = timedelta(hours=1)
WAIT = Resequencer(gap_timeout=HOUR)
SKIP = Resequencer(gap_timeout=HOUR, on_gap="skip")
REBUILD = Resequencer(gap_timeout=HOUR, on_gap=Rebuild(accounts(VersionStream()), through="accounts"))


def waiting(*numbers: int, source: str = "s", readers: Readers | None = None) -> Readers:
    """A read model that has held these for an hour."""
    readers = readers or Readers()
    readers.at = AT
    readers.delivered(*(scored(number, source) for number in numbers))
    readers.at = AT + HOUR
    return readers


def tended(readers: Readers, strategy: Resequencer, replies: dict[Any, Any] | None = None) -> Played:
    return readers.play(strategy.tend(readers.work(), Memory()), replies)


def tended_to_the_end(readers: Readers, strategy: Resequencer) -> list[Played]:
    played = [tended(readers, strategy)]
    while isinstance(played[-1].result, Again):
        assert played[-1].again.progressed
        played.append(tended(readers, strategy))
    return played


def skipped(readers: Readers) -> list[tuple[str, int]]:
    numbered = (companion for companion in readers.companions if isinstance(companion, NumberedMessage))
    return [(item.source, item.number) for item in numbered if item.message is None]


@pytest.mark.parametrize("strategy", [WAIT, SKIP, REBUILD])
class TestWhateverIsDone:
    def test_a_gap_is_left_alone_until_its_time_has_come(self, strategy: Resequencer) -> None:
        readers = waiting(3)
        readers.at -= timedelta(seconds=1)
        played = tended(readers, strategy)
        assert played.requests == [LoadEntity, LoadEntity]
        assert played.result == Finished(Memory(entity_token="0:-1#2"))
        assert readers.reception() == received("s", 1, ((3, 3),), gap_since=AT)

    def test_it_takes_no_messages(self, strategy: Resequencer, readers: Readers) -> None:
        readers.play(strategy.tend(readers.work(scored(1)), Memory()))
        assert readers.writes == 0


class TestSkipping:
    def test_every_number_leaves_a_record_and_what_follows_is_released(self) -> None:
        readers = waiting(3, 5)
        first = tended(readers, SKIP)
        assert first.requests == [LoadEntity, SaveBatch]
        assert first.again.progressed
        gone = [document_of(number, None, readers.at) for number in (1, 2)]
        assert first.only(SaveBatch).create == tuple(gone)
        assert readers.reception() == received("s", 3, ((3, 3), (5, 5)))
        assert tended(readers, SKIP).finished.processed == ("s/m-3",)
        assert readers.seen == ["3"]
        assert readers.reception() == received("s", 4, ((5, 5),), gap_since=readers.at)

    def test_a_message_that_comes_after_all_is_dropped(self) -> None:
        readers = waiting(2)
        tended_to_the_end(readers, SKIP)
        finished = readers.delivered(scored(1))
        assert (finished.processed, finished.failed) == ((), ())
        assert readers.seen == ["2"]
        assert skipped(readers) == []  # The document says now which message it was.

    def test_a_large_gap_is_skipped_in_several_commits(self) -> None:
        readers = waiting(250)
        played = tended_to_the_end(readers, SKIP)
        commits = [item.only(SaveBatch) for item in played]
        assert [len(commit.create) for commit in commits[:-1]] == [BATCH_DOCUMENTS, BATCH_DOCUMENTS, 51]
        assert readers.seen == ["250"]
        assert len(skipped(readers)) == 249

    def test_in_between_the_gap_keeps_its_date(self) -> None:
        for number in (250, 101):
            readers = waiting(number)
            played = tended(readers, SKIP)
            assert readers.reception() == received("s", 100, ((number, number),), gap_since=AT)
            assert played.again.memory.entity_token == "0:-1#102"

    def test_more_sources_than_a_batch_has_room_for_take_turns(self, readers: Readers) -> None:
        sources = [f"s{number:03}" for number in range(BATCH_DOCUMENTS + 5)]
        for source in sources:
            waiting(3, source=source, readers=readers)
        tended_to_the_end(readers, SKIP)
        assert [readers.reception(source).next for source in sources] == [4] * len(sources)

    def test_the_gap_of_another_source_may_be_younger(self) -> None:
        readers = waiting(2)
        readers.delivered(scored(2, "t"))
        tended_to_the_end(readers, SKIP)
        assert (readers.reception("s").next, readers.reception("t").next) == (3, 1)


class TestAskingForThem:
    def test_the_source_is_asked_for_what_is_missing(self) -> None:
        readers = waiting(3, 4, 9)
        played = tended(readers, REBUILD)
        assert played.requests == [LoadEntity, Publish, LoadEntity]
        (request,) = played.only(Publish).outputs
        assert request.destination == "accounts"
        envelope = Envelope.read(request.envelope.text)
        assert (envelope.source, envelope.type) == ("board/b", REPLAY)
        assert read_request(envelope) == ("s", Missing(channel_of("s"), 1, 2))
        assert request.id == envelope.id
        assert dict(envelope.extensions) == {
            "partitionkey": "s"
        }  # The session of the source, which its queue may ask for.

    def test_to_ask_twice_is_to_ask_for_the_same(self) -> None:
        readers = waiting(3)
        assert tended(readers, REBUILD).only(Publish) == tended(readers, REBUILD).only(Publish)

    def test_a_request_that_may_not_have_arrived_is_made_again(self) -> None:
        played = tended(waiting(3), REBUILD, {Publish: UNKNOWN})
        assert played.requests == [LoadEntity, Publish]
        assert "could not be asked" in played.again.reason

    def test_only_a_stream_can_be_asked(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'account' keeps no version stream.*VersionStream\(\)"):
            Rebuild(accounts(Outbox()), through="accounts")

    @pytest.mark.parametrize(
        "data",
        [
            None,
            {},
            [],
            {"source": "s", "channel": "c", "first": 1},
            {"source": "s", "channel": "c", "first": "1", "last": 2},
            {"source": "s", "channel": "c", "first": 1, "last": 2, "news": 3},
        ],
    )
    def test_a_malformed_request_is_refused(self, data: Any) -> None:
        with pytest.raises(InvalidMessage, match="board/m-1 is no request"):
            read_request(Envelope("board", "m-1", REPLAY, Json.of(data)))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"on_gap": "rebuild"}, "on_gap"),
        ({"order": "times"}, "order"),
        ({"gap_timeout": timedelta(seconds=-1)}, "gap_timeout"),
        ({"max_wait": timedelta(seconds=-1)}, "max_wait"),
    ],
)
def test_settings_that_would_quietly_mean_something_else_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Resequencer(**settings)


class TestSweeping:
    def test_a_published_output_is_dropped(self, readers: Readers) -> None:
        readers.attempted(scored(1, answers=1))
        played = readers.play(WAIT.sweep(readers.work(), Memory()))
        assert played.kinds[-1] is SaveEntity
        assert readers.ledger.outbox == ()
        assert played.finished.memory == Memory()

    def test_where_nothing_is_owed_nothing_is_written(self, readers: Readers) -> None:
        readers.attempted(scored(1))
        played = readers.play(WAIT.sweep(readers.work(), Memory()))
        assert SaveEntity not in played.kinds
        assert played.finished.memory == Memory()

    def test_a_handler_that_still_raises_is_reported(self) -> None:
        readers = Readers()
        readers.at, readers.broken = AT, {("t", 2)}
        readers.delivered(scored(2, "s", answers=1), scored(2, "t"))
        readers.at = AT + HOUR
        assert readers.play(SKIP.sweep(readers.work(), Memory())).again.progressed
        played = readers.play(SKIP.sweep(readers.work(), Memory()))
        assert played.kinds[-1] is SaveEntity
        assert [key for key, _ in played.finished.stopped] == ["t/m-2"]

    @pytest.mark.parametrize("kind", [LoadEntity, Publish, SaveEntity])
    def test_without_an_answer_it_is_tried_again(self, kind: Any, readers: Readers) -> None:
        readers.attempted(scored(1, answers=1), replies={Publish: UNKNOWN})
        played = readers.play(WAIT.sweep(readers.work(), Memory()), {kind: UNKNOWN})
        assert played.kinds[-1] is kind
        assert played.again.reason
