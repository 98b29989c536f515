"""Adapters: the envelopes that they make, and returned messages in their queues."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import azure.functions as func
import pytest

from exactlyonce import Envelope
from exactlyonce.errors import MalformedMessage
from exactlyonce.hosting.deliveries.triggers import Delivered, PlainJson, envelope_of
from exactlyonce.transports.service_bus.binding import Content
from exactlyonce.values.envelope import key_of, milliseconds
from exactlyonce.values.frozen_json import Json
from tests.samples import Deposit, deposit
from tests.unit.bus import delivered

ADAPTER = PlainJson(
    Deposit, source="shop", id=lambda body: str(body["order"]), time=lambda body: datetime.fromisoformat(body["at"])
)
BODY = {"order": 7, "account": "a", "at": "2026-01-01T01:00:00+01:00"}


def queued(body: Any) -> Delivered:
    return func.QueueMessage(id="q-1", body=json.dumps(body).encode())


def on_bus(envelope: Envelope) -> Delivered:
    return delivered(envelope)


def on_queue(envelope: Envelope) -> Delivered:
    return queued(envelope.to_json().value)


@pytest.mark.parametrize("carried", [on_queue, on_bus])
def test_a_returned_message_is_read_as_an_envelope(carried: Any) -> None:
    first = envelope_of(queued(BODY), ADAPTER)
    again = envelope_of(carried(first.once_more()), ADAPTER)
    assert (key_of(again), again.data, again.time, again.requeued) == ("shop/7", first.data, first.time, 1)


@pytest.mark.parametrize("stable", [False, True])
def test_an_adapter_promises_that_all_copies_have_the_time_of_the_body(stable: bool) -> None:
    envelope = envelope_of(queued(BODY), replace(ADAPTER, stable_time=stable))
    assert envelope.time is not None
    assert envelope.since == (milliseconds(envelope.time) if stable else None)
    assert envelope_of(on_queue(envelope.once_more()), ADAPTER).since == envelope.since


def test_an_adapter_never_gets_a_returned_message() -> None:
    def adapter(body: bytes) -> Envelope:
        return Envelope("shop", "7", "account.deposit", Json.of(json.loads(body)))

    again = adapter(b'{"account": "a"}').once_more()
    assert envelope_of(on_queue(again), adapter) == again


@pytest.mark.parametrize(
    "envelope",
    [deposit("m-1"), Envelope("shop", "7", "account.withdraw", Json.of(BODY))],
    ids=["another source", "another type"],
)
def test_a_body_marked_as_returned_does_not_pass_for_another_source_or_type(envelope: Envelope) -> None:
    with pytest.raises(MalformedMessage, match="own queue"):
        envelope_of(on_queue(envelope.once_more()), ADAPTER)


def test_an_envelope_in_the_queue_of_an_adapter_is_refused() -> None:
    every = replace(ADAPTER, id=lambda body: str(body["id"]))
    with pytest.raises(MalformedMessage, match="envelope already"):
        envelope_of(on_queue(deposit("m-1")), every)


@pytest.mark.parametrize("mark", [{"requeued": 1}, {"note": "requeued"}, {"requeued": {"specversion": "1.0"}}])
def test_a_foreign_body_may_have_a_property_named_requeued(mark: dict[str, Any]) -> None:
    assert key_of(envelope_of(queued({**BODY, **mark}), ADAPTER)) == "shop/7"


def test_a_body_that_is_not_json_goes_to_the_adapter() -> None:
    def adapter(body: bytes) -> Envelope:
        raise LookupError

    for foreign in (
        func.QueueMessage(id="q-1", body=b'\xff"requeued"'),
        func.QueueMessage(id="q-1", body=b'"requeued"' + b"[" * 100_000),
        delivered(Content(b"requeued?", "text/plain", {"cloudEvents:id": "1"})),
    ):
        with pytest.raises(MalformedMessage, match="The adapter raised LookupError"):
            envelope_of(foreign, adapter)


def test_a_message_has_the_time_in_its_body() -> None:
    assert envelope_of(queued(BODY), ADAPTER).time == datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (lambda body: datetime.fromisoformat(body["sent"]), r"time cannot be taken from it \(KeyError\)"),
        (lambda body: datetime(2026, 1, 1), "no time zone"),  # noqa: DTZ001
        (lambda body: body["at"], "is a str"),
        (lambda body: None, "is None"),
    ],
)
def test_a_body_without_a_time_is_refused(time: Any, words: str) -> None:
    with pytest.raises(MalformedMessage, match=words):
        envelope_of(queued(BODY), replace(ADAPTER, time=time))
