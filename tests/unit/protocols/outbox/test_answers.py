"""Answers to requests, and digests of messages: part of the commit, and found again wherever the commit is known by then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import FindProcessed, Found, FoundRecords, LoadProcessed, WriteRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.answers import LARGE, Answer
from exactlyonce.records.library import ProcessedRecord
from exactlyonce.records.places import Place
from tests.answering import added_queue, counters, request
from tests.unit.script import Played, Replies, Script
from tests.unit.script import attempt as attempt_on_sample

COUNTERS = counters()
ENTITY = COUNTERS.ref("c")
HANDLE = Runner(COUNTERS, ENTITY, Routes.to((added_queue,), {"added": 1024 * 1024}))
LOCATION = (("Location", "/counters/c"),)


def attempt(
    script: Script, *messages: Envelope, window: int = 16, replies: Replies | None = None, memory: Memory | None = None
) -> Played:
    step = attempt_on_sample(Outbox(window=window), *messages, handle=HANDLE, memory=memory, entity=ENTITY)
    return script.play(step, replies)


def answer(total: int, asked: str = "f", status: int = 200) -> Answer:
    return Answer(status, LOCATION, f'{{"total":{total}}}', asked)


@pytest.fixture
def script() -> Script:
    return Script(entity=ENTITY)


def test_the_answer_of_a_request_is_part_of_the_commit(script: Script) -> None:
    played = attempt(script, request("k-1", amount=3, status=201))
    assert played.finished.answers == (("http/k-1", answer(3, status=201)),)
    assert [entry.answer for entry in script.entries] == [answer(3, status=201)]


def test_a_request_whose_handler_does_not_reply_is_answered_without_content(script: Script) -> None:
    played = attempt(script, request("k-1", silent=True))
    assert played.finished.answers == (("http/k-1", Answer(204, asked="f")),)


def test_a_reply_to_a_message_from_a_queue_is_not_kept(script: Script) -> None:
    played = attempt(script, replace(request("k-1"), asked=None))
    assert played.finished.answers == ()
    assert [entry.answer for entry in script.entries] == [None]


def test_a_retry_gets_the_committed_answer_not_one_for_the_present_state(script: Script) -> None:
    attempt(script, request("k-1"))
    attempt(script, request("k-2"))
    played = attempt(script, request("k-1"))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert not played.all(SaveEntity)


def test_a_retry_is_answered_after_what_its_entry_owes_was_published(script: Script) -> None:
    refused = attempt(script, request("k-1"), replies={Publish: UNKNOWN})
    assert refused.again.reason == "the outputs could not be published"
    still = attempt(script, request("k-1"), replies={Publish: UNKNOWN})
    assert still.again.reason == "owed outputs could not be published"
    played = attempt(script, request("k-1"))
    assert len(played.only(Publish).outputs) == 1
    assert played.finished.answers == (("http/k-1", answer(1)),)


@pytest.mark.parametrize("reply", [UNKNOWN, Conflict(None)])
def test_what_an_attempt_computed_is_no_answer_unless_its_commit_is_acknowledged(script: Script, reply: object) -> None:
    assert isinstance(attempt(script, request("k-1"), replies={SaveEntity: reply}).result, Again)


def test_the_winner_of_a_race_answers_for_both(script: Script) -> None:
    before = script.play(iter(LoadEntity(ENTITY))).result
    attempt(script, request("k-0", amount=10))
    attempt(script, request("k-1"))
    lost = attempt(script, request("k-1"), replies={LoadEntity: before})
    assert len(lost.all(SaveEntity)) == 1
    assert isinstance(lost.result, Again)
    assert attempt(script, request("k-1")).finished.answers == (("http/k-1", answer(11)),)


def test_the_answer_goes_with_the_entry_into_the_record_and_is_found_there(script: Script) -> None:
    attempt(script, request("k-1"), window=1)
    moved = attempt(script, request("k-2"), window=1)
    records = [one for one in moved.only(WriteRecords).records if isinstance(one, ProcessedRecord)]
    assert [one.answer for one in records] == [answer(1)]
    played = attempt(script, request("k-1"), window=1)
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert played.only(LoadProcessed).messages == ("http/k-1",)


ROOM = LARGE - answer(1).size - len("X-Padding")
"""Of padding, in an answer that is not large."""


def test_a_large_answer_is_written_in_its_record_before_the_next_commit_and_not_again(script: Script) -> None:
    first = attempt(script, request("k-1", padding=ROOM + 1)).finished.answers
    moved = attempt(script, request("k-2"))
    assert [one.message for one in moved.only(WriteRecords).records if isinstance(one, ProcessedRecord)] == ["http/k-1"]
    assert [entry.message for entry in script.entries] == ["http/k-2"]
    assert not attempt(script, request("k-3")).all(WriteRecords)
    assert attempt(script, request("k-1")).finished.answers == first


def test_an_answer_that_is_not_large_stays_in_the_window(script: Script) -> None:
    attempt(script, request("k-1", padding=ROOM))
    assert not attempt(script, request("k-2")).all(WriteRecords)
    assert len(script.entries) == 2


def test_a_large_answer_is_the_same_when_the_commit_after_it_is_lost(script: Script) -> None:
    first = attempt(script, request("k-1", padding=ROOM + 1)).finished.answers
    lost = attempt(script, request("k-2"), replies={SaveEntity: UNKNOWN})
    assert len(lost.all(WriteRecords)) == 1
    assert attempt(script, request("k-1")).finished.answers == first


def test_a_large_answer_leaves_after_what_its_entry_owes_was_published(script: Script) -> None:
    attempt(script, request("k-1", padding=ROOM + 1), replies={Publish: UNKNOWN})
    played = attempt(script, request("k-2"))
    kinds = [kind for kind in played.kinds if kind in (Publish, WriteRecords)]
    assert kinds == [Publish, WriteRecords, Publish]


def test_where_nothing_leaves_a_large_answer_stays(script: Script) -> None:
    for key in ("k-1", "k-2"):
        step = attempt_on_sample(Outbox.embedded(), request(key, padding=ROOM + 1), handle=HANDLE, entity=ENTITY)
        script.play(step)
    assert len(script.entries) == 2


def test_only_requests_without_an_entry_cost_a_look_at_their_records(script: Script) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, request(key), window=1)
    queued = replace(request("k-1"), asked=None)
    assert not attempt(script, queued, window=1).all(LoadProcessed)
    both = frozenset({"http/k-1", "http/k-2"})  # A crash after the records were written leaves one beside the entry.
    found: Replies = {FindProcessed: Found(both, "0:-1#9")}
    assert not attempt(script, request("k-2"), window=1, replies=found).all(LoadProcessed)


def test_a_record_is_read_in_a_view_that_has_it(script: Script) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, request(key), window=1)
    found: Replies = {FindProcessed: Found(frozenset({"http/k-1"}), "0:-1#99")}
    played = attempt(script, request("k-1"), window=1, replies={**found, LoadProcessed: UNKNOWN})
    assert played.only(LoadProcessed).token == "0:-1#99"


@pytest.mark.parametrize("reply", [UNKNOWN, BEHIND, FoundRecords(())])
def test_a_request_is_not_answered_while_its_record_cannot_be_read(script: Script, reply: object) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, request(key), window=1)
    played = attempt(script, request("k-1"), window=1, replies={LoadProcessed: reply})
    assert played.again.reason == "the answer to a request could not be read"


def test_no_channel_is_looked_for_once_an_answer_cannot_be_read(script: Script) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, request(key), window=1)
    loaded, ledger = script.play(iter(LoadEntity(ENTITY))).result, script.ledger
    document = with_ledger(loaded.document, replace(ledger, apart=replace(ledger.apart, channels=True)))
    replies: Replies = {LoadEntity: replace(loaded, document=document), LoadProcessed: UNKNOWN}
    assert attempt(script, request("k-1"), window=1, replies=replies).again.reason.startswith("the answer")


def test_one_attempt_answers_from_record_entry_and_commit(script: Script) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, request(key), window=1)
    played = attempt(script, request("k-1"), request("k-2"), request("k-3"), window=1)
    assert dict(played.finished.answers) == {"http/k-1": answer(1), "http/k-2": answer(2), "http/k-3": answer(3)}
    assert played.finished.processed == ("http/k-3",)


def test_requests_that_have_room_in_a_commit_are_answered_before_the_others(script: Script) -> None:
    played = attempt(script, request("k-1"), request("k-2"), window=1)
    assert played.again.answers == (("http/k-1", answer(1)),)


def test_a_failing_request_leaves_the_answers_of_the_others(script: Script) -> None:
    attempt(script, request("k-1"))
    played = attempt(script, request("k-1"), request("k-2", failing=True))
    assert [key for key, _ in played.finished.failed] == ["http/k-2"]
    assert played.finished.answers == (("http/k-1", answer(1)),)


def test_two_bodies_under_one_key_in_one_commit_have_one_answer(script: Script) -> None:
    played = attempt(script, request("k-1", "f", amount=1), request("k-1", "g", amount=2))
    ((key, committed),) = played.finished.answers
    assert key == "http/k-1"
    assert committed in (answer(1, "f"), answer(2, "g"))
    assert script.body == {"id": "c", "total": 1 if committed.asked == "f" else 2}
    assert len(script.published) == 1


QUEUED, COPY = (replace(request("m-1", amount=amount), asked=None) for amount in (1, 2))


@pytest.mark.parametrize(
    "others", [(), (request("k-1"),), (request("k-1", failing=True),)], ids=["", "more", "failure"]
)
def test_a_copy_with_another_content_is_told_from_its_message(script: Script, others: tuple[Envelope, ...]) -> None:
    attempt(script, QUEUED)
    finished = attempt(script, COPY, *others).finished
    assert finished.contents == (("http/m-1", QUEUED.content),)
    assert finished.differing((COPY, *others)) == (COPY,)


def test_a_request_and_a_message_from_this_application_have_no_digest_of_their_content(script: Script) -> None:
    attempt(script, request("k-1"))
    attempt(script, replace(QUEUED, extensions=Place("c1", ENTITY.source, 1).extensions))
    assert [(entry.message, entry.content) for entry in script.entries] == [("http/k-1", None), ("http/m-1", None)]
    assert attempt(script, request("k-1")).finished.contents == ()
