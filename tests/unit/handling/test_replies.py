"""Replies of handlers: what they may answer, and whose answers are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import ConfigurationError, Context
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import HandlerFailed, OutputTooLarge
from exactlyonce.handling.context import MAX_ANSWER_BYTES, answer_of
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.outbox import Answer
from exactlyonce.testing import run
from exactlyonce.values.envelope import Envelope
from tests.answering import Add, Added, Counter, added_queue, counters, request
from tests.unit.script import AT


class Note(BaseModel):
    text: str


@dataclass
class Plain:
    number: float


def test_a_body_is_json_and_comes_with_200_and_no_body_with_204() -> None:
    assert answer_of(Note(text="\u00e9"), None, {}) == Answer(200, (), '{"text":"\u00e9"}')
    assert answer_of(Plain(1.5), 201, {}) == Answer(201, (), '{"number":1.5}')
    assert answer_of(None, None, {}) == Answer(204)
    assert answer_of(None, 409, {}) == Answer(409)
    for status in (200, 599):
        assert answer_of(Note(text=""), status, {}).status == status
    with pytest.raises(ConfigurationError, match="body of an answer"):
        answer_of({"text": "a"}, None, {})
    with pytest.raises(HandlerFailed, match="A Plain holds NaN, an infinity"):
        answer_of(Plain(float("nan")), None, {})


@pytest.mark.parametrize(("body", "status"), [(None, 199), (None, 600), (Note(text=""), 204), (Note(text=""), 304)])
def test_a_status_code_that_cannot_be_is_refused(body: object, status: int) -> None:
    with pytest.raises(ValueError, match="from 200 to 599"):
        answer_of(body, status, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Set-Cookie", "a"),
        ("X-", "a"),
        ("X-a\n", "a"),
        ("X-a", ""),
        ("X-a", "a\r\nX-b: c"),
        ("X-a", " a"),
        ("X-a", "\u00e9"),
    ],
)
def test_an_answer_has_some_headers_and_no_others(name: str, value: str) -> None:
    for allowed in ("Location", "etag", "Content-Language", "X-Total-2", "x-a"):
        assert answer_of(None, None, {allowed: "a b"}).headers == ((allowed, "a b"),)
    with pytest.raises(ValueError, match="headers of an answer"):
        answer_of(None, None, {name: value})


def test_an_answer_has_room_for_16_kib_with_its_headers() -> None:
    frame = len('{"text":""}') + len("X-a") + len("b")
    assert answer_of(Note(text="a" * (MAX_ANSWER_BYTES - frame)), None, {"X-a": "b"}).status == 200
    with pytest.raises(OutputTooLarge, match=f"{MAX_ANSWER_BYTES + 1} bytes"):
        answer_of(Note(text="a" * (MAX_ANSWER_BYTES - frame + 1)), None, {"X-a": "b"})
    with pytest.raises(OutputTooLarge):
        answer_of(Note(text="\u00e9" * (MAX_ANSWER_BYTES // 2)), None, {})


def handled(envelope: Envelope) -> Any:
    entity = counters()
    runner = Runner(entity, entity.ref("c"), Routes.to((added_queue,), {"added": 1024}))
    return runner(Before(None, AT, "tx-1"), envelope)


def test_the_reply_to_a_request_carries_its_fingerprint() -> None:
    answer = handled(request("k-1", "the-fingerprint")).answer
    assert answer == Answer(200, (("Location", "/counters/c"),), '{"total":1}', "the-fingerprint")


def test_a_second_reply_fails_the_handler() -> None:
    def twice(state: Counter, message: Add, context: Context) -> Counter:
        context.reply()
        context.reply()
        return state

    with pytest.raises(ValueError, match="replies once"):
        run(twice, Counter(), Add("c"))


def test_a_reply_that_cannot_be_fails_the_handler() -> None:
    with pytest.raises(HandlerFailed):
        handled(request("k-1", status=99))


def test_a_test_of_business_code_sees_the_reply() -> None:
    def add(state: Counter, message: Add, context: Context) -> Counter:
        context.reply(Added(7), status=201)
        return state

    assert run(add, Counter(), Add("c")).answer == Answer(201, (), '{"total":7}')
    assert run(lambda state, _, __: state, Counter(), Add("c")).answer is None
