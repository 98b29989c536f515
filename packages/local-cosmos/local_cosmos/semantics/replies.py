"""Replies that many places make."""

from __future__ import annotations

from local_cosmos.semantics import charges
from local_cosmos.semantics.errors import CODES, RefusedError
from local_cosmos.semantics.requests import Reply
from local_cosmos.values import JsonObject, serialise


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
