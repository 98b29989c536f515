"""What a read model sends, and what there is room for: in its document, in one batch, in one release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import Destination, Envelope, TryAgainLater
from exactlyonce.effects.attempt import Again, Before, Finished, Handle, Handled, Memory, Work
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.effects.library import KEPT, WriteOnce
from exactlyonce.errors import EntityTooLarge
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger, entity_document
from exactlyonce.records.outbox import Sequence, channel_id
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from tests.unit.boards import BOARD, BOARDS, RESEQUENCER, SCREENS, Readers, received, scored, size_of
from tests.unit.bookkeeping import tx
from tests.unit.script import AT, Played, numbers


def shown(readers: Readers) -> list[int]:
    """What was published, by the numbers of the messages that it answers."""
    return [output.envelope.value["data"]["number"] for output in readers.published]


def hold(readers: Readers, *numbers: int, source: str = "s", **data: Any) -> None:
    """Deliver what comes too early, as many at once as may be."""
    for begin in range(0, len(numbers), 49):
        group = (scored(number, source, **data) for number in numbers[begin : begin + 49])
        assert readers.delivered(*group).failed == ()


class TestWhatItSends:
    def test_it_is_owed_by_the_commit_and_published_after_it(self, readers: Readers) -> None:
        played = readers.attempted(scored(1, answers=2), scored(2), scored(3, answers=1))
        assert played.requests == [LoadEntity, SaveBatch, Publish]
        outputs = played.only(Publish).outputs
        one, other = readers.ledger.outbox
        assert (one.cause, one.tx, one.at) == (message_hash("s/m-1"), tx(1), AT)
        assert tuple(one.owed_outputs(BOARD, readers.ledger.to, readers.ledger.sequences)) == outputs[:2]
        assert (other.cause, other.tx) == (message_hash("s/m-3"), tx(3))
        assert tuple(other.owed_outputs(BOARD, readers.ledger.to, readers.ledger.sequences)) == outputs[2:]
        assert readers.book.open == {}

    @pytest.mark.parametrize("reply", [KEPT, UNKNOWN])
    def test_its_blobs_are_written_before_the_commit_that_refers_to_them(self, reply: Any, readers: Readers) -> None:

        def painting(before: Before, envelope: Envelope) -> Handled:
            return replace(readers.handle(before, envelope), blobs=(Blob(before.tx, b"text", "text/plain"),))

        work = readers.work(scored(1), handle=painting)
        played = readers.play(RESEQUENCER.attempt(work, Memory()), {WriteOnce: reply})
        commit = [SaveBatch] if reply is KEPT else []
        assert played.requests == [LoadEntity, WriteOnce, *commit]
        assert isinstance(played.result, Finished if reply is KEPT else Again)

    def test_more_than_one_document_holds_is_sent_in_several_commits(self, readers: Readers) -> None:
        for number in (2, 3, 4):
            hold(readers, number, answers=1, padding="xx", repeat=300_000)
        assert readers.delivered(scored(1)).stopped == ()
        assert shown(readers) == [2, 3, 4]
        assert readers.seen == ["1", "2", "3", "4"]

    def test_its_own_numbers_go_on(self) -> None:
        readers = Readers(
            routes=Routes.to(
                (Destination("screens", to="screen", entity_by=lambda _: "1", ordered=True),), SCREENS.limits
            )
        )
        readers.delivered(scored(1, answers=1), scored(2, answers=2))
        readers.delivered(scored(4, answers=1))
        readers.delivered(scored(3, answers=1, ends=True))
        assert list(dict.fromkeys(numbers(readers.published))) == [1, 2, 3, 4, 5]
        assert readers.ledger.sequences == (Sequence("screens", "screen/1", channel_id(AT, tx(1), 0), 5),)

    def test_while_that_may_not_have_arrived_nothing_else_is_done(self, readers: Readers) -> None:
        readers.attempted(scored(1, answers=1), replies={Publish: UNKNOWN})
        played = readers.attempted(scored(2), replies={Publish: UNKNOWN})
        assert played.requests == [LoadEntity, Publish]
        assert not readers.book.pays(tx(1))


def released(readers: Readers, *messages: Envelope) -> list[Played]:
    """The attempts that it takes."""
    played = [readers.attempted(*messages)]
    while isinstance(played[-1].result, Again):
        assert played[-1].again.progressed
        assert "more can be released" in played[-1].again.reason
        played.append(readers.attempted(*messages, memory=played[-1].again.memory))
    return played


class TestALongRelease:
    def test_it_goes_on_in_several_commits_and_is_acknowledged_after_the_last(self, readers: Readers) -> None:
        hold(readers, *range(2, 251))
        attempts = released(readers, scored(1))
        commits = [played.only(SaveBatch) for played in attempts]
        assert len(commits) == 3
        assert all(len(commit.create) + len(commit.replace) <= BATCH_DOCUMENTS for commit in commits)
        assert readers.seen == [str(number) for number in range(1, 251)]
        assert (readers.reception(), readers.waiting) == (received("s", 251), [])

    def test_more_arrivals_than_one_batch_has_room_for_are_released_in_several_commits(self, readers: Readers) -> None:
        attempts = released(readers, *(scored(number) for number in range(1, BATCH_DOCUMENTS + 6)))
        assert [len(played.only(SaveBatch).create) for played in attempts] == [BATCH_DOCUMENTS, 5]

    def test_many_sequences_that_are_stopped_do_not_take_the_room_of_another(self) -> None:
        readers = Readers()
        stopped = [f"s{number:03}" for number in range(BATCH_DOCUMENTS + 10)]
        readers.broken = {(source, 1) for source in stopped}
        for begin in range(0, len(stopped), 49):
            readers.delivered(*(scored(1, source) for source in stopped[begin : begin + 49]))
        hold(readers, 2, 3, source="t")
        readers.delivered(scored(1, "t"))
        assert readers.reception("t") == received("t", 4)
        readers.broken.clear()
        readers.delivered()
        readers.delivered()
        assert readers.waiting == []


class TestSizes:
    @pytest.mark.parametrize("padding", ["x", '"', "\\", "ü", "\u0001"])
    def test_no_batch_that_holds_is_larger_than_stated(self, padding: str, readers: Readers) -> None:
        group = [scored(number, padding=padding * 40_000) for number in range(2, 51)]
        played = readers.attempted(*group)
        assert size_of(played.only(SaveBatch)) <= BATCH_BYTES
        failed = played.finished.failed
        assert len(readers.waiting) + len(failed) == 49
        assert all(isinstance(error, TryAgainLater) and "no room" in str(error) for _, error in failed)

    def test_no_batch_that_releases_is_larger_than_stated(self) -> None:
        readers = Readers(Json.of({"id": "b", "seen": [], "kept": "x" * 1_300_000}))
        hold(readers, *range(2, 19))
        group = [scored(number, padding="x" * 40_000) for number in (1, *range(200, 220))]
        played = readers.attempted(*group)
        assert size_of(played.only(SaveBatch)) <= BATCH_BYTES
        assert played.finished.processed[-1] == "s/m-18"
        assert played.finished.failed

    def test_a_read_model_that_would_be_too_large_stops_its_sequence(self, readers: Readers) -> None:
        finished = readers.delivered(scored(1), scored(2, padding="x", keep=MAX_DOCUMENT_BYTES), scored(3))
        ((key, error),) = finished.stopped
        assert (key, type(error)) == ("s/m-2", EntityTooLarge)
        assert "Message s/m-2 for read model board/b" in str(error)
        assert readers.reception() == received("s", 2, ((2, 3),), failing="EntityTooLarge")
        assert readers.seen == ["1"]


def test_one_that_no_batch_holds_is_refused_until_its_turn_has_come(readers: Readers) -> None:
    large = scored(2, padding="x" * 1_900_000)
    ((_, error),) = readers.delivered(large).failed
    assert isinstance(error, EntityTooLarge)
    assert readers.delivered(scored(1), large).failed == ()
    assert readers.seen == ["1", "2"]


def test_a_long_release_writes_state_and_outputs_for_all_its_messages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = Readers()
    hold(readers, *range(2, 60), answers=1, padding="x", repeat=5_000, keep=100_000)
    written: list[int] = []

    def counted(body: Json, ledger: Ledger) -> Json:
        document = entity_document(body, ledger)
        written.append(document.size)
        return document

    monkeypatch.setattr(resequencing, "entity_document", counted)
    played = readers.attempted(scored(1))
    assert len(played.finished.processed) == 59
    *for_each, last = sorted(written)
    assert last == played.only(SaveBatch).document.size > 300_000
    assert sum(for_each) < last


LONG = BOARDS.ref("\N{GRINNING FACE}" * 250)


class ReadersOfALongName(Readers):
    """A read model whose key is long."""

    def __init__(self) -> None:
        super().__init__()
        self.entity = LONG
        self._runner = Runner(BOARDS, LONG, SCREENS)

    def work(self, *messages: Envelope, handle: Handle | None = None) -> Work:
        return Work(LONG, messages, handle or self.handle, self._runner.absent)


def test_what_does_not_fit_with_the_present_state_can_never_be_held(readers: Readers) -> None:
    readers.delivered(scored(1, padding="x", keep=1_300_000))
    ((_, error),) = readers.delivered(scored(3, padding="x" * 700_000)).failed
    assert isinstance(error, EntityTooLarge)


def test_the_ledger_takes_room_in_the_document() -> None:
    sequences = tuple(Sequence("screens", f"screen/{number}", "c" * 32, 1) for number in range(19_000))
    ledger = Ledger(1, type="board", protocol="resequencer", sequences=sequences, receptions=(received("s", 1),))
    readers = Readers(entity_document(Json('{"id":"b","seen":[],"kept":""}'), ledger))
    ((_, error),) = readers.delivered(scored(1, padding="x", keep=700_000)).stopped
    assert isinstance(error, EntityTooLarge)


def test_keys_of_messages_take_room_in_a_batch() -> None:
    longest = "%" * 1_000  # A key has three characters for each of these, and is written twice.
    for padding in range(26_000, 36_000, 500):
        readers = Readers()
        readers.delivered(*(scored(number, id=f"{number}-{longest}", padding="x" * padding) for number in range(2, 51)))
        readers.delivered(scored(1, id=f"1-{longest}"))
        assert readers.reception().next > 1


def test_the_key_of_the_read_model_takes_room_in_a_batch() -> None:
    for padding in range(35_000, 37_500, 100):
        readers = ReadersOfALongName()
        held = (scored(number, key=LONG.id, padding="x" * padding) for number in range(2, 51))
        finished = readers.delivered(*held)
        assert len(readers.waiting) + len(finished.failed) == 49
