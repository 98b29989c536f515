"""Fingerprints of requests: the same for every retry, another one for another request."""

from __future__ import annotations

import hashlib
import json


def fingerprint(method: str, path: str, body: bytes) -> str:
    """SHA-256 of a request, in hex.

    It covers the body as it was sent, not as the application reads it: a retry across a deploy that adds a default to the
    message is the same request. Blanks and the order of properties do not count. The query does not, since keys of the host
    travel there.

    Args:
        method: of HTTP.
        path: of the URL.
        body: as sent; JSON, or anything else.
    """
    sent = "\n".join((method.upper(), path, ""))
    return hashlib.sha256(sent.encode(errors="surrogateescape") + _canonical(body)).hexdigest()


def _canonical(body: bytes) -> bytes:
    try:
        # Fractions stay text: as numbers, two that differ could be one.
        content = json.loads(body, parse_float=str)
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body
