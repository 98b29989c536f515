"""Envelopes as AMQP messages, by CloudEvents' binding: written in binary mode, read in both."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope
from exactlyonce.errors import MalformedMessage
from exactlyonce.transports.service_bus.binding import Content, read, written
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES
from exactlyonce.values.frozen_json import Json

ENVELOPE = Envelope(
    "web", "m-1", "account.deposit", Json.of({"note": "ÄÖÜ 🎯"}), extensions=(("paid", True), ("place", 7))
)
VALUES = st.text(max_size=20) | st.booleans() | st.integers(-(2**40), 2**40)
DATA = st.none() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20).filter(
    lambda name: name not in ("data", "datacontenttype")
)


def test_every_attribute_is_a_property_and_the_data_is_the_body() -> None:
    content = written(ENVELOPE.to_json())
    assert Json(content.body.decode()) == ENVELOPE.data
    assert content.type == "application/json"
    assert content.properties == {
        "cloudEvents:specversion": "1.0",
        "cloudEvents:id": "m-1",
        "cloudEvents:source": "web",
        "cloudEvents:type": "account.deposit",
        "cloudEvents:paid": True,
        "cloudEvents:place": 7,
    }


BINARY = written(ENVELOPE.to_json())
WHOLE = ENVELOPE.to_json().text.encode()
STRUCTURED = "application/cloudevents+json"


def prefixed(prefix: str) -> Content:
    properties = {f"{prefix}{name.partition(':')[2]}": value for name, value in BINARY.properties.items()}
    return Content(BINARY.body, BINARY.type, properties)


@pytest.mark.parametrize(
    "content",
    [
        *map(prefixed, ("cloudEvents:", "cloudEvents_", "cloudevents:", "CloudEvents_")),
        Content(BINARY.body, BINARY.type, {**BINARY.properties, "cloudEvents:subject": None, "color": "red"}),
        Content(BINARY.body, STRUCTURED, BINARY.properties),
        Content(WHOLE, STRUCTURED),
        Content(WHOLE, "Application/CloudEvents+json; charset=UTF-8"),
        Content(WHOLE, STRUCTURED, BINARY.properties),
        Content(WHOLE, "text/plain", {"color": "red"}),
    ],
    ids=[
        *("a prefix", "the second prefix", "a prefix in lower case", "the second prefix in another case"),
        *("a null attribute, and a property of somebody else", "the type of another message"),
        *("structured", "structured, in another case", "structured, with attributes", "structured, by another name"),
    ],
)
def test_an_envelope_is_read_in_both_modes(content: Content) -> None:
    assert Envelope.read(read(content)) == ENVELOPE
    if content.type == BINARY.type:
        assert json.loads(read(content)) == ENVELOPE.to_json().value


def test_an_event_without_data_has_none() -> None:
    assert Envelope.read(read(Content(b"", None, BINARY.properties))).data == Json("null")


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), DATA)
def test_written_content_is_read_again(attributes: dict[str, Any], data: Any) -> None:
    envelope = Json.of({**attributes, "data": data})
    assert json.loads(read(written(envelope))) == envelope.value


@pytest.mark.parametrize(
    "value", [None, 0.5, 2**31, -(2**31) - 1, [1], {"a": 1}, "x" * 20_000], ids=lambda value: str(value)[:9]
)
def test_an_attribute_that_cannot_be_a_property_makes_it_structured(value: Any) -> None:
    envelope = Json.of({**ENVELOPE.to_json().value, "odd": value})
    content = written(envelope)
    assert (content.type, content.properties) == ("application/cloudevents+json", {})
    assert read(content) == content.body == envelope.text.encode()


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b"NaN", b"[" * 100_000], ids=["cut off", "no text", "no number", "endless"]
)
def test_data_that_is_no_json_is_refused_without_being_quoted(body: bytes) -> None:
    with pytest.raises(MalformedMessage, match="application/xml") as caught:
        read(Content(body, "application/xml", BINARY.properties))
    assert caught.value.__cause__ is None


def test_a_body_beyond_the_limit_is_left_to_who_refuses_it() -> None:
    body = b"1" * (MAX_MESSAGE_BYTES + 1)
    content = Content(body, "application/json", BINARY.properties)
    with pytest.raises(MalformedMessage, match="at most"):
        Envelope.read(read(content))


def test_values_of_amqp_are_read_as_the_json_format_writes_them() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    properties = {**BINARY.properties, "cloudEvents:due": at, "cloudEvents:seal": b"\x00\xff"}
    for time in (at, at.replace(tzinfo=None), "2026-01-01T00:00:00Z"):
        envelope = Envelope.read(read(Content(b"{}", None, {**properties, "cloudEvents:time": time})))
        assert envelope.time == at
        assert dict(envelope.extensions) == {"paid": True, "place": 7, "due": "2026-01-01T00:00:00Z", "seal": "AP8="}


def test_an_attribute_with_two_values_is_refused() -> None:
    properties = BINARY.properties
    assert read(Content(b"{}", None, {**properties, "cloudEvents_id": "m-1"}))
    with pytest.raises(MalformedMessage, match="two values for one attribute"):
        read(Content(b"{}", None, {**properties, "cloudevents:id": "m-2"}))
