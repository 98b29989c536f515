"""Fingerprints of requests: the same for every retry, another one for another request."""

from __future__ import annotations

import hashlib

from exactlyonce.values.frozen_json import Json, canonical, read_json


def fingerprint(method: str, path: str, body: bytes) -> str:
    """SHA-256 of a request, in hex.

    It covers the body as it was sent, not as the application reads it: a retry across a deploy that adds a default to the
    message is the same request. Blanks, the order of properties and the spelling of numbers (1, 1.0, 1e0) do not count. The
    query does not, since keys of the host travel there.

    Args:
        method: of HTTP.
        path: of the URL.
        body: as sent; JSON, or anything else.
    """
    sent = "\n".join((method.upper(), path, ""))
    return hashlib.sha256(sent.encode(errors="surrogatepass") + _canonical(body)).hexdigest()


def _canonical(body: bytes) -> bytes:
    try:
        return Json.of(canonical(read_json(body))).text.encode()
    except ValueError:
        return body
