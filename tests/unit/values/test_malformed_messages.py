"""Every bad input is a MalformedMessage that says what to do and quotes nothing of the body."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope
from exactlyonce.errors import MalformedMessage
from exactlyonce.values.envelope import MAX_ATTRIBUTE_LENGTH, MAX_MESSAGE_BYTES, MAX_SOURCE_LENGTH

SECRET = "sEcReT-4711"
REQUIRED = {"specversion": "1.0", "id": "m-1", "source": "web", "type": "t", "data": {"pin": SECRET}}


def wire(**attributes: Any) -> str:
    return json.dumps({**REQUIRED, **attributes})


def without(name: str) -> str:
    return json.dumps({key: value for key, value in REQUIRED.items() if key != name})


BAD: dict[str, bytes | str] = {
    "empty": b"",
    "not JSON": SECRET,
    "cut off": wire()[:-5],
    "a string": json.dumps(SECRET),
    "a number": "7",
    "null": "null",
    "a list": json.dumps([REQUIRED]),
    "an empty object": "{}",
    "plain JSON": json.dumps({"pin": SECRET}),
    "no id": without("id"),
    "no source": without("source"),
    "no type": without("type"),
    "no specversion": without("specversion"),
    "specversion 0.3": wire(specversion="0.3"),
    "specversion as a number": wire(specversion=1.0),
    "empty id": wire(id=""),
    "null id": wire(id=None),
    "id as a number": wire(id=7),
    "id as a list": wire(id=[SECRET]),
    "source as an object": wire(source={"a": SECRET}),
    "type as a boolean": wire(type=True),
    "subject as a number": wire(subject=5),
    "long id": wire(id="x" * (MAX_ATTRIBUTE_LENGTH + 1)),
    "long source": wire(source="x" * (MAX_SOURCE_LENGTH + 1)),
    "long type": wire(type="x" * (MAX_ATTRIBUTE_LENGTH + 1)),
    "too large": wire(data="x" * MAX_MESSAGE_BYTES),
    "bad time": wire(time=SECRET),
    "time as a number": wire(time=5),
    "time without a zone": wire(time="2026-01-01T00:00:00"),
    "no such day": wire(time="2026-02-30T00:00:00Z"),
    "extension as an object": wire(ext={"pin": SECRET}),
    "extension as a fraction": wire(ext=1.5),
    "extension in capitals": wire(Ext="x"),
    "binary data": json.dumps({**{key: REQUIRED[key] for key in REQUIRED if key != "data"}, "data_base64": "AAEC"}),
    "both kinds of data": wire(data_base64="AAEC"),
    "NaN": wire(data={"pin": float("nan")}),
    "infinity": wire(data=float("inf")),
    "a number beyond every double": wire(data=0).replace('"data": 0', '"data": 1e999'),
    "a number of 5000 digits": wire(data=0).replace('"data": 0', f'"data": {"9" * 5000}'),
    "deep nesting": wire(data=0).replace('"data": 0', f'"data": {"[" * 100_000}{"]" * 100_000}'),
    "invalid UTF-8": wire().encode() + b"\xff",
    "UTF-16": wire().encode("utf-16"),
    "half a character in the id": wire(id="\ud800"),
    "half a character in the data": wire(data={"pin": "\ud800"}),
    "half a character in an extension": wire(ext="\ud800"),
    "a line break in the id": wire(id="m\r\nERROR"),
    "an escape code in the source": wire(source="\x1b[2J"),
    "a control character of ISO 8859 in an extension": wire(ext="\x9f"),
    "a long name of an extension": wire(**{"e" * 5_000: {}}),
    "half a character in text": wire() + "\ud800",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_message_is_refused_with_advice_and_without_its_body(name: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        Envelope.read(BAD[name])
    said = str(caught.value)
    assert said.endswith(".")
    assert (name == "a list") is ("batch of CloudEvents" in said)
    assert len(said) < 600
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    read_or_refused(body)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("1.0"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
OPTIONAL = ("time", "subject", "datacontenttype", "data_base64", "dataschema", "ext", "Ext")
NAMES = st.sampled_from(["id", "source", "type", "specversion", *OPTIONAL])


@given(st.dictionaries(NAMES, ANYTHING, max_size=4), st.booleans())
def test_any_object_is_read_or_refused(attributes: dict[str, Any], complete: bool) -> None:
    read_or_refused(json.dumps({**(REQUIRED if complete else {}), **attributes}))


@given(st.data())
def test_a_good_message_with_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(wire(time="2026-01-01T00:00:00Z").encode())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_or_refused(bytes(body))


def read_or_refused(body: bytes | str) -> None:
    try:
        envelope = Envelope.read(body)
    except MalformedMessage:
        return
    assert Envelope.read(envelope.to_json().text) == envelope
