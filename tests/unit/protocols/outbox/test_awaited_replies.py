"""Calls: the ledger awaits one reply to each, however often and however late it comes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from exactlyonce import Envelope, Outbox, TryAgainLater
from exactlyonce.attempt import Before, Handle, Handled, Memory, Work
from exactlyonce.effects.effect import UNKNOWN, Step
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPages, FindPaid, OpenNumbers, Park
from exactlyonce.errors import EntityTooLarge, HandlerFailed, InvalidMessage
from exactlyonce.handling.calls import Call, read_call
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox.judge import answered, arrived
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.ledger import CALL_TYPE, Ledger, ReplyTo, entity_document, is_reply, reply_of
from exactlyonce.values.envelope import key_of
from exactlyonce.values.frozen_json import Json
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, bill, charged, orders
from tests.unit.script import Script

ENTITY = orders().ref("a")
ABSENT = orders().shape.tombstone(ENTITY)
LIMITS = dict.fromkeys(("orders", "receipts", PAYMENTS.name), 1024 * 1024)
ROUTES = Routes.to((ORDERS, RECEIPTS), LIMITS)
RUNNER = Runner(orders(), ENTITY, ROUTES)


def work(*messages: Envelope, handle: Handle = RUNNER) -> Work:
    return Work(ENTITY, messages, handle, ABSENT)


def attempt(*messages: Envelope, memory: Memory | None = None, handle: Handle = RUNNER) -> Any:
    return Outbox().attempt(work(*messages, handle=handle), memory or Memory())


def called(script: Script, id: str = "m-1", **more: Any) -> tuple[str, ...]:
    """Let the order call; return the ids of the calls that it awaits."""
    script.play(attempt(bill(id, **more)))
    return script.ledger.calls


def fresh() -> Script:
    return Script(entity=ENTITY)


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
    script.play(attempt(bill("m-1"), bill("m-2", times=2)))
    versions = [read_call(Envelope.read(item.envelope.text)).version for item in script.published]
    assert versions == [1, 2, 2]
    assert script.ledger.calls == tuple(item.id for item in script.published)


def test_the_reply_is_handled_and_awaited_no_more() -> None:
    script = fresh()
    first, second = called(script, times=2)
    played = script.play(attempt(charged(first, 1)))
    assert played.kinds == [LoadEntity, FindPaid, OpenNumbers, SaveEntity, Publish, CloseNumbers]
    assert script.body == {"id": "a", "bills": 1, "paid": 1, "unknown": 0}
    assert script.ledger.calls == (second,)
    assert [mark.kind for mark in script.marks] == ["f", "r"]


def test_a_copy_of_a_reply_is_known_by_its_mark_and_then_by_its_page() -> None:
    script = fresh()
    (call,) = called(script)
    script.play(attempt(charged(call, 1)))
    for number in range(2, 40):
        script.at += timedelta(seconds=1)
        called(script, f"m-{number}", times=0)
    played = script.play(attempt(charged(call, 1)))
    assert played.requests == [LoadEntity, FindPages]
    assert played.finished.processed == ()
    assert played.finished.failed == ()
    assert script.body == {"id": "a", "bills": 39, "paid": 1, "unknown": 0}


def test_a_copy_finishes_what_its_commit_owes() -> None:
    script = fresh()
    (call,) = called(script)
    script.play(attempt(charged(call, 1)), {Publish: UNKNOWN})
    played = script.play(attempt(charged(call, 1)))
    assert played.requests == [LoadEntity, Publish]
    assert [item.id for item in script.published[1:]] == [output.id for output in played.only(Publish).outputs]


def test_a_reply_that_no_call_awaits_and_that_was_never_processed_is_refused() -> None:
    script = fresh()
    called(script)
    ((_, error),) = script.play(attempt(charged("never", 1))).finished.failed
    assert isinstance(error, InvalidMessage)
    assert (
        error.kept
        == "no call of the entity awaits this reply, so the reply was not processed: the entity may have been restored"
    )


def test_a_view_that_is_older_than_the_call_proves_nothing() -> None:
    script = fresh()
    called(script, times=0)
    for version in (2, 7):
        played = script.play(attempt(charged("later", version)))
        assert played.kinds == [LoadEntity]
        assert "older than the call" in played.again.reason


def test_a_reply_whose_call_no_view_shows_takes_nothing_along() -> None:
    script = fresh()
    script.play(attempt(bill("m-1", times=0)))
    lost = charged("lost", 2)
    finished = script.play(attempt(lost, bill("m-1", times=0), bill("m-2", times=0))).finished
    ((key, error),) = finished.failed
    assert finished.processed == (key_of(bill("m-2")),)
    assert key == key_of(lost)
    assert isinstance(error, TryAgainLater)
    assert "a call newer than the entity's version read, 1." in str(error)
    assert [type(item) for _, item in script.play(attempt(lost, bill("m-1"))).finished.failed] == [InvalidMessage]
    later = charged("later", 4)
    assert [item for item, _ in script.play(attempt(later, bill("m-2"))).finished.failed] == [key_of(later)]
    assert "older than the call" in script.play(attempt(later, charged("lost", 4))).again.reason
    assert len(script.play(attempt(later, charged("o-1", 1, order="b"))).finished.failed) == 2


def test_an_absent_entity_is_older_than_any_call() -> None:
    assert "older than the call" in fresh().play(attempt(charged("o-1", 1))).again.reason


def test_the_reply_to_another_entity_is_refused() -> None:
    script = fresh()
    (call,) = called(script)
    astray = replace(charged(call, 1), extensions=ReplyTo(call, 1, "order/b").extensions)
    ((key, error),) = script.play(attempt(astray)).finished.failed
    assert isinstance(error, InvalidMessage)
    assert "a call of 'order/b'" in str(error)
    assert script.ledger.calls == (call,)
    assert key == f"exactlyonce%2Fapi%2Fpayments/{call}"


def test_a_reply_whose_handler_raises_stays_awaited() -> None:
    def raising(before: Before, envelope: Envelope) -> Handled:
        if is_reply(envelope):
            raise HandlerFailed("no")
        return RUNNER(before, envelope)

    script = fresh()
    (call,) = called(script)
    played = script.play(attempt(charged(call, 1), bill("m-2", times=0), handle=raising))
    assert [type(error) for _, error in played.finished.failed] == [HandlerFailed]
    assert script.ledger.calls == (call,)


def test_of_two_replies_to_one_call_that_share_a_commit_one_is_handled() -> None:
    script = fresh()
    (call,) = called(script)
    played = script.play(attempt(charged(call, 1), charged(call, 1, source="another")))
    ((key, error),) = played.finished.failed
    assert isinstance(error, InvalidMessage)
    assert key == f"another/{call}"
    assert script.body == {"id": "a", "bills": 1, "paid": 1, "unknown": 0}


def test_a_reply_may_share_the_commit_of_others_and_of_its_own_entity_s_next_call() -> None:
    script = fresh()
    (call,) = called(script)
    played = script.play(attempt(bill("m-2"), charged(call, 1)))
    assert played.all(SaveEntity) != []
    assert len(played.all(SaveEntity)) == 1
    assert script.ledger.calls == (script.published[1].id,)


def test_after_a_conflict_the_next_attempt_finds_the_reply_handled() -> None:
    script = fresh()
    (call,) = called(script)
    stale = script.document
    assert script.play(attempt(charged(call, 1)), {SaveEntity: [Conflict(None)]}).again.processed == ()
    script.play(attempt(charged(call, 1)))
    assert stale != script.document
    assert script.play(attempt(charged(call, 1))).finished.processed == ()


def trusting(script: Script) -> tuple[Memory, str]:
    """A process that remembers the document, and the call that this awaits."""
    (call,) = called(script)
    memory = script.play(attempt(bill("m-2", times=0))).finished.memory
    assert memory.saved is not None
    return replace(memory, saved=replace(memory.saved, right=TRUSTED)), call


def test_a_remembered_document_knows_what_it_awaits_and_what_it_has_handled() -> None:
    script = fresh()
    memory, call = trusting(script)
    played = script.play(attempt(charged(call, 1), memory=memory))
    assert played.requests == [SaveEntity, Publish]
    again = script.play(attempt(charged(call, 1), memory=played.finished.memory))
    assert again.requests == []
    assert again.finished.processed == ()


def test_a_remembered_document_older_than_the_call_is_loaded_again() -> None:
    script = fresh()
    memory, _ = trusting(script)
    _, call = called(script, "m-3")
    played = script.play(attempt(charged(call, 3), memory=memory))
    assert played.requests == [LoadEntity, SaveEntity, Publish]


def settled(script: Script, reply: Envelope) -> Any:
    step: Step[Any] = Outbox().settle(work(reply), reply, "given up", Memory())
    return script.play(step)


def test_a_given_up_reply_is_parked_behind_a_fence_and_stays_awaited() -> None:
    script = fresh()
    (call,) = called(script)
    played = settled(script, charged(call, 1))
    assert played.result.outcome == "parked"
    assert played.requests == [LoadEntity, SaveEntity, Park]
    assert script.ledger.calls == (call,)


def test_a_given_up_copy_of_a_reply_is_processed() -> None:
    script = fresh()
    (call,) = called(script)
    script.play(attempt(charged(call, 1)))
    assert settled(script, charged(call, 1)).result.outcome == "processed"


def test_a_given_up_reply_to_a_call_that_no_view_shows_is_parked() -> None:
    script = fresh()
    called(script)
    assert settled(script, charged("lost", 2)).result.outcome == "parked"


def knows(script: Script, reply: Envelope) -> Any:
    return script.play(Outbox().knows(ENTITY, reply, Memory())).result


def test_what_the_ledger_knows_of_replies() -> None:
    script = fresh()
    (call,) = called(script)
    assert knows(script, charged(call, 1)) is False
    assert knows(script, charged("other", 2)) is False
    script.play(attempt(charged(call, 1)))
    assert knows(script, charged(call, 1)) is True


def test_replies_are_not_judged_by_age() -> None:
    reply = charged("o-1", 1)
    assert not Outbox().forgets(reply)
    assert Outbox().forgets(bill("m-1"))
    assert is_reply(reply)
    (arrival,) = arrived(ENTITY, (reply,), ()).messages
    assert (arrival.kind, arrival.reply) == ("r", ReplyTo("o-1", 1, "order/a"))


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
        reply_of(replace(charged("o-1", 1), extensions=tuple(sorted(given.items()))), ENTITY, "It")


def test_only_the_answered_call_is_awaited_no_more() -> None:
    (arrival,) = arrived(ENTITY, (charged("b", 1),), ()).messages
    assert answered(("a", "b", "c"), arrival) == ("a", "c")
    (other,) = arrived(ENTITY, (bill("m-1"),), ()).messages
    assert answered(("a",), other) == ("a",)


@pytest.mark.parametrize(("grown", "fits"), [(650_000, True), (800_000, False)])
def test_awaited_calls_count_for_the_size_of_the_document(*, grown: int, fits: bool) -> None:
    def growing(before: Before, envelope: Envelope) -> Handled:
        return Handled(Json.of({"id": "a", "text": "x" * grown}))

    script = fresh()
    ledger = Ledger(1, type="order", left=1, calls=tuple(f"{number:036d}" for number in range(20_000)))
    script.put(entity_document(Json.of({"id": "a", "text": "x" * 600_000}), ledger))
    finished = script.play(attempt(bill("m-1"), handle=growing)).finished
    assert [type(error) for _, error in finished.failed] == ([] if fits else [EntityTooLarge])
    assert len(finished.processed) == fits
