"""Thousands of malformed messages, requests and documents: a clear answer each, nothing lost, and no body in logs or spans."""

from __future__ import annotations

import base64
import json
import logging
import os
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import partial
from random import Random

import pytest
from azure.functions.queue import QueueMessage
from pydantic import TypeAdapter

from exactlyonce import Envelope, ExactlyOnceError, StoredDataError
from exactlyonce.errors import MalformedMessage, NewerSchema
from exactlyonce.hosting.deliveries.poison import UNREADABLE
from exactlyonce.hosting.deliveries.triggers import envelope_of
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.port import entity_named
from exactlyonce.values.envelope import key_of
from exactlyonce.values.frozen_json import Json
from tests.answering import Add
from tests.malformed import SECRET, damaged, malformed
from tests.samples import accounts, deposit
from tests.unit.hosting.desks import Desk
from tests.unit.hosting.settlers import Place as Settling
from tests.unit.hosting.settlers import maintenance, parked, receiver
from tests.unit.records.test_damaged_records import DOCUMENTS

COUNT = int(os.environ.get("EXACTLYONCE_BAD_INPUTS", "400"))


@dataclass
class Body:
    """Of a request."""

    data: Add


BODY = TypeAdapter(Body)


def add(body: bytes) -> Add:
    """The message in a request."""
    return BODY.validate_json(body).data


class Bank(Settling):
    """A world with a process that receives messages, and settles those that it could not process."""

    def __init__(self) -> None:
        super().__init__()
        self.entity = accounts()
        self.receiver = receiver(self, maintenance(self), self.failures, self.settler)

    async def kept(self) -> dict[str, Json]:
        """The data of all parked messages, by their keys."""
        found = [item async for page in MemoryListing(self.store).parked() for item in page]
        messages = [parked(self, entity_named(item.entity), item.message) for item in found]
        return {
            message.message: Envelope.read(message.envelope.text, limit=10**7).data
            for message in messages
            if message is not None
        }

    async def take(self, number: int, body: bytes) -> str:
        """Process a queue message, and settle it if that fails; the outcome, and what the failure was."""
        message = QueueMessage(id=f"q-{number}", body=body, dequeue_count=1)  # type: ignore[no-untyped-call]
        try:
            await self.receiver.take(message, self.entity, None)
        except ExactlyOnceError as error:
            assert_clear(error, f"q-{number}" if isinstance(error, MalformedMessage) else "essage ")
            outcome = await self.settler.settle(self.entity, message, "accounts")
            return f"{type(error).__name__}, {outcome}"
        return "processed"


def content_of(number: int, body: bytes) -> Envelope:
    """What is to be kept of a queue message: its envelope, or one around its body."""
    message = QueueMessage(id=f"q-{number}", body=body)  # type: ignore[no-untyped-call]
    try:
        return envelope_of(message)
    except MalformedMessage:
        data = Json.of({"body_base64": base64.b64encode(body).decode()})
        return Envelope(UNREADABLE, f"q-{number}", UNREADABLE, data)


def assert_clear(error: ExactlyOnceError, subject: str) -> None:
    """An error names its subject, and neither it nor its causes quote a body."""
    logged = "".join(traceback.format_exception(error))
    assert SECRET not in logged
    assert subject in str(error), str(error)
    assert len(str(error)) < 4_000


def assert_nothing_leaked(caplog: pytest.LogCaptureFixture) -> None:
    assert SECRET not in caplog.text
    assert [record.getMessage() for record in caplog.records if SECRET in str(vars(record))] == []


async def test_each_malformed_queue_message_is_processed_or_kept_with_its_body(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    bank, outcomes, given = Bank(), Counter[str](), dict[str, Json]()
    for number in range(COUNT):
        envelope = json.loads(deposit(f"m-{number}", f"a-{number % 50}", amount=1, padding=SECRET).to_json().text)
        body = malformed(envelope, number)
        outcomes[outcome := await bank.take(number, body)] += 1
        if outcome.endswith("parked"):
            kept = content_of(number, body)
            given[key_of(kept)] = kept.data
    assert_nothing_leaked(caplog)
    assert {item.rpartition(", ")[2] for item in outcomes} == {"parked", "processed"}
    assert len(outcomes) > 4, outcomes
    assert await bank.kept() == given


async def test_each_malformed_request_is_answered_or_refused_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk, statuses, total = Desk(), Counter[int](), 0
    for number in range(COUNT):
        body = malformed({"data": {"counter": "c", "amount": 1, "note": SECRET}}, number)
        message = partial(add, body)
        response = await desk.post(body, f"k-{number}", message=message)
        again = await desk.post(body, f"k-{number}", message=message)
        assert (again.status_code, again.get_body()) == (response.status_code, response.get_body())
        assert SECRET not in response.get_body().decode()
        statuses[response.status_code] += 1
        if response.status_code == 200:
            total += message().amount * (message().counter == "c")
        else:
            problem = json.loads(response.get_body())
            assert problem["title"]
            assert problem["detail"]
    assert_nothing_leaked(caplog)
    assert set(statuses) == {200, 400, 500}  # The handler raises where a key is nothing that a header may hold.
    assert await desk.total == total


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_damaged_document_is_read_or_refused_without_its_content(name: str) -> None:
    refused = sum(is_refused(name, seed) for seed in range(COUNT // len(DOCUMENTS)))
    assert refused > COUNT // len(DOCUMENTS) // 2


def is_refused(name: str, seed: int) -> bool:
    """Whether a document with some damage is refused, which the error must say well."""
    read, whole = DOCUMENTS[name]
    try:
        read({**damaged(whole, Random(seed)), **{name: whole[name] for name in ("id",) if name in whole}})
    except StoredDataError as error:
        assert_clear(error, "Upgrade" if isinstance(error, NewerSchema) else "Nothing was changed")
        return True
    return False
