"""What a reply carries of an answer."""

from __future__ import annotations

import json
from typing import Any

from exactlyonce.hosting.calls.wire import Received
from exactlyonce.values.frozen_json import Json


def content_of(received: Received, names: tuple[str, ...]) -> dict[str, Any]:
    """The properties of a reply that come from an answer.

    Args:
        received: the answer.
        names: of the headers that replies carry.
    """
    headers = {name: _text(received.headers[name.lower()]) for name in names if name.lower() in received.headers}
    body = None if received.body is None else _body(received.body, received.headers.get("content-type", ""))
    return {"status": received.status, "headers": headers, "body": body, "cut": received.body is None}


def _text(header: str) -> str:
    """A header's value. Bytes that are not UTF-8 come as halves of surrogate pairs, which no queue takes."""
    return header.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _body(body: bytes, content_type: str) -> Any:
    """A body as JSON, or else as text; None if it is empty."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return Json.of(json.loads(body)).value  # The parser takes more than a queue does, such as infinite numbers.
        except (ValueError, RecursionError):
            pass
    return body.decode(errors="replace") or None
