"""The transport over Azure Storage queues, with a scripted queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import SendReply
from exactlyonce.transports.storage_queue import StorageQueueTransport
from exactlyonce.values.frozen_json import Json
from tests.unit.scripted import Scripted

SECRET = "what only the receiver may read"


class FakeQueue(Scripted):
    def __init__(self, *errors: BaseException | None, creation: BaseException | None = None) -> None:
        super().__init__(*errors)
        self.creation = creation
        self.created = 0
        self.calls = 0
        self.sent: list[dict[str, Any]] = []

    async def send_message(self, text: str, **options: Any) -> None:
        self.calls += 1
        await self.answer()
        self.sent.append({"text": text, **options})

    async def create_queue(self) -> None:
        self.created += 1
        if self.creation is not None:
            raise self.creation


Sending = Callable[..., StorageQueueTransport]


@pytest.fixture
def to(monkeypatch: pytest.MonkeyPatch) -> Sending:
    """Makes a transport whose every queue is the given one."""

    def make(queue: FakeQueue, **settings: Any) -> StorageQueueTransport:
        transport = StorageQueueTransport("AccountName=a;AccountKey=b", **settings)
        monkeypatch.setattr(transport, "_queue", lambda _: queue)
        return transport

    return make


FAILURES = (AzureError, HttpResponseError, ClientAuthenticationError, ServiceRequestError, ServiceResponseError)


@pytest.mark.parametrize("error", [*(kind("?") for kind in FAILURES), asyncio.TimeoutError()], ids=repr)
async def test_every_failure_to_send_is_an_unknown_outcome(to: Sending, error: Exception) -> None:
    assert await to(FakeQueue(error)).send("receipts", (_output(),)) is UNKNOWN


async def test_a_failure_among_many_is_an_unknown_outcome_and_the_others_are_sent(to: Sending) -> None:
    queue = FakeQueue(None, AzureError("?"))
    assert await to(queue).send("receipts", tuple(_output() for _ in range(5))) is UNKNOWN
    assert len(queue.sent) == 4


async def test_a_failure_is_logged_by_class_and_queue_and_never_with_the_body(
    to: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="exactlyonce"):
        await to(FakeQueue(HttpResponseError(SECRET))).send("receipts", (_output(),))
    assert "receipts" in caplog.text
    assert "HttpResponseError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_send_that_takes_too_long_is_an_unknown_outcome(to: Sending) -> None:
    queue = FakeQueue()
    queue.hanging = True
    assert await to(queue, time_limit=0.01).send("receipts", (_output(),)) is UNKNOWN
    assert queue.under_way == 0


async def test_a_queue_that_hangs_is_not_waited_for_by_one_message_after_the_other(
    to: Sending,
) -> None:
    queue = FakeQueue()
    queue.hanging = True
    outputs = tuple(_output() for _ in range(100))
    assert await to(queue, time_limit=0.05, concurrency=1).send("receipts", outputs) is UNKNOWN
    assert queue.calls < len(outputs)


async def test_cancelling_a_send_is_not_an_outcome(to: Sending) -> None:
    queue = FakeQueue()
    queue.hanging = True
    send = asyncio.ensure_future(to(queue).send("receipts", (_output(),)))
    await queue.called.wait()
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    assert queue.under_way == 0


async def test_only_so_many_messages_are_on_their_way_at_once(to: Sending) -> None:
    queue = FakeQueue()
    transport = to(queue, concurrency=3)
    outputs = tuple(_output() for _ in range(10))
    replies = await asyncio.gather(transport.send("receipts", outputs), transport.send("receipts", outputs))
    assert set(replies) == {PUBLISHED}
    assert queue.most_under_way == 3


async def test_a_queue_that_hangs_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    queues = {"slow": FakeQueue(), "other": FakeQueue()}
    queues["slow"].hanging = True
    transport = StorageQueueTransport("AccountName=a;AccountKey=b", concurrency=1)
    monkeypatch.setattr(transport, "_queue", queues.__getitem__)
    stuck = asyncio.ensure_future(transport.send("slow", (_output(),)))
    await queues["slow"].called.wait()
    assert await transport.send("other", (_output(),)) is PUBLISHED
    stuck.cancel()


MISSING = ResourceNotFoundError("?")


@pytest.mark.parametrize(
    ("queue", "reply"),
    [
        (FakeQueue(MISSING), PUBLISHED),
        (FakeQueue(MISSING, creation=ResourceExistsError("?")), PUBLISHED),
        (FakeQueue(MISSING, MISSING), UNKNOWN),
    ],
    ids=["created", "just created by another sender", "missing again"],
)
async def test_a_missing_queue_is_created_and_the_message_sent_again(
    to: Sending, queue: FakeQueue, reply: SendReply
) -> None:
    assert await to(queue).send("receipts", (_output(),)) is reply
    assert (queue.created, len(queue.sent)) == (1, int(reply is PUBLISHED))


async def test_a_message_to_a_queue_just_created_is_the_same(to: Sending) -> None:
    there, missing = FakeQueue(), FakeQueue(ResourceNotFoundError("?"))
    for queue in (there, missing):
        await to(queue, delivery_limit=timedelta(days=2)).send("receipts", (_output(delay=60),))
    assert missing.sent == there.sent


@pytest.mark.parametrize(
    ("delay", "limit", "asked"),
    [
        (0.0, timedelta(days=7), 0),
        (0.0, timedelta(seconds=0.5), 0),
        (59.2, timedelta(days=7), 60),
        (8 * 24 * 3600.0, timedelta(days=7), 7 * 24 * 3600 - 1),
        (8 * 24 * 3600.0, timedelta(days=14), 7 * 24 * 3600),
    ],
    ids=["none", "a life that is rounded up", "rounded up", "beyond its life", "beyond the service's limit"],
)
async def test_a_delay_is_a_time_of_invisibility(to: Sending, delay: float, limit: timedelta, asked: int) -> None:
    queue = FakeQueue()
    await to(queue, delivery_limit=limit).send("receipts", (_output(delay),))
    assert queue.sent[0]["visibility_timeout"] == asked
    assert queue.sent[0]["time_to_live"] == ceil(limit.total_seconds())


async def test_a_client_serves_a_queue_for_good() -> None:
    transport = StorageQueueTransport("AccountName=a;AccountKey=b;QueueEndpoint=http://127.0.0.1:1/a")
    assert transport._queue("one") is transport._queue("one")
    assert transport._queue("one") is not transport._queue("two")
    await transport.close()


async def test_an_address_without_a_credential_gets_one_that_is_closed_with_it() -> None:
    transport = StorageQueueTransport("https://account.queue.core.windows.net")
    transport._queue("one")
    assert transport._own_credential is not None
    await transport.close()
    assert transport._own_credential is None


def _output(delay: float = 0.0) -> Output:
    return Output("o-1", "receipts", Json.of({"data": SECRET}), delay)
