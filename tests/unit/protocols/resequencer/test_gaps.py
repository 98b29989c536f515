"""What is done about messages that do not come: waiting, skipping, asking the source to send them again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, Outbox, VersionStream
from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import LoadCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.errors import InvalidMessage
from exactlyonce.protocols.resequencer.gaps import REPLAY, Rebuild, missing_before, read_request
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.protocols.stream.replay import Missing
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts
from tests.unit.boards import BOARD, Readers, channel_of, document_of, received, scored
from tests.unit.script import AT, Played

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

    def test_what_can_be_released_is_released(self, strategy: Resequencer) -> None:
        readers = Readers()
        readers.broken = {("s", 1)}
        readers.delivered(scored(1), scored(2))
        readers.broken.clear()
        assert tended(readers, strategy).finished.processed == ("s/m-1", "s/m-2")

    def test_a_read_model_without_gaps_is_left_alone(self, strategy: Resequencer) -> None:
        for readers in (Readers(), waiting(1)):
            writes = readers.writes
            assert tended(readers, strategy).finished.processed == ()
            assert (readers.writes, readers.published) == (writes, [])

    def test_it_takes_no_messages(self, strategy: Resequencer) -> None:
        readers = Readers()
        readers.play(strategy.tend(readers.work(scored(1)), Memory()))
        assert readers.writes == 0

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_nothing_is_done_in_an_unknown_view(self, strategy: Resequencer, reply: Any) -> None:
        played = tended(waiting(3), strategy, {LoadEntity: reply})
        assert played.requests == [LoadEntity]
        assert not played.again.progressed


def test_a_gap_that_is_waited_for_stays() -> None:
    readers = waiting(3)
    assert tended(readers, WAIT).finished.processed == ()
    assert readers.reception() == received("s", 1, ((3, 3),), gap_since=AT)
    assert readers.published == []


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

    def test_a_read_model_that_was_absent_stays_so(self) -> None:
        readers = waiting(3)
        tended(readers, SKIP)
        assert (readers.body, readers.ledger.deleted) == (None, True)

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

    def test_several_sources_share_the_room(self) -> None:
        readers = waiting(250)
        waiting(250, source="t", readers=readers)
        commit = tended(readers, SKIP).only(SaveBatch)
        assert len(commit.create) <= BATCH_DOCUMENTS
        assert (readers.reception("s").next, readers.reception("t").next) == (50, 50)
        tended_to_the_end(readers, SKIP)
        assert readers.seen == ["250", "250"]

    def test_more_sources_than_a_batch_has_room_for_take_turns(self) -> None:
        readers = Readers()
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

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9")])
    def test_what_may_not_be_skipped_is_looked_at_again(self, reply: Any) -> None:
        played = tended(waiting(3), SKIP, {SaveBatch: reply})
        assert not played.again.progressed

    def test_a_message_that_comes_meanwhile_is_not_skipped(self) -> None:
        readers = waiting(2)

        def beaten(effect: Any) -> Any:
            readers.attempted(scored(1))
            return readers.usual(effect)

        assert not tended(readers, SKIP, {SaveBatch: beaten}).again.progressed
        tended_to_the_end(readers, SKIP)
        assert (readers.seen, skipped(readers)) == (["1", "2"], [])


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

    def test_nothing_changes_until_they_come(self) -> None:
        readers = waiting(3)
        tended(readers, REBUILD)
        assert readers.reception() == received("s", 1, ((3, 3),), gap_since=AT)
        readers.delivered(scored(1), scored(2))
        assert readers.seen == ["1", "2", "3"]

    def test_to_ask_twice_is_to_ask_for_the_same(self) -> None:
        readers = waiting(3)
        assert tended(readers, REBUILD).only(Publish) == tended(readers, REBUILD).only(Publish)

    def test_each_source_is_asked_for_its_own(self) -> None:
        readers = waiting(3)
        waiting(2, source="t", readers=readers)
        requests = tended(readers, REBUILD).only(Publish).outputs
        asked = [read_request(Envelope.read(request.envelope.text)) for request in requests]
        assert asked == [("s", Missing(channel_of("s"), 1, 2)), ("t", Missing(channel_of("t"), 1, 1))]

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
    def test_what_is_no_request_is_refused(self, data: Any) -> None:
        with pytest.raises(InvalidMessage, match="board/m-1 is no request"):
            read_request(Envelope("board", "m-1", REPLAY, Json.of(data)))


def test_what_is_missing_lies_before_the_first_that_is_held() -> None:
    assert missing_before(received("s", 3, ((7, 9), (12, 12)))) == (3, 6)


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
    def test_what_was_published_is_dropped(self) -> None:
        readers = Readers()
        readers.attempted(scored(1, answers=1))
        played = readers.play(WAIT.sweep(readers.work(), Memory()))
        assert played.kinds[-1] is SaveEntity
        assert readers.ledger.outbox == ()
        assert played.finished.memory == Memory()

    def test_where_nothing_is_owed_nothing_is_written(self) -> None:
        readers = Readers()
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

    def test_a_sweep_that_has_to_start_over_drops_nothing(self) -> None:
        readers = Readers()
        readers.at = AT
        readers.delivered(scored(2, "t"))
        readers.attempted(scored(1, "s", answers=1))
        readers.at = AT + HOUR
        assert readers.play(SKIP.sweep(readers.work(), Memory())).again.progressed
        played = readers.play(SKIP.sweep(readers.work(), Memory()), {SaveBatch: UNKNOWN})
        assert played.requests[-1] is SaveBatch
        assert played.again.reason

    @pytest.mark.parametrize("kind", [LoadEntity, Publish, SaveEntity])
    def test_without_an_answer_it_is_tried_again(self, kind: Any) -> None:
        readers = Readers()
        readers.attempted(scored(1, answers=1), replies={Publish: UNKNOWN})
        played = readers.play(WAIT.sweep(readers.work(), Memory()), {kind: UNKNOWN})
        assert played.kinds[-1] is kind
        assert played.again.reason

    @pytest.mark.parametrize("kind", [LoadEntity, LoadCompanions])
    def test_a_clean_up_without_an_answer_is_tried_again(self, kind: Any) -> None:
        readers = Readers()
        readers.attempted(scored(1))
        candidates = (("any", '"1"'),)
        played = readers.play(WAIT.clean(BOARD, candidates, Memory()), {kind: UNKNOWN})
        assert played.kinds[-1] is kind
        assert played.again.reason
