"""What a reply carries of an answer: decoded by its charset, as JSON or text, and nothing lost in silence."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope, Reply
from exactlyonce.handling.messages import decode
from exactlyonce.hosting.caller import content_of
from exactlyonce.transports.http import Received
from exactlyonce.values.frozen_json import MAX_NESTING, Json


@pytest.mark.parametrize(
    ("body", "kind", "read"),
    [
        (b'{"a":[1.5]}', "application/json", {"a": [1.5]}),
        (b'{"a":1}', "Application/JSON;charset=utf-8", {"a": 1}),
        (b'{"a":1}', "text/plain", '{"a":1}'),
        (b"{", "application/json", "{"),
        (b"1e999", "application/json", "1e999"),
        (b"NaN", "application/json", "NaN"),
        (b'"\\ud800"', "application/json", '"\\ud800"'),
        (b"[" * 5_000, "application/json", "[" * 5_000),
        (b'{"a":1}', "text/json", {"a": 1}),
        (b"\xef\xbb\xbf[1]", "application/json", [1]),
        ("[1]".encode("utf-16-le"), "application/problem+json", [1]),
        (b'{"a":1,"a":2}', "application/json", '{"a":1,"a":2}'),
        (b'{"a":99999999999999.99}', "application/json", {"a": Decimal("99999999999999.99")}),
        ("café".encode("cp1252"), "text/plain; charset=Windows-1252", "café"),
        ('{"n":"café"}'.encode("latin-1"), 'application/json; charset="iso-8859-1"', {"n": "café"}),
        ("café".encode("utf-16"), "text/plain; charset=iso-8859-1", "café"),
        ("\ufeffcafé".encode(), "text/plain", "café"),
        (b"", "application/json", None),
        (b"", "", None),
    ],
)
def test_a_body_is_json_or_text(body: bytes, kind: str, read: Any) -> None:
    content = content_of(Received(200, {"content-type": kind}, body), ())
    assert content == {"status": 200, "headers": {}, "body": read, "cut": False}


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/json"},
        {"content-type": "text/plain; charset=utf-8"},
        {"content-type": "text/plain; charset=no-such"},
        {"content-type": "text/plain; charset=zlib"},
        {"content-type": "text/plain; charset=ascii"},
        {"content-type": "text/plain; charset=latin-1", "content-encoding": "compress"},
    ],
    ids=str,
)
def test_a_body_that_cannot_be_decoded_says_so_and_keeps_its_bytes(headers: dict[str, str]) -> None:
    content = content_of(Received(200, headers, b"caf\xe9"), ())
    assert (content["body"], content["undecoded"]) == (r"caf\xe9", True)


def test_halves_of_surrogate_pairs_that_a_codec_makes_are_not_decoded() -> None:
    content = content_of(Received(200, {"content-type": "text/plain; charset=unicode_escape"}, rb"\ud800"), ())
    assert (content["body"], content["undecoded"]) == (r"\ud800", True)


@given(
    st.binary(max_size=40) | st.text(max_size=10).map(lambda text: json.dumps(text).encode()),
    st.sampled_from(["text/plain", "application/json", "text/json", "a/b+json", "", "\udcff", "a/b;charset"]),
    st.sampled_from(["", "utf-8", "utf-7", "utf-16", "idna", "punycode", "hex", "undefined", "\udcff", "a b", '"']),
    st.sampled_from(["", "gzip", "compress", "GZIP, gzip"]),
)
def test_whatever_a_service_answers_is_a_reply_that_its_caller_reads(
    body: bytes, kind: str, charset: str, encoding: str
) -> None:
    received = Received(200, {"content-type": f"{kind}; charset={charset}", "content-encoding": encoding}, body)
    content = content_of(received, ("Content-Type",))
    data = Json.of({"tag": "t", "outcome": "answered", **content})
    read = Envelope.read(Envelope("a", "1", "t", data).to_json().text)
    assert decode(Reply, read.data, source="a", id="1").body == content["body"]


def test_a_body_that_is_nested_as_deeply_as_is_read_reaches_its_caller() -> None:
    for levels in (MAX_NESTING, MAX_NESTING + 1):
        received = Received(200, {"content-type": "application/json"}, b"[" * levels + b"]" * levels)
        data = Json.of({"tag": "t", "outcome": "answered", **content_of(received, ())})
        read = Envelope.read(Envelope("a", "1", "t", data).to_json().text)
        assert isinstance(read.data.value["body"], list if levels == MAX_NESTING else str)


def test_a_header_that_is_not_utf_8_is_text_that_a_queue_takes() -> None:
    received = Received(201, {"location": "/b\udcfcro"}, b"")
    assert content_of(received, ("Location",))["headers"] == {"Location": "/b\ufffdro"}


def test_a_body_that_was_not_read_is_cut() -> None:
    assert content_of(Received(200, {}, None), ("A",)) == {"status": 200, "headers": {}, "body": None, "cut": True}
