"""Triggers, contexts and results are the same on this package's engine and on Microsoft's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from function_host_tests.contract.microsoft import MicrosoftEngine, engine_python
from function_host_tests.contract.ours import OwnEngine
from function_host_tests.contract.port import Engine


@pytest.fixture(scope="module")
def microsofts() -> Iterator[MicrosoftEngine]:
    python = engine_python()
    if python is None:
        pytest.skip("Microsoft's engine is not there: FUNCTION_HOST_ENGINE names a Python 3.13 that has it.")
    with MicrosoftEngine(python) as engine:
        yield engine


@pytest.fixture(params=["ours", "microsofts"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    if request.param == "ours":
        async with OwnEngine() as own:
            yield own
    else:
        yield request.getfixturevalue("microsofts")


async def test_a_message_of_a_queue_comes_with_its_properties(engine: Engine) -> None:
    outcome = await engine.queue("queue", '{"n": 1}')

    assert outcome.ok
    assert outcome.seen == {
        "kind": "QueueMessage",
        "id": "id-1",
        "body": '{"n": 1}',
        "json": {"n": 1},
        "dequeue_count": 3,
        "pop_receipt": "receipt-1",
        "inserted": "2026-01-01T12:00:00+00:00",
        "expires": "2026-01-08T12:00:00+00:00",
        "visible": "2026-01-01T12:10:00+00:00",
    }


@pytest.mark.parametrize("text", ["", "grüße 🎯", "{", "a\nb", '"x"'])
async def test_the_body_of_a_message_is_what_was_sent(engine: Engine, text: str) -> None:
    outcome = await engine.queue("body", text)

    assert outcome.ok
    assert outcome.seen == {"body": text}


async def test_a_context_knows_function_trace_and_retries_and_holds_what_a_function_keeps(engine: Engine) -> None:
    first, second = [(await engine.queue("context", "x")).seen or {} for _ in range(2)]

    assert first.pop("invocation") != second.pop("invocation")
    assert first.pop("parent").startswith("00-")
    assert first.pop("folder").endswith("/function_host_tests/contract")
    assert first == {"name": "context", "local": "kept", "state": "", "retry": 0, "most": 0}


async def test_async_functions_run_on_the_loop_and_others_in_threads_that_know_their_invocation(engine: Engine) -> None:
    assert (await engine.queue("loops", "x")).seen == {"main": True}
    assert (await engine.queue("threads", "x")).seen == {"main": False, "own": True}


@pytest.mark.parametrize(("text", "ok"), [("null", True), ("7", False), ('""', False), ("false", False), ("[]", False)])
async def test_a_function_without_an_output_may_return_nothing_but_none(engine: Engine, text: str, ok: bool) -> None:
    assert (await engine.queue("result", text)).ok is ok


async def test_a_function_that_raises_has_failed(engine: Engine) -> None:
    assert not (await engine.queue("failure", "x")).ok


SENT: dict[str, Any] = {
    "body": "hello",
    "MessageId": "m-1",
    "DeliveryCount": 2,
    "SequenceNumber": 7,
    "SessionId": "game-1",
    "EnqueuedTimeUtc": "2026-01-01T12:00:00",
    "ApplicationProperties": {"n": 2},
    "UserProperties": {"n": 2},
    "ContentType": "application/json",
    "LockToken": "token-1",
}


async def test_a_message_of_service_bus_comes_with_its_properties(engine: Engine) -> None:
    outcome = await engine.bus("bus", SENT)

    assert outcome.ok
    assert outcome.seen == {
        "kind": True,
        "id": "m-1",
        "body": "hello",
        "count": 2,
        "number": 7,
        "session": "game-1",
        "enqueued": "2026-01-01T12:00:00",
        "properties": {"n": 2},
        "content_type": "application/json",
        "lock": "token-1",
    }


async def test_a_batch_comes_in_one_call_in_its_order(engine: Engine) -> None:
    batch = [{"body": f"b-{n}", "MessageId": f"m-{n}", "SequenceNumber": n} for n in range(3)]
    outcome = await engine.bus("batch", *batch)

    assert outcome.ok
    assert outcome.seen == {"found": [[f"m-{n}", f"b-{n}", n] for n in range(3)]}


@pytest.mark.parametrize("past_due", [False, True])
async def test_a_timer_says_whether_it_is_past_due(engine: Engine, past_due: bool) -> None:
    outcome = await engine.timer(past_due=past_due)

    assert outcome.ok
    assert outcome.seen == {"past_due": past_due, "schedule": {"AdjustForDST": True}, "status": {}}


async def test_a_request_comes_whole_and_its_reply_goes_whole(engine: Engine) -> None:
    outcome = await engine.http("echo", "POST", "echo/a?q=1", '{"x": 1}', X_Test="t", Content_Type="application/json")

    seen = outcome.seen or {}
    assert seen.pop("url").endswith("/api/echo/a?q=1")
    assert seen == {
        "method": "POST",
        "params": {"q": "1"},
        "route": {"name": "a"},
        "header": "t",
        "body": '{"x": 1}',
        "json": {"x": 1},
    }
    assert (outcome.status, outcome.body) == (201, '{"done": true}')
    assert outcome.headers["x-reply"] == "yes"
    assert outcome.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("result", "status", "body", "content_type"),
    [
        ("text", 200, "grüße", "text/plain; charset=utf-8"),
        ("plain", 200, "plain", "text/plain; charset=utf-8"),
        ("empty", 204, "", "text/plain; charset=utf-8"),
    ],
)
async def test_texts_and_responses_are_replies(
    engine: Engine, result: str, status: int, body: str, content_type: str
) -> None:
    outcome = await engine.http("http_result", "GET", f"results/{result}")

    assert (outcome.status, outcome.body) == (status, body)
    assert outcome.headers["content-type"] == content_type


@pytest.mark.parametrize("result", ["none", "dict", "number", "bytes", "list"])
async def test_other_results_of_an_http_function_are_failures(engine: Engine, result: str) -> None:
    outcome = await engine.http("http_result", "GET", f"results/{result}")

    assert (outcome.ok, outcome.status, outcome.body) == (False, 500, "")


async def test_an_http_function_that_raises_is_a_failure_without_details(engine: Engine) -> None:
    outcome = await engine.http("http_failure", "GET", "raise")

    assert (outcome.ok, outcome.status, outcome.body) == (False, 500, "")
