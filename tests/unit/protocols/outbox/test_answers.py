"""Answers to requests and to calls: part of the commit, and found again wherever the commit is known by then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from exactlyonce import Envelope, Outbox, TryAgainLater
from exactlyonce.effects.attempt import Before, Handle, Handled, Memory, Work
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    CloseNumbers,
    FindPages,
    FindPaid,
    FoundPages,
    KeepAnswers,
    LoadRequests,
    OpenNumbers,
    OpenRequest,
    WritePage,
    Written,
)
from exactlyonce.errors import EntityTooLarge, InvalidMessage, RequestUnknown, TooOldToJudge
from exactlyonce.handling.calls import Call, read_call
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox import judge
from exactlyonce.protocols.outbox.draft import MOST_ANSWERED
from exactlyonce.protocols.outbox.judge import known_in
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.protocols.steps.load import View, with_ledger
from exactlyonce.records.ledger import CALL_TYPE, Ledger, ReplyTo, entity_document, reply_of
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import key_of, message_hash
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import RETENTION
from tests.answering import added_queue, counters, request
from tests.asking import sweep
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, bill, charged, orders
from tests.samples import deposit
from tests.unit.script import AT, Played, Replies, Script
from tests.unit.script import ENTITY as SAMPLE
from tests.unit.script import attempt as attempt_on_sample

COUNTERS = counters()
ENTITY = COUNTERS.ref("c")
HANDLE = Runner(COUNTERS, ENTITY, Routes.to((added_queue,), {"added": 1024 * 1024}))
LOCATION = (("Location", "/counters/c"),)


def attempt(script: Script, *messages: Envelope, replies: Replies | None = None) -> Played:
    return script.play(attempt_on_sample(Outbox(), *messages, handle=HANDLE, entity=ENTITY), replies)


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


def left(script: Script) -> None:
    """Let the answer to k-1 leave the ledger."""
    attempt(script, request("k-1", padding=ROOM + 1))
    attempt(script, request("k-2"))


def test_only_requests_whose_answer_has_left_cost_a_look(script: Script) -> None:
    left(script)
    assert attempt(script, request("k-1")).only(FindPages).hashes == (message_hash("http/k-1"),)
    assert not attempt(script, replace(request("k-1"), asked=None)).all(FindPages)
    assert not attempt(script, request("k-2")).all(FindPages)


def test_one_attempt_answers_from_page_ledger_and_commit(script: Script) -> None:
    left(script)
    answers = dict(attempt(script, request("k-1"), request("k-2"), request("k-3")).finished.answers)
    assert [item.body for item in answers.values()] == [answer(total).body for total in (1, 2, 3)]
    assert [*answers] == ["http/k-1", "http/k-2", "http/k-3"]


def test_a_request_whose_answer_left_in_a_page_that_is_gone_is_too_old_to_be_answered(script: Script) -> None:
    left(script)
    for asked in ("f", "g"):  # Which of them was carried out is gone with the answer.
        played = attempt(script, request("k-1", asked), replies={FindPages: FoundPages(())})
        ((key, error),) = played.finished.failed
        assert (key, type(error)) == ("http/k-1", TooOldToJudge)
        assert not played.all(SaveEntity)
    assert attempt(script, replace(request("k-1"), asked=None)).finished.failed == ()


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


@pytest.mark.parametrize("answer_left", [False, True])
def test_the_knowledge_of_a_view_is_computed_once(
    script: Script, monkeypatch: pytest.MonkeyPatch, answer_left: bool
) -> None:
    left(script) if answer_left else attempt(script, request("k-1"))
    views = list[View]()

    def counted(view: View) -> Mapping[str, str]:
        views.append(view)
        return known_in(view)

    monkeypatch.setattr(judge, "known_in", counted)
    attempt(script, request("k-1"))
    assert [view.pages is not None for view in views] == ([False, True] if answer_left else [False])


def test_its_answer_goes_with_the_entry_once_that_is_paid(script: Script) -> None:
    owing(script)
    attempt(script, request("k-1"))
    attempt(script, request("k-3"))
    assert [item.cause for item in script.ledger.answers] == [message_hash(f"http/k-{number}") for number in (2, 3)]


def test_a_reply_to_a_message_from_a_queue_is_not_kept(script: Script) -> None:
    played = attempt(script, replace(request("k-1"), asked=None))
    assert played.finished.answers == ()
    assert script.ledger.answers == ()


QUEUED, COPY = (replace(request("m-1", amount=amount), asked=None) for amount in (1, 2))


@pytest.mark.parametrize(
    "others", [(), (request("k-1"),), (request("k-1", failing=True),)], ids=["", "more", "failure"]
)
def test_a_copy_with_another_content_is_told_from_its_message(script: Script, others: tuple[Envelope, ...]) -> None:
    attempt(script, QUEUED)
    finished = attempt(script, COPY, *others).finished
    assert finished.contents == (("http/m-1", QUEUED.content[:4]),)
    assert finished.differing((COPY, *others)) == (COPY,)


def test_a_message_from_a_queue_whose_key_a_request_has_is_no_forgotten_request_where_nothing_has_left(
    script: Script,
) -> None:
    attempt(script, QUEUED)
    finished = attempt(script, request("m-1")).finished
    assert (finished.failed, finished.answers) == ((), ())


def answering(before: Before, envelope: Envelope) -> Handled:
    """A handler that sends nothing, and answers."""
    del before
    return Handled(Json('{"id":"a"}'), answer=Answer(body='"done"', asked=envelope.asked or ""))


def opened(script: Script, id: str) -> Envelope:
    """A request that was opened, as it is carried out."""
    envelope = deposit(id)
    document = RequestDocument(SAMPLE.key, id, AT, envelope.to_json(), None)
    written = script.store.perform(OpenRequest(SAMPLE, document))
    assert isinstance(written, Written)
    return replace(envelope, asked=id, opened=written.token)


def test_an_opened_request_whose_handler_sends_nothing_has_an_entry_and_its_answer_is_kept() -> None:
    script = Script()
    played = script.play(attempt_on_sample(Outbox(), opened(script, "r-1"), handle=answering))
    assert not played.all(Publish)
    (kept,) = played.only(KeepAnswers).documents
    assert (kept.request, kept.answer and kept.answer.body) == ("r-1", '"done"')
    assert [entry.request for entry in script.entries] == ["r-1"]


def test_the_answer_of_an_opened_request_is_in_its_document_alone_once_it_is_kept() -> None:
    script = Script()
    script.play(attempt_on_sample(Outbox(), opened(script, "r-1"), handle=answering))
    script.play(attempt_on_sample(Outbox(), deposit("m-1")))
    assert script.ledger.answers == ()
    assert [entry.request for entry in script.entries] == [None]


def test_a_request_without_a_document_is_refused() -> None:
    request = replace(deposit("r-1"), asked="r-1", opened="0:-1#0")
    ((_, error),) = Script().play(attempt_on_sample(Outbox(), request, handle=answering)).finished.failed
    assert isinstance(error, RequestUnknown)


def test_an_answer_that_was_not_kept_is_owed_and_the_sweeper_keeps_it() -> None:
    script = Script()
    assert script.play(
        attempt_on_sample(Outbox(), opened(script, "r-1"), handle=answering), {KeepAnswers: UNKNOWN}
    ).again.reason
    assert script.ledger.outbox
    assert script.play(sweep(SAMPLE, Memory())).only(KeepAnswers).documents
    assert script.entries == ()


def test_a_request_is_not_carried_out_while_its_document_cannot_be_read() -> None:
    script = Script()
    step = attempt_on_sample(Outbox(), opened(script, "r-1"), handle=answering)
    assert script.play(step, {LoadRequests: UNKNOWN}).again.reason
    assert script.document is None


ORDER = orders().ref("a")
ABSENT = orders().shape.tombstone(ORDER)
LIMITS = dict.fromkeys(("orders", "receipts", PAYMENTS.name), 1024 * 1024)
ROUTES = Routes.to((ORDERS, RECEIPTS), LIMITS)
RUNNER = Runner(orders(), ORDER, ROUTES)


def work(*messages: Envelope, handle: Handle = RUNNER) -> Work:
    return Work(ORDER, messages, handle, ABSENT)


def attempt_on_order(*messages: Envelope, memory: Memory | None = None, handle: Handle = RUNNER) -> Any:
    return Outbox().attempt(work(*messages, handle=handle), memory or Memory())


def called(script: Script, id: str = "m-1", **more: Any) -> tuple[str, ...]:
    """Let the order call; return the ids of the calls that it awaits."""
    script.play(attempt_on_order(bill(id, **more)))
    return script.ledger.calls


def fresh() -> Script:
    return Script(entity=ORDER)


def test_the_commit_that_calls_awaits_the_reply_and_publishes_the_call() -> None:
    script = fresh()
    (call,) = called(script)
    (output,) = script.published
    sent = Envelope.read(output.envelope.text)
    assert (output.id, output.destination, sent.type, sent.source) == (call, "payments", CALL_TYPE, "order/a")
    body: JsonValue = {"amount": 1}
    assert sent.data.value == body
    assert read_call(sent) == Call("payments", "POST", "/charges", "order.charged", "orders", "a", 1, 3600.0, body)


def test_calls_of_messages_that_share_a_commit_carry_their_own_versions() -> None:
    script = fresh()
    script.play(attempt_on_order(bill("m-1"), bill("m-2", times=2)))
    versions = [read_call(Envelope.read(item.envelope.text)).version for item in script.published]
    assert versions == [1, 2, 2]
    assert script.ledger.calls == tuple(item.id for item in script.published)


def test_the_reply_is_handled_and_awaited_no_more() -> None:
    script = fresh()
    first, second = called(script, times=2)
    played = script.play(attempt_on_order(charged(first, 1)))
    assert played.kinds == [LoadEntity, FindPaid, OpenNumbers, SaveEntity, Publish, CloseNumbers]
    assert script.body == {"id": "a", "bills": 1, "paid": 1, "unknown": 0}
    assert script.ledger.calls == (second,)
    assert [mark.kind for mark in script.marks] == ["f", "r"]


def test_a_reply_that_no_call_awaits_and_that_was_never_processed_is_refused() -> None:
    script = fresh()
    called(script)
    ((_, error),) = script.play(attempt_on_order(charged("never", 1))).finished.failed
    assert isinstance(error, InvalidMessage)
    assert (
        error.kept
        == "no call of the entity awaits this reply, so the reply was not processed: the entity may have been restored"
    )


def test_a_reply_whose_call_no_view_shows_takes_nothing_along() -> None:
    script = fresh()
    script.play(attempt_on_order(bill("m-1", times=0)))
    lost = charged("lost", 2)
    finished = script.play(attempt_on_order(lost, bill("m-1", times=0), bill("m-2", times=0))).finished
    ((key, error),) = finished.failed
    assert finished.processed == (key_of(bill("m-2")),)
    assert key == key_of(lost)
    assert isinstance(error, TryAgainLater)
    assert "a call newer than the entity's version read, 1." in str(error)
    assert [type(item) for _, item in script.play(attempt_on_order(lost, bill("m-1"))).finished.failed] == [
        InvalidMessage
    ]
    later = charged("later", 4)
    assert [item for item, _ in script.play(attempt_on_order(later, bill("m-2"))).finished.failed] == [key_of(later)]
    assert "older than the call" in script.play(attempt_on_order(later, charged("lost", 4))).again.reason
    assert len(script.play(attempt_on_order(later, charged("o-1", 1, order="b"))).finished.failed) == 2


def test_the_reply_to_another_entity_is_refused() -> None:
    script = fresh()
    (call,) = called(script)
    astray = replace(charged(call, 1), extensions=ReplyTo(call, 1, "order/b").extensions)
    ((key, error),) = script.play(attempt_on_order(astray)).finished.failed
    assert isinstance(error, InvalidMessage)
    assert "a call of 'order/b'" in str(error)
    assert script.ledger.calls == (call,)
    assert key == f"exactlyonce%2Fapi%2Fpayments/{call}"


def test_of_two_replies_to_one_call_that_share_a_commit_one_is_handled() -> None:
    script = fresh()
    (call,) = called(script)
    played = script.play(attempt_on_order(charged(call, 1), charged(call, 1, source="another")))
    ((key, error),) = played.finished.failed
    assert isinstance(error, InvalidMessage)
    assert key == f"another/{call}"
    assert script.body == {"id": "a", "bills": 1, "paid": 1, "unknown": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"replyto": ""},
        {"replyto": 7},
        {"replyversion": 0},
        {"replyversion": "1"},
        {"replyversion": True},
        {"replyversion": None},
    ],
    ids=str,
)
def test_a_reply_that_does_not_say_what_it_answers_is_refused(wrong: dict[str, Any]) -> None:
    extensions = {**dict(charged("o-1", 1).extensions), **wrong}
    given = {name: value for name, value in extensions.items() if value is not None}
    with pytest.raises(InvalidMessage, match="It has a replyto that is no id, or a replyversion"):
        reply_of(replace(charged("o-1", 1), extensions=tuple(sorted(given.items()))), ORDER, "It")


@pytest.mark.parametrize(("grown", "fits"), [(650_000, True), (800_000, False)])
def test_awaited_calls_count_for_the_size_of_the_document(*, grown: int, fits: bool) -> None:
    def growing(before: Before, envelope: Envelope) -> Handled:
        return Handled(Json.of({"id": "a", "text": "x" * grown}))

    script = fresh()
    ledger = Ledger(1, type="order", left=1, calls=tuple(f"{number:036d}" for number in range(20_000)))
    script.put(entity_document(Json.of({"id": "a", "text": "x" * 600_000}), ledger))
    finished = script.play(attempt_on_order(bill("m-1"), handle=growing)).finished
    assert [type(error) for _, error in finished.failed] == ([] if fits else [EntityTooLarge])
    assert len(finished.processed) == fits


def knows(script: Script, reply: Envelope) -> Any:
    return script.play(Outbox().knows(ORDER, reply, Memory())).result


def test_the_ledger_knows_the_replies_that_came() -> None:
    script = fresh()
    assert (Outbox().forgets(charged("o-1", 1)), Outbox().forgets(bill("m-1"))) == (False, True)
    (call,) = called(script)
    assert knows(script, charged(call, 1)) is False
    assert knows(script, charged("other", 2)) is False
    script.play(attempt_on_order(charged(call, 1)))
    assert knows(script, charged(call, 1)) is True


def trusting(script: Script) -> tuple[Memory, str]:
    """A process that remembers the document, and the call that this awaits."""
    (call,) = called(script)
    memory = script.play(attempt_on_order(bill("m-2", times=0))).finished.memory
    assert memory.saved is not None
    return replace(memory, saved=replace(memory.saved, right=TRUSTED)), call


def test_a_remembered_document_older_than_the_call_is_loaded_again() -> None:
    script = fresh()
    memory, _ = trusting(script)
    _, call = called(script, "m-3")
    played = script.play(attempt_on_order(charged(call, 3), memory=memory))
    assert played.requests == [LoadEntity, SaveEntity, Publish]
