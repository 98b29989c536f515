"""Replies that many places make."""

from __future__ import annotations

from devtools.cosmos_emulator.semantics import charges
from devtools.cosmos_emulator.semantics.errors import CODES, RefusedError
from devtools.cosmos_emulator.semantics.requests import Reply
from devtools.cosmos_emulator.values import JsonObject, serialise


def refused(refusal: RefusedError) -> Reply:
    """The reply to a refused request: `{"code", "message"}`, and `additionalErrorInfo` where there is some."""
    body = {"code": CODES.get(refusal.status, "Error"), "message": refusal.message}
    if refusal.more is not None:
        body["additionalErrorInfo"] = refusal.more
    return Reply(
        refusal.status,
        serialise(body),
        charges.refused(),
        substatus=refusal.substatus,
        retry_after_ms=refusal.retry_after_ms,
    )


def resource(document: JsonObject, status: int = 200) -> Reply:
    """A database or container."""
    return Reply(status, serialise(document), charges.refused(), etag=document.get("_etag"))


def listing(rid: str, name: str, documents: list[JsonObject]) -> Reply:
    """A list of databases, containers or ranges: `{"_rid", name: [...], "_count"}`."""
    body = serialise({"_rid": rid, name: documents, "_count": len(documents)})
    return Reply(200, body, charges.refused(), item_count=len(documents))
