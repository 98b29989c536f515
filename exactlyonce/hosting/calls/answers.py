"""What a reply carries of an answer. A reply is committed, so what is lost here would be lost for ever."""

from __future__ import annotations

import codecs
import json
from email.message import Message
from typing import Any, Final

from exactlyonce.hosting.calls.wire import Received
from exactlyonce.values.frozen_json import is_json, read_json

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Marks at the beginning of a body. They know better than its headers."""
_INFLATED: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""Encodings that the wire undoes, or that are none."""


def content_of(received: Received, names: tuple[str, ...]) -> dict[str, Any]:
    """The properties of a reply that come from an answer.

    Args:
        received: the answer.
        names: of the headers that replies carry.
    """
    headers = {name: _text(received.headers[name.lower()]) for name in names if name.lower() in received.headers}
    kept: dict[str, Any] = {"status": received.status, "headers": headers, "body": None, "cut": received.body is None}
    if received.body:
        media_type = received.headers.get("content-type", "")
        encoding = received.headers.get("content-encoding", "").strip().lower()
        text = _decoded(received.body, media_type) if encoding in _INFLATED else None
        if text is None:
            kept |= {"body": received.body.decode(errors="backslashreplace"), "undecoded": True}
        else:
            kept["body"] = _content(text, media_type)
    return kept


def _text(header: str) -> str:
    """A header's value. Bytes that are not UTF-8 come as halves of surrogate pairs, which no queue takes."""
    return header.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _decoded(body: bytes, media_type: str) -> str | None:
    """A body as text; None if it is in no charset that is known, or not in the one that its sender names."""
    headers = Message()
    headers["Content-Type"] = _text(media_type)
    charset = next((name for mark, name in _MARKS if body.startswith(mark)), headers.get_content_charset())
    try:
        text = body.decode(charset or (json.detect_encoding(body) if is_json(media_type) else "utf-8"))
        text.encode()  # Some codecs make halves of surrogate pairs.
    except (LookupError, ValueError):
        return None
    return text


def _content(text: str, media_type: str) -> Any:
    """A body as JSON, or else as text; None if it is empty. JSON that not every parser reads alike stays text."""
    if is_json(media_type):
        try:
            return read_json(text)
        except ValueError:
            pass
    return text or None
