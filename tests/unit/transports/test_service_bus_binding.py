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


def test_the_second_prefix_of_the_binding_is_read_too() -> None:
    content = written(ENVELOPE.to_json())
    properties = {name.replace(":", "_"): value for name, value in content.properties.items()}
    assert Envelope.read(read(Content(content.body, content.type, properties))) == ENVELOPE


@pytest.mark.parametrize("type", ["application/cloudevents+json", "Application/CloudEvents+json; charset=UTF-8"])
def test_structured_mode_is_read(type: str) -> None:
    assert Envelope.read(read(Content(ENVELOPE.to_json().text.encode(), type))) == ENVELOPE


def test_an_envelope_that_is_not_called_one_is_read_as_what_it_is() -> None:
    assert Envelope.read(read(Content(ENVELOPE.to_json().text.encode(), "text/plain", {"color": "red"}))) == ENVELOPE


def test_a_property_without_a_value_is_no_attribute() -> None:
    content = written(ENVELOPE.to_json())
    properties = {**content.properties, "cloudEvents:subject": None}
    assert json.loads(read(Content(content.body, content.type, properties))) == ENVELOPE.to_json().value


def test_properties_that_are_no_attributes_are_nobodys() -> None:
    content = written(ENVELOPE.to_json())
    assert Envelope.read(read(Content(content.body, content.type, {**content.properties, "color": "red"}))) == ENVELOPE


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), DATA)
def test_whatever_is_written_is_read_again(attributes: dict[str, Any], data: Any) -> None:
    envelope = Json.of({**attributes, "data": data})
    assert json.loads(read(written(envelope))) == envelope.value


def test_what_the_data_is_said_to_be_is_read_again() -> None:
    assert json.loads(read(written(ENVELOPE.to_json()))) == ENVELOPE.to_json().value


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
        read(Content(body, "application/xml", written(ENVELOPE.to_json()).properties))
    assert caught.value.__cause__ is None


def test_a_body_beyond_the_limit_is_left_to_who_refuses_it() -> None:
    body = b"1" * (MAX_MESSAGE_BYTES + 1)
    content = Content(body, "application/json", written(ENVELOPE.to_json()).properties)
    with pytest.raises(MalformedMessage, match="at most"):
        Envelope.read(read(content))


def test_an_event_without_data_has_none() -> None:
    content = Content(b"", None, written(ENVELOPE.to_json()).properties)
    assert Envelope.read(read(content)).data == Json("null")


def test_structured_mode_may_have_the_attributes_as_properties_too() -> None:
    properties = written(ENVELOPE.to_json()).properties
    assert (
        Envelope.read(read(Content(ENVELOPE.to_json().text.encode(), "application/cloudevents+json", properties)))
        == ENVELOPE
    )


def test_a_type_that_is_another_messages_does_not_matter() -> None:
    content = written(ENVELOPE.to_json())
    assert Envelope.read(read(Content(content.body, "application/cloudevents+json", content.properties))) == ENVELOPE


@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_", "cloudevents:", "CloudEvents_"])
def test_attributes_are_read_under_either_prefix_in_any_case(prefix: str) -> None:
    properties = {
        f"{prefix}{name.partition(':')[2]}": value for name, value in written(ENVELOPE.to_json()).properties.items()
    }
    assert Envelope.read(read(Content(ENVELOPE.data.text.encode(), "application/json", properties))) == ENVELOPE


def test_values_of_amqp_are_read_as_the_json_format_writes_them() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    properties = {**written(ENVELOPE.to_json()).properties, "cloudEvents:due": at, "cloudEvents:seal": b"\x00\xff"}
    for time in (at, at.replace(tzinfo=None), "2026-01-01T00:00:00Z"):
        envelope = Envelope.read(read(Content(b"{}", None, {**properties, "cloudEvents:time": time})))
        assert envelope.time == at
        assert dict(envelope.extensions) == {"paid": True, "place": 7, "due": "2026-01-01T00:00:00Z", "seal": "AP8="}


def test_an_attribute_with_two_values_is_refused() -> None:
    properties = written(ENVELOPE.to_json()).properties
    assert read(Content(b"{}", None, {**properties, "cloudEvents_id": "m-1"}))
    with pytest.raises(MalformedMessage, match="two values for one attribute"):
        read(Content(b"{}", None, {**properties, "cloudevents:id": "m-2"}))
