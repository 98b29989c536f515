"""The caller: which answers are final, how long it waits, what its replies carry, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, TryAgainLater
from exactlyonce.errors import InvalidMessage, MalformedMessage
from exactlyonce.hosting.caller import FIRST_DELAY, LONGEST_DELAY
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.records.outbox import Output
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.transports.http import Received, Request
from exactlyonce.values.frozen_json import Json
from tests.calling import PAYMENTS, Charged, bill, taken
from tests.paying import Desk

NO_ROOM = "x" * 40_000


class Told:
    """A service that answers as it is told."""

    def __init__(self, *answers: Received | str) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Received | str:
        self.requests.append(request)
        return self._answers.pop(0)


def answer(status: int = 200, body: bytes | None = b"", **headers: str) -> Received:
    return Received(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


class Case:
    """A call that was made, and is taken."""

    def __init__(self, *answers: Received | str, **more: Any) -> None:
        self.api = replace(PAYMENTS, **more)
        self.desk = Desk(api=self.api)
        self.wire = Told(*answers)
        self.caller = self.desk.calling(self.wire)
        self.call: Output | None = None

    async def made(self, **more: Any) -> Output:
        await self.desk.send(bill("m-1", **more))
        (self.call,) = self.queue("payments")
        return self.call

    def queue(self, name: str) -> list[Output]:
        found = list(self.desk.transport.queues[name])
        self.desk.transport.queues[name].clear()
        return found

    def later(self, seconds: float) -> None:
        self.desk.clock.advance(seconds)  # type: ignore[attr-defined]

    async def take(self) -> None:
        call = self.call or await self.made()
        await self.caller.take(taken(call.envelope))

    async def reply(self) -> dict[str, Any]:
        await self.take()
        (output,) = self.queue("orders")
        return dict(output.envelope.value)

    async def again(self) -> Output:
        await self.take()
        (self.call,) = self.queue("payments")
        assert not self.queue("orders")
        return self.call


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 402, 404, 407, 410, 422, 424, 426, 428, 430, 499])
async def test_a_final_answer_becomes_the_reply(status: int) -> None:
    case = Case(
        answer(status, b'{"a":1}', content_type="application/problem+json; charset=utf-8", etag="e", set_cookie="s")
    )
    reply = await case.reply()
    assert case.call is not None
    assert reply["data"] == {
        "tag": "a",
        "outcome": "answered",
        "tried_before": False,
        "status": status,
        "headers": {"Content-Type": "application/problem+json; charset=utf-8", "ETag": "e"},
        "body": {"a": 1},
        "cut": False,
    }
    assert (reply["id"], reply["replyto"], reply["replyversion"]) == (case.call.id, case.call.id, 1)
    assert (reply["source"], reply["type"], reply["partitionkey"]) == (
        "exactlyonce/api/payments",
        "order.charged",
        "order/a",
    )
    assert not case.queue("payments")


@pytest.mark.parametrize("status", [401, 408, 409, 425, 429, 500, 502, 503, 599])
async def test_any_other_answer_is_tried_again(status: int) -> None:
    case = Case(answer(status), answer(200))
    again = await case.again()
    assert Envelope.read(again.envelope.text).requeued == 1
    assert (await case.reply())["data"]["status"] == 200
    first, second = case.wire.requests
    assert first == second


@pytest.mark.parametrize(
    ("first", "before"),
    [
        ("ServerDisconnectedError", True),
        ("TimeoutError", True),
        (answer(409), True),
        (answer(503), True),
        (answer(401), False),
        (answer(425), False),
        (answer(429), False),
    ],
)
async def test_a_refusal_after_a_try_of_unknown_outcome_says_that_it_went_before(
    first: Received | str, before: bool
) -> None:
    case = Case(first, answer(429), answer(403))
    await case.again()
    await case.again()  # It is known however often the call was sent again since.
    reply = Charged.model_validate((await case.reply())["data"])
    assert (reply.outcome, reply.status, reply.tried_before, reply.refused) == ("answered", 403, before, not before)


@pytest.mark.parametrize("times", [1, 2, None])
async def test_a_delivery_that_was_not_acknowledged_may_have_been_a_try(times: int | None) -> None:
    case = Case(answer(403))
    await case.caller.take(taken((await case.made()).envelope, times))
    (output,) = case.queue("orders")
    assert output.envelope.value["data"]["tried_before"] is (times == 2)


async def test_a_call_that_its_queue_gave_up_may_have_been_tried() -> None:
    case = Case(answer(403))
    call = await case.made()
    await case.caller.settle(taken(call.envelope))
    (case.call,) = case.queue("payments")
    assert (await case.reply())["data"]["tried_before"] is True


async def test_a_wait_for_credentials_is_no_try() -> None:
    tokens: Iterator[Any] = iter([None, {"Authorization": "t"}])  # None is no mapping.
    case = Case(answer(403), credentials=lambda: next(tokens))
    await case.again()
    assert (await case.reply())["data"]["tried_before"] is False


async def test_delays_grow_and_are_drawn() -> None:
    case = Case(*["TimeoutError"] * 12, key_lifetime=timedelta(days=2))
    delays = [(await case.again()).delay for _ in range(12)]
    for number, delay in enumerate(delays):
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2**number)
        assert longest / 2 <= delay <= longest
    assert len(set(delays)) == len(delays)


@pytest.mark.parametrize(
    ("asked", "delay"),
    [
        ("900", 900.0),
        (" 40 ", 40.0),
        ("Thu, 01 Jan 2026 00:20:00 GMT", 1200.0),
        ("Thu, 01 Jan 2026 00:20:00 -0000", 1200.0),
        ("99999999999999999999", 3601.0),
        ("86400", 3601.0),
    ],
)
async def test_a_service_is_given_the_time_that_it_asks_for(asked: str, delay: float) -> None:
    assert (await Case(answer(503, retry_after=asked)).again()).delay == delay


@pytest.mark.parametrize("asked", ["", "soon", "-5", "1.5", "Thu, 01 Jan 1970 00:00:00 GMT", "\u0663"])
async def test_an_answer_that_asks_for_no_time_changes_nothing(asked: str) -> None:
    assert FIRST_DELAY / 2 <= (await Case(answer(503, retry_after=asked)).again()).delay <= FIRST_DELAY


async def test_no_delay_is_longer_than_a_queue_keeps_messages() -> None:
    case = Case(answer(503, retry_after="99999999"), key_lifetime=timedelta(days=30))
    assert (await case.again()).delay == timedelta(days=7).total_seconds() - 1


LAST = 3600 - 90


@pytest.mark.parametrize("after", [LAST + 1, 3600])
async def test_no_outcome_is_unknown_while_another_host_may_be_at_a_try(after: int) -> None:
    case = Case(answer())
    await case.made()
    case.later(after)
    assert 0 < (await case.again()).delay <= 3600 - after + 1
    assert not case.wire.requests


async def test_a_try_that_fails_at_the_end_comes_back_to_be_answered() -> None:
    case = Case("TimeoutError")
    await case.made()
    case.later(LAST)
    assert (await case.again()).delay <= 90 + 1
    case.later(91)
    reply = await case.reply()
    assert reply["data"] == {"tag": "a", "outcome": "unknown", "tried_before": True}
    assert len(case.wire.requests) == 1


async def test_credentials_are_those_of_the_try_and_not_of_the_wait_for_a_place() -> None:
    asked: list[str] = []

    def credentials() -> Mapping[str, str]:
        asked.append("now")
        return {}

    case = Case(answer(), most_at_once=1, credentials=credentials)
    await case.made()
    place = case.caller._places.setdefault("payments", asyncio.Semaphore(1))
    async with place:
        waiting = asyncio.create_task(case.take())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asked
    await waiting
    assert asked == ["now"]


@pytest.mark.parametrize(
    ("took", "tries", "outcomes"),
    [(LAST, 1, ["answered"]), (LAST + 1, 0, []), (2 * 3600, 0, ["unknown"])],
    ids=["just in time", "while another process may be at a try", "too long"],
)
async def test_no_try_starts_once_the_key_could_be_forgotten_however_long_its_credentials_took(
    took: int, tries: int, outcomes: list[str]
) -> None:
    async def credentials() -> Mapping[str, str]:
        case.later(took)
        return {}

    case = Case(answer(), credentials=credentials)
    await case.take()
    assert len(case.wire.requests) == tries
    assert [reply.envelope.value["data"]["outcome"] for reply in case.queue("orders")] == outcomes
    assert len(case.queue("payments")) == (not outcomes)


async def test_the_request_carries_its_key_and_the_credentials_of_the_moment() -> None:
    numbers = iter("12")

    async def fetched() -> Mapping[str, str]:
        return {"Authorization": f"Bearer {next(numbers)}", "Idempotency-Key": "another"}

    case = Case("TimeoutError", answer(), credentials=fetched, key_header="Idempotency-Key")
    call = await case.again()
    await case.take()
    assert [dict(request.headers) for request in case.wire.requests] == [
        {
            "Authorization": f"Bearer {item}",
            "Content-Type": "application/json",
            "Idempotency-Key": call.id.partition("/")[2],
        }
        for item in "12"
    ]
    assert "Bearer" not in call.envelope.text
    assert repr(case.wire.requests[0]) == "Request('POST')"
    assert (case.wire.requests[0].timeout, case.wire.requests[0].most_bytes) == (case.api.timeout, case.api.most_bytes)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "raised", [KeyError("secret"), SystemExit(3), GeneratorExit(), asyncio.CancelledError(), StopIteration()]
)
async def test_whatever_credentials_raise_the_call_comes_again(
    raised: BaseException, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> Mapping[str, str]:
        raise raised

    async def failing_later() -> Mapping[str, str]:
        await asyncio.sleep(0)
        raise raised

    case = Case(answer(200), credentials=failing_later if is_async else failing)
    await case.again()
    assert not case.wire.requests
    kind = RuntimeError if is_async and isinstance(raised, StopIteration) else type(raised)  # As coroutines turn it.
    assert f"could not be had: {kind.__name__}" in caplog.text
    assert "test_caller.py" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("given", [None, "token", {"Authorization": b"t"}, {1: "t"}])
async def test_credentials_that_are_no_headers_count_as_none(given: Any) -> None:
    case = Case(answer(200), credentials=lambda: given)
    await case.again()
    assert not case.wire.requests


async def test_a_cancellation_from_outside_ends_the_wait_for_credentials() -> None:
    waits, cancelled, tidy, ended = (asyncio.Event() for _ in range(4))

    async def slow() -> Mapping[str, str]:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
            await tidy.wait()
            ended.set()
        return {}

    case = Case(answer(200), credentials=slow)
    await case.made()
    task = asyncio.create_task(case.take())
    await waits.wait()
    task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    was = cancelled.is_set(), task.done()
    tidy.set()
    assert was == (True, False)  # The function has its time to tidy up.
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert not case.queue("payments")


async def test_a_call_without_a_body_says_nothing_of_its_type() -> None:
    case = Case(answer())
    call = await case.made()
    without = Envelope.read(call.envelope.text).with_data(Json("null"))
    case.call = replace(call, envelope=without.to_json())
    await case.take()
    (request,) = case.wire.requests
    assert request.body is None
    assert set(request.headers) == {"Idempotency-Key"}


async def test_an_answer_that_its_queue_does_not_take_is_cut() -> None:
    data = (await Case(answer(200, NO_ROOM.encode() * 2)).reply())["data"]
    assert (data["status"], data["body"], data["cut"]) == (200, None, True)


async def test_a_reply_passes_the_trace_on() -> None:
    case = Case(answer())
    call = await case.made()
    parent = f"00-{'1' * 32}-{'2' * 16}-01"
    case.call = replace(call, envelope=Json.of({**call.envelope.value, "traceparent": parent}))
    assert (await case.reply())["traceparent"] == parent


async def test_a_reply_has_the_stable_time_of_its_call() -> None:
    case = Case(answer())
    call = await case.made()
    stated = "2025-12-31T12:00:00.000Z"
    case.call = replace(call, envelope=Json.of({**call.envelope.value, "stabletime": stated}))
    case.later(60)
    reply = await case.reply()
    assert (reply["stabletime"], reply["time"] > stated) == (stated, True)


async def test_a_call_by_reference_is_fetched() -> None:
    case = Case(answer())
    call = await case.made()
    claims = ClaimChecks(AwaitedBlobs(MemoryBlobs()))
    case.call = replace(call, envelope=(await claims.left(Envelope.read(call.envelope.text))).to_json())
    case.caller = case.desk.calling(case.wire, claims=claims)
    assert (await case.reply())["data"]["status"] == 200


@pytest.mark.parametrize("answered", ["payments", "orders"])
async def test_a_queue_that_does_not_answer_gives_the_call_back(answered: str) -> None:
    case = Case(answer() if answered == "orders" else "TimeoutError")
    await case.made()
    case.desk.transport._outcome = lambda _: (False, False)
    with pytest.raises(TryAgainLater, match="may not have been sent; its call comes again"):
        await case.take()


async def test_a_given_up_call_goes_back_to_its_queue_until_its_time_is_over() -> None:
    case = Case()
    call = await case.made()
    await case.caller.settle(taken(call.envelope))
    (again,) = case.queue("payments")
    assert again.delay > 0
    case.later(LAST)
    await case.caller.settle(taken(again.envelope))
    (again,) = case.queue("payments")
    case.later(91)
    await case.caller.settle(taken(again.envelope))
    (reply,) = case.queue("orders")
    assert reply.envelope.value["data"]["outcome"] == "unknown"
    assert not case.wire.requests


async def test_nothing_is_done_about_a_call_before_the_application_has_begun() -> None:
    async def begin() -> None:
        raise TryAgainLater("It cannot begin yet.")

    case = Case(answer())
    call = taken((await case.made()).envelope)
    caller = case.desk.calling(case.wire, begin=begin)
    for job in (caller.take, caller.settle):
        with pytest.raises(TryAgainLater, match="cannot begin yet"):
            await job(call)
    assert not case.wire.requests


@pytest.mark.parametrize(("after", "delay"), [(0, 3601), (3000, 601), (3600, 1), (3601, 0), (9000, 0)])
async def test_a_call_to_an_api_that_is_not_known_is_answered_once_its_key_is_not_known_either(
    after: int, delay: int
) -> None:
    case = Case()
    call = await case.made()
    case.caller = case.desk.calling(case.wire, apis={})
    case.later(after)
    with pytest.raises(ConfigurationError, match="There is no Api 'payments'; known are: none"):
        await case.take()
    await case.caller.settle(taken(call.envelope))
    (reply,) = case.queue("orders")
    assert reply.envelope.value["data"] == {"tag": "a", "outcome": "unknown", "tried_before": True}
    assert reply.delay == delay


async def test_a_call_to_an_api_that_is_not_known_stays_while_no_queue_could_delay_its_answer_for_long_enough() -> None:
    case = Case(key_lifetime=timedelta(days=7))
    call = await case.made()
    case.caller = case.desk.calling(case.wire, apis={})
    with pytest.raises(ConfigurationError, match="There is no Api 'payments'"):
        await case.caller.settle(taken(call.envelope))
    assert not case.queue("orders")
    case.later(2)
    await case.caller.settle(taken(call.envelope))
    assert case.queue("orders")


async def test_no_outcome_is_unknown_while_a_process_that_knows_a_longer_lifetime_may_be_at_a_try() -> None:
    case = Case()
    await case.made()
    case.caller = case.desk.calling(case.wire, apis={"payments": replace(case.api, key_lifetime=timedelta(minutes=5))})
    case.later(3600)
    await case.again()
    assert not case.wire.requests
    case.later(1)
    assert (await case.reply())["data"]["outcome"] == "unknown"


async def test_a_call_whose_blob_is_gone_returns_to_its_queue_and_is_answered_in_the_end() -> None:
    case = Case()
    call = await case.made()
    blobs = ClaimChecks(AwaitedBlobs(MemoryBlobs()))
    referring = (await blobs.left(Envelope.read(call.envelope.text))).to_json()
    case.call = replace(call, envelope=referring)
    case.caller = case.desk.calling(case.wire, claims=ClaimChecks(AwaitedBlobs(MemoryBlobs())))
    with pytest.raises(MalformedMessage, match="does not exist"):
        await case.take()
    await case.caller.settle(taken(referring))
    (again,) = case.queue("payments")
    case.later(3601)
    await case.caller.settle(taken(again.envelope))
    (reply,) = case.queue("orders")
    assert reply.envelope.value["data"] == {"tag": "a", "outcome": "unknown", "tried_before": True}
    assert not case.wire.requests


@pytest.mark.parametrize(
    ("given", "data", "error", "says"),
    [
        ({"type": "order.bill"}, {}, InvalidMessage, "is no call"),
        ({"time": None}, {}, InvalidMessage, "is no call"),
        ({"call": None}, {}, InvalidMessage, "does not say what to call"),
        ({"call": "{"}, {}, InvalidMessage, "does not say what to call"),
        ({"call": "[" * 5_000}, {}, InvalidMessage, "does not say what to call"),
        ({}, {"method": 7}, InvalidMessage, "does not fit Call"),
        ({}, {"path": "//evil.example"}, InvalidMessage, "A path of payments"),
        ({}, {"replies": "nowhere"}, ConfigurationError, "'nowhere', which is no destination"),
    ],
    ids=str,
)
async def test_a_message_that_is_no_call_is_refused(given: Any, data: Any, error: type[Exception], says: str) -> None:
    case = Case()
    content = (await case.made()).envelope.value
    told = json.loads(content["call"])
    content = {**content, "call": json.dumps({**told, **data}), **given}
    wire = Json.of({name: value for name, value in content.items() if value is not None})
    with pytest.raises(error, match=says):
        await case.caller.take(taken(wire))
    assert not case.wire.requests
    assert not case.queue("orders")
