"""Answers to requests, and digests of messages: part of the commit, and found again wherever the commit is known by then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import FindPages, FoundPages, WritePage
from exactlyonce.errors import TooOldToJudge
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox import judge
from exactlyonce.protocols.outbox.draft import MOST_ANSWERED
from exactlyonce.protocols.outbox.judge import known_in
from exactlyonce.protocols.steps.load import View, with_ledger
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.lifetimes import RETENTION
from tests.answering import added_queue, counters, request
from tests.unit.script import Played, Replies, Script
from tests.unit.script import attempt as attempt_on_sample

COUNTERS = counters()
ENTITY = COUNTERS.ref("c")
HANDLE = Runner(COUNTERS, ENTITY, Routes.to((added_queue,), {"added": 1024 * 1024}))
LOCATION = (("Location", "/counters/c"),)


def attempt(
    script: Script, *messages: Envelope, replies: Replies | None = None, memory: Memory | None = None
) -> Played:
    return script.play(attempt_on_sample(Outbox(), *messages, handle=HANDLE, memory=memory, entity=ENTITY), replies)


def answer(total: int, asked: str = "f", status: int = 200) -> Answer:
    return Answer(status, LOCATION, f'{{"total":{total}}}', asked)


@pytest.fixture
def script() -> Script:
    return Script(entity=ENTITY)


def test_the_answer_of_a_request_is_part_of_the_commit(script: Script) -> None:
    played = attempt(script, request("k-1", amount=3, status=201))
    assert played.finished.answers == (("http/k-1", answer(3, status=201)),)
    assert [item.answer for item in script.ledger.answers] == [answer(3, status=201)]


def test_a_request_whose_handler_does_not_reply_is_answered_without_content(script: Script) -> None:
    played = attempt(script, request("k-1", silent=True))
    assert played.finished.answers == (("http/k-1", Answer(204, asked="f")),)


def test_a_reply_to_a_message_from_a_queue_is_not_kept(script: Script) -> None:
    played = attempt(script, replace(request("k-1"), asked=None))
    assert played.finished.answers == ()
    assert script.ledger.answers == ()


def test_a_retry_gets_the_committed_answer_not_one_for_the_present_state(script: Script) -> None:
    attempt(script, request("k-1"))
    attempt(script, request("k-2"))
    played = attempt(script, request("k-1"))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert not played.all(SaveEntity)


def test_a_retry_is_answered_after_what_it_owes_was_published(script: Script) -> None:
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


ROOM = MOST_ANSWERED - answer(1).size - len("X-Padding")
"""Of padding, in an answer beside which no other one stays."""


def test_a_large_answer_is_written_in_a_page_before_the_next_commit_and_not_again(script: Script) -> None:
    first = attempt(script, request("k-1", padding=ROOM + 1)).finished.answers
    page = attempt(script, request("k-2")).only(WritePage).page
    assert [item.cause for item in page.answers] == [message_hash("http/k-1")] == [*page.hashes]
    assert [item.cause for item in script.ledger.answers] == [message_hash("http/k-2")]
    assert len(script.marks) == 2, "its mark stays"
    assert not attempt(script, request("k-3")).all(WritePage)
    assert attempt(script, request("k-1")).finished.answers == first


def test_answers_that_are_not_large_stay_in_the_ledger(script: Script) -> None:
    attempt(script, request("k-1", padding=ROOM))
    assert not attempt(script, request("k-2")).all(WritePage)
    assert len(script.ledger.answers) == 2


def test_a_large_answer_is_the_same_when_the_commit_after_it_is_lost(script: Script) -> None:
    first = attempt(script, request("k-1", padding=ROOM + 1)).finished.answers
    lost = attempt(script, request("k-2"), replies={SaveEntity: UNKNOWN})
    assert len(lost.all(WritePage)) == 1
    assert attempt(script, request("k-1")).finished.answers == first


def left(script: Script) -> None:
    """Let the answer to k-1 leave the ledger."""
    attempt(script, request("k-1", padding=ROOM + 1))
    attempt(script, request("k-2"))


def test_only_requests_whose_answer_has_left_cost_a_look(script: Script) -> None:
    left(script)
    assert attempt(script, request("k-1")).only(FindPages).hashes == (message_hash("http/k-1"),)
    assert not attempt(script, replace(request("k-1"), asked=None)).all(FindPages)
    assert not attempt(script, request("k-2")).all(FindPages)


@pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
def test_a_request_is_not_answered_while_pages_cannot_be_read(script: Script, reply: object) -> None:
    left(script)
    assert attempt(script, request("k-1"), replies={FindPages: reply}).again.reason


def test_one_attempt_answers_from_page_ledger_and_commit(script: Script) -> None:
    left(script)
    answers = dict(attempt(script, request("k-1"), request("k-2"), request("k-3")).finished.answers)
    assert [item.body for item in answers.values()] == [answer(total).body for total in (1, 2, 3)]
    assert [*answers] == ["http/k-1", "http/k-2", "http/k-3"]


def owing(script: Script) -> None:
    """Let the mark of k-1 expire while it owes."""
    assert attempt(script, request("k-1"), replies={Publish: UNKNOWN}).again.reason
    script.at += RETENTION + timedelta(seconds=1)
    attempt(script, request("k-2"))
    assert [mark.hash for mark in script.marks] == [message_hash("http/k-2")]


def test_a_request_is_answered_as_long_as_it_owes_though_its_mark_went_with_age(script: Script) -> None:
    owing(script)
    played = attempt(script, request("k-1"))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert len(played.only(Publish).outputs) == 1
    assert script.body == {"id": "c", "total": 2}


def test_its_answer_goes_with_the_entry_once_that_is_paid(script: Script) -> None:
    owing(script)
    attempt(script, request("k-1"))
    attempt(script, request("k-3"))
    assert [item.cause for item in script.ledger.answers] == [message_hash(f"http/k-{number}") for number in (2, 3)]


def test_a_request_of_which_only_what_it_owes_is_left_is_too_old_to_be_answered(script: Script) -> None:
    """Its answer left in a page, which is gone."""
    owing(script)
    assert script.document is not None
    script.put(with_ledger(script.document, replace(script.ledger, answers=())))
    played = attempt(script, request("k-1"))
    ((key, error),) = played.finished.failed
    assert key == "http/k-1"
    assert isinstance(error, TooOldToJudge)
    assert len(played.only(Publish).outputs) == 1
    assert script.body == {"id": "c", "total": 2}
    assert attempt(script, replace(request("k-1"), asked=None)).finished.failed == ()


def test_a_request_whose_answer_left_in_a_page_that_is_gone_is_too_old_to_be_answered(script: Script) -> None:
    left(script)
    for asked in ("f", "g"):  # Which of them was carried out is gone with the answer.
        played = attempt(script, request("k-1", asked), replies={FindPages: FoundPages(())})
        ((key, error),) = played.finished.failed
        assert (key, type(error)) == ("http/k-1", TooOldToJudge)
        assert not played.all(SaveEntity)
    assert attempt(script, replace(request("k-1"), asked=None)).finished.failed == ()


def test_a_message_from_a_queue_whose_key_a_request_has_is_no_forgotten_request_where_nothing_has_left(
    script: Script,
) -> None:
    attempt(script, QUEUED)
    finished = attempt(script, request("m-1")).finished
    assert (finished.failed, finished.answers) == ((), ())


@pytest.mark.parametrize("answer_left", [False, True])
def test_what_a_view_knows_is_computed_once(script: Script, monkeypatch: pytest.MonkeyPatch, answer_left: bool) -> None:
    left(script) if answer_left else attempt(script, request("k-1"))
    views = list[View]()

    def counted(view: View) -> Mapping[str, str]:
        views.append(view)
        return known_in(view)

    monkeypatch.setattr(judge, "known_in", counted)
    attempt(script, request("k-1"))
    assert [view.pages is not None for view in views] == ([False, True] if answer_left else [False])


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
    assert finished.contents == (("http/m-1", QUEUED.content[:4]),)
    assert finished.differing((COPY, *others)) == (COPY,)


def test_whatever_brought_a_message_its_mark_begins_its_content(script: Script) -> None:
    attempt(script, request("k-1"))
    attempt(script, QUEUED)
    assert {mark.content for mark in script.marks} == {request("k-1").content[:4], QUEUED.content[:4]}
