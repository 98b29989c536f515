"""The envelope on the wire: what it looks like, who else reads it, and that whatever arrives is read or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from azure.core.messaging import CloudEvent as AzureEvent
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope
from exactlyonce.errors import MalformedMessage
from exactlyonce.transports.service_bus.binding import Content, read
from exactlyonce.values.envelope import MAX_ATTRIBUTE_LENGTH, MAX_MESSAGE_BYTES
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone.utc)
FULL = Envelope(
    "web/é",
    "m%1",
    "game.shot",
    Json.of({"b": [1, None, True], "a": {"deep": 0.5}, "text": "ü\u0000"}),
    AT,
    "game-7",
    (("count", 3), ("first", True), ("traceparent", "00-abc")),
)
REQUIRED = {"specversion": "1.0", "id": "m-1", "source": "web", "type": "t", "data": {}}
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc"])
"""CloudEvents forbids control characters in attributes."""
TEXT = st.text(CHARACTERS, min_size=1, max_size=20).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ENVELOPES = st.builds(
    Envelope,
    source=TEXT,
    id=TEXT,
    type=TEXT,
    data=JSON.map(Json.of),
    time=st.none() | st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(timezone.utc)),  # noqa: DTZ001
    subject=st.none() | TEXT,
    extensions=st.dictionaries(
        st.from_regex(r"ext[a-z0-9]{1,10}", fullmatch=True),
        st.text(CHARACTERS) | st.integers() | st.booleans(),
        max_size=3,
    ).map(lambda found: tuple(sorted(found.items()))),
)


def wire(**attributes: Any) -> bytes:
    return json.dumps({**REQUIRED, **attributes}).encode()


def test_the_json_on_the_wire_is_pinned() -> None:
    assert FULL.to_json().value == {
        "specversion": "1.0",
        "id": "m%1",
        "source": "web/é",
        "type": "game.shot",
        "datacontenttype": "application/json",
        "time": "2026-01-02T03:04:05.000678Z",
        "subject": "game-7",
        "count": 3,
        "first": True,
        "traceparent": "00-abc",
        "data": {"b": [1, None, True], "a": {"deep": 0.5}, "text": "ü\u0000"},
    }


@given(ENVELOPES)
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    text = envelope.to_json().text
    assert Envelope.read(text) == Envelope.read(text.encode()) == envelope
    assert hash(Envelope.read(text)) == hash(envelope)
    assert envelope.to_json().text == text
    assert (envelope.time is None) is ("time" not in envelope.to_json().value)


def test_azure_core_reads_it() -> None:
    event: AzureEvent[Any] = AzureEvent.from_json(FULL.to_json().text)
    assert (event.source, event.id, event.type, event.subject, event.time) == (
        "web/é",
        "m%1",
        "game.shot",
        "game-7",
        AT,
    )
    assert event.data == FULL.data.value
    assert event.extensions == dict(FULL.extensions)


def test_the_cloudevents_package_reads_it() -> None:
    event = JSONFormat().read(CloudEvent, FULL.to_json().text)
    assert (event.get_source(), event.get_id(), event.get_type(), event.get_time()) == ("web/é", "m%1", "game.shot", AT)
    assert event.get_data() == FULL.data.value


def test_an_envelope_of_azure_core_is_read() -> None:
    event: AzureEvent[dict[str, int]] = AzureEvent(
        "web", "t", data={"a": 1}, id="m-1", time=AT, subject="s", extensions={"ext": "x"}
    )
    written = {
        "specversion": event.specversion,
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": "2026-01-02T03:04:05.000678Z",
        "subject": event.subject,
        "data": event.data,
        **(event.extensions or {}),
    }
    body = json.dumps(written)
    assert AzureEvent.from_json(body).id == "m-1"
    assert Envelope.read(body) == Envelope("web", "m-1", "t", Json.of({"a": 1}), AT, "s", (("ext", "x"),))


def test_an_envelope_of_the_cloudevents_package_is_read() -> None:
    attributes = {"id": "m-1", "source": "web", "type": "t", "specversion": "1.0", "time": AT, "ext": 5}
    written = JSONFormat().write(CloudEvent(attributes, {"a": 1}))
    assert Envelope.read(written) == Envelope("web", "m-1", "t", Json.of({"a": 1}), AT, None, (("ext", 5),))


@pytest.mark.parametrize("length", [1, MAX_ATTRIBUTE_LENGTH])
@pytest.mark.parametrize("name", ["id", "source", "type"])
def test_attributes_up_to_the_limit_are_read(name: str, length: int) -> None:
    assert getattr(Envelope.read(wire(**{name: "é" * length})), name) == "é" * length


def test_a_message_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    body = wire(data="")
    body = body.replace(b'"data": ""', b'"data": "' + b"x" * (MAX_MESSAGE_BYTES - len(body)) + b'"')
    assert len(body) == MAX_MESSAGE_BYTES
    assert Envelope.read(body).id == "m-1"
    with pytest.raises(MalformedMessage, match="blob"):
        Envelope.read(body + b" ")


def test_a_message_that_is_sent_once_more_keeps_its_identity_and_counts() -> None:
    first = replace(FULL, extensions=(("partitionkey", "b"),))
    again = first.once_more(unexplained=1)
    assert replace(again, extensions=first.extensions) == first
    assert (first.requeued, first.unexplained) == (0, 0)
    assert (again.requeued, again.unexplained) == (1, 1)
    assert Envelope.read(again.to_json().text) == again
    by_hand = again.once_more()
    assert by_hand.extensions == (("partitionkey", "b"), ("requeued", 2))


@pytest.mark.parametrize("given", ["3", True, -1, 2_000_000])
def test_a_count_that_a_stranger_made_up_is_none(given: Any) -> None:
    assert replace(FULL, extensions=(("requeued", given),)).once_more().requeued == 1


OPTIONAL = ("subject", "dataschema", "datacontenttype", "time", "traceparent", "ext", "data", "data_base64")


@given(st.dictionaries(st.sampled_from(OPTIONAL), st.none()))
def test_a_null_attribute_is_as_if_it_were_absent(nulls: dict[str, None]) -> None:
    """As System.Text.Json and Jackson write what is not set."""
    body = {"specversion": "1.0", "id": "m-1", "source": "web", "type": "t"}
    assert Envelope.read(json.dumps({**body, **nulls})) == Envelope.read(json.dumps(body))


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_a_required_attribute_that_is_null_is_missing(name: str) -> None:
    with pytest.raises(MalformedMessage, match=f"it has no {name}"):
        Envelope.read(wire(**{name: None}))


@given(
    st.sampled_from(["absent", None, "x", 5, -(2**31), True, False, ""]),
    st.sampled_from(["structured", "binary", "binary in lower case", "binary with underscores"]),
)
def test_an_extension_is_read_alike_in_every_mode(value: Any, mode: str) -> None:
    attributes = {**REQUIRED, "ext": value}
    if value == "absent":
        del attributes["ext"]
    data = json.dumps(attributes.pop("data")).encode()
    prefix = {"binary in lower case": "cloudevents:", "binary with underscores": "cloudEvents_"}.get(
        mode, "cloudEvents:"
    )
    properties = {f"{prefix}{name}": each for name, each in attributes.items()}
    content = Content(data, "application/json; charset=utf-8", properties)
    body = wire(**attributes).decode() if mode == "structured" else read(content)
    expected = () if value in ("absent", None) else (("ext", value),)
    assert Envelope.read(body).extensions == expected


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-12-31T23:59:60Z", datetime(2027, 1, 1, tzinfo=timezone.utc)),
        ("2026-12-31T23:59:60.5Z", datetime(2027, 1, 1, microsecond=500_000, tzinfo=timezone.utc)),
        ("2026-12-31T15:59:60-08:00", datetime(2027, 1, 1, tzinfo=timezone.utc)),
        ("2026-01-02t03:04:05.123456789z", datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=timezone.utc)),
        ("2026-01-02T03:04:05.1-00:00", datetime(2026, 1, 2, 3, 4, 5, 100_000, tzinfo=timezone.utc)),
        ("2026-01-02T05:04:05+02:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        ("2026-01-02 03:04:05+05:30", datetime(2026, 1, 1, 21, 34, 5, tzinfo=timezone.utc)),
    ],
)
def test_every_time_of_rfc_3339_is_read(written: str, moment: datetime) -> None:
    read = Envelope.read(wire(time=written, dataschema="https://example.org/shot"))
    assert read.time == moment
    assert dict(read.extensions) == {"dataschema": "https://example.org/shot"}


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", "application/octet-stream", "text/jsonx"])
def test_a_text_that_is_declared_to_be_something_else_than_json_is_refused(media_type: str) -> None:
    for declared in ("application/json", "text/json", "Application/JSON; charset=utf-8", "application/vnd.a.b+json"):
        assert Envelope.read(wire(datacontenttype=declared, data="a")).data == Json('"a"')
    with pytest.raises(MalformedMessage, match="handlers take JSON data only"):
        Envelope.read(wire(datacontenttype=media_type, data="<a/>"))


ANY = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\n\x1b\x85\ud800 日🙂"), max_size=8).flatmap(
    lambda text: st.sampled_from([1, 100, 400]).map(lambda times: text * times)
)


@given(id=ANY, source=ANY, type=ANY, subject=ANY, ext=ANY)
def test_an_envelope_that_was_made_is_readable(id: str, source: str, type: str, subject: str, ext: str) -> None:
    """Whoever makes it: what no receiver could read cannot be made."""
    try:
        envelope = Envelope(source, id, type, Json("{}"), subject=subject, extensions=(("ext", ext),))
    except MalformedMessage:
        return
    if envelope.subject:
        assert Envelope.read(envelope.to_json().text) == envelope


def test_a_time_without_a_zone_is_refused_at_every_door() -> None:
    with pytest.raises(MalformedMessage, match="has no time zone"):
        Envelope("web", "m-1", "t", Json("{}"), AT.replace(tzinfo=None))


@given(JSON)
def test_the_content_does_not_depend_on_the_order_of_properties(data: Any) -> None:
    envelope = Envelope("web", "m-1", "t", Json.of({"a": data, "b": 1}))
    again = Envelope("web", "m-1", "t", Json.of({"b": 1, "a": data}), AT, extensions=(("traceparent", "00-abc"),))
    assert envelope.content == again.content
    assert len(envelope.content) == 8
    assert envelope.content != replace(envelope, type="u").content
    assert envelope.content != replace(envelope, data=Json.of({"a": data, "b": 2})).content


@pytest.mark.parametrize("name", ["\n", "X" * 5_000, "\x1b[2J"], ids=["line end", "long", "escape"])
def test_a_name_that_a_stranger_chose_is_told_in_one_short_line(name: str) -> None:
    body = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", name: 1}
    with pytest.raises(MalformedMessage, match="lower-case letters and digits only") as caught:
        Envelope.read(json.dumps(body))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


DATES = ("secret", "2026", "20260101T000000Z", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "٢٠٢٦-01-01T00:00:00Z")
LEAPS = ("2026-01-01T12:34:60Z", "2026-01-01T00:00:61Z", "9999-12-31T23:59:60Z")


@pytest.mark.parametrize("time", [*DATES, *LEAPS, 5, []], ids=repr)
def test_a_time_that_is_none_is_named_without_its_value(time: Any) -> None:
    body = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "time": time}
    with pytest.raises(MalformedMessage, match="time is no time of RFC 3339 with a time zone, such as") as caught:
        Envelope.read(json.dumps(body))
    assert "secret" not in str(caught.value)
