"""The envelope on the wire: what it looks like, who else reads it, and that whatever arrives is read or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from azure.core.messaging import CloudEvent as AzureEvent
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce import Envelope, MalformedMessage
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
TEXT = st.text(CHARACTERS, min_size=1, max_size=20)
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
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back_the_same(envelope: Envelope) -> None:
    text = envelope.to_json().text
    assert Envelope.read(text) == Envelope.read(text.encode()) == envelope
    assert hash(Envelope.read(text)) == hash(envelope)


def test_writing_is_pure() -> None:
    bare = Envelope("web", "m-1", "t", Json.of(1))
    assert bare.to_json() == bare.to_json()
    assert "time" not in bare.to_json().value


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


def test_it_reads_what_azure_core_writes() -> None:
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


def test_it_reads_what_the_cloudevents_package_writes() -> None:
    attributes = {"id": "m-1", "source": "web", "type": "t", "specversion": "1.0", "time": AT, "ext": 5}
    written = JSONFormat().write(CloudEvent(attributes, {"a": 1}))
    assert Envelope.read(written) == Envelope("web", "m-1", "t", Json.of({"a": 1}), AT, None, (("ext", 5),))


def test_a_time_with_another_offset_is_the_same_moment() -> None:
    read = Envelope.read(wire(time="2026-01-02T05:04:05+02:00"))
    assert read.time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert read.time.utcoffset() == timedelta(hours=2)


def test_a_schema_address_is_kept() -> None:
    read = Envelope.read(wire(dataschema="https://example.org/shot"))
    assert read.to_json().value["dataschema"] == "https://example.org/shot"


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
