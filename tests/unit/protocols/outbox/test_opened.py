"""Requests that callers opened, step by step: what an attempt asks about them, and what their entries owe."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.library import Written
from exactlyonce.effects.publish import Publish
from exactlyonce.effects.requests import KeepAnswers, OpenRequest
from exactlyonce.records.answers import Answer
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.frozen_json import Json
from tests.asking import sweep
from tests.samples import deposit
from tests.unit.script import AT, ENTITY, Script, attempt

ONE = Outbox(window=1)


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


def test_a_message_with_a_record_is_known_in_the_group_of_a_request() -> None:
    script = Script()
    for message in ("m-1", "m-2"):
        script.play(attempt(ONE, deposit(message)))
    assert [entry.message for entry in script.entries] == ["web/m-2"], "the record of the first one was written"
    request = opened(script, "r-1")
    assert script.play(attempt(ONE, deposit("m-1"), request)).finished.processed == ("web/r-1",)


def test_a_request_whose_handler_sends_nothing_has_an_entry_and_its_answer_is_kept() -> None:
    script = Script()
    played = script.play(attempt(ONE, opened(script, "r-1"), handle=answering))
    assert not played.all(Publish)
    (kept,) = played.only(KeepAnswers).documents
    assert (kept.request, kept.answer and kept.answer.body) == ("r-1", '"done"')
    assert [entry.request for entry in script.entries] == ["r-1"]


def test_an_answer_that_was_not_kept_is_owed_and_the_sweeper_keeps_it() -> None:
    script = Script()
    assert script.play(attempt(ONE, opened(script, "r-1"), handle=answering), {KeepAnswers: UNKNOWN}).again.reason
    assert script.ledger.owing_since is not None
    assert script.play(sweep(ENTITY, Memory())).only(KeepAnswers).documents
    assert script.ledger.owing_since is None
