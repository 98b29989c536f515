"""Requests that callers opened, step by step: what an attempt asks about them, and what their entries owe."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.effect import UNKNOWN, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.effects.library import KeepAnswers, OpenRequest, Written
from exactlyonce.errors import RequestUnknown
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer
from exactlyonce.values.frozen_json import Json
from tests.asking import sweep
from tests.samples import deposit
from tests.unit.script import AT, ENTITY, Script, attempt

OUTBOX = Outbox()


def answering(before: Before, envelope: Envelope) -> Handled:
    """A handler that sends nothing, and answers."""
    del before
    return Handled(Json('{"id":"a"}'), answer=Answer(body='"done"', asked=envelope.asked or ""))


def opened(script: Script, id: str) -> Envelope:
    """A request that was opened, as it is carried out."""
    envelope = deposit(id)
    document = RequestDocument(ENTITY.key, id, AT, envelope.to_json(), None)
    written = script.store.perform(OpenRequest(ENTITY, document))
    assert isinstance(written, Written)
    return replace(envelope, asked=id, opened=written.token)


def test_a_copy_is_known_in_the_group_of_a_request() -> None:
    script = Script()
    script.play(attempt(OUTBOX, deposit("m-1")))
    request = opened(script, "r-1")
    assert script.play(attempt(OUTBOX, deposit("m-1"), request)).finished.processed == ("web/r-1",)
    assert {mark.kind for mark in script.marks} == {"f", "q"}


def test_a_request_is_committed_with_a_token_that_shows_its_document() -> None:
    script = Script()
    request = opened(script, "r-1")
    played = script.play(attempt(OUTBOX, request, handle=answering))
    assert played.requests[0] is Together
    assert script.play(attempt(OUTBOX, request, handle=answering)).finished.answers[0][1].body == '"done"'


def test_a_request_whose_handler_sends_nothing_has_an_entry_and_its_answer_is_kept() -> None:
    script = Script()
    played = script.play(attempt(OUTBOX, opened(script, "r-1"), handle=answering))
    assert not played.all(Publish)
    (kept,) = played.only(KeepAnswers).documents
    assert (kept.request, kept.answer and kept.answer.body) == ("r-1", '"done"')
    assert [entry.request for entry in script.entries] == ["r-1"]


def test_an_answer_that_was_not_kept_is_owed_and_the_sweeper_keeps_it() -> None:
    script = Script()
    assert script.play(attempt(OUTBOX, opened(script, "r-1"), handle=answering), {KeepAnswers: UNKNOWN}).again.reason
    assert script.ledger.outbox
    assert script.play(sweep(ENTITY, Memory())).only(KeepAnswers).documents
    assert script.entries == ()


def test_the_answer_of_an_opened_request_is_in_its_document_alone_once_it_is_kept() -> None:
    script = Script()
    script.play(attempt(OUTBOX, opened(script, "r-1"), handle=answering))
    script.play(attempt(OUTBOX, deposit("m-1")))
    assert script.ledger.answers == ()
    assert [entry.request for entry in script.entries] == [None]


def test_a_request_without_a_document_is_refused() -> None:
    request = replace(deposit("r-1"), asked="r-1", opened="0:-1#0")
    ((_, error),) = Script().play(attempt(OUTBOX, request, handle=answering)).finished.failed
    assert isinstance(error, RequestUnknown)
