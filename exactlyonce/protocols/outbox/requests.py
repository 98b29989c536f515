"""Opened requests: callers open a request, look at it, and close it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from exactlyonce.effects.attempt import Again, Finished, Memory
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.library import Closed, CloseRequest, DeleteRequests, FoundRequests, LoadRequests, OpenRequest
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.envelope import EntityRef, Envelope


@dataclass(frozen=True, slots=True)
class Opened:
    """A request was opened.

    Attributes:
        token: session token of the library's partition, covering the new document.
    """

    request: str
    token: str


def open_request(
    entity: EntityRef, message: Callable[[str, datetime], Envelope], memory: Memory
) -> Step[Opened | Again]:
    """Open a request. At most 2 effects.

    Args:
        entity: receiver of the request.
        message: makes the envelope from the request's id and the present.
    """
    # Begin. The id is made here, fresh in every attempt. Under an id of the caller's, a late copy of the next step would open
    # the request again after it was closed, and a late copy of the message would carry it out again.
    begun = yield from Begin(more=1)
    (request,) = begun.given
    envelope = message(request, begun.at)
    # Open the request. Without an acknowledgement, another request is opened; this one has no caller, and clean-up deletes
    # it.
    opened = yield from OpenRequest(entity, RequestDocument(entity.key, request, begun.at, envelope.to_json(), None))
    if isinstance(opened, NoAnswer) or opened.token is None:
        return Again(memory, "whether the request was opened is not known")
    return Opened(request, opened.token)


def find_request(entity: EntityRef, request: str, token: str | None, memory: Memory) -> Step[FoundRequests | Again]:
    """Look at a request. One effect.

    Args:
        entity: receiver of the request.
        token: session token covering the request's document.
    """
    # Read the document of the request, in a view that shows the document or its end. An older view might not have it yet.
    reply = yield from LoadRequests(entity, (request,), token)
    return Again(memory, "the request could not be read") if isinstance(reply, NoAnswer) else reply


def close_request(entity: EntityRef, request: str, memory: Memory) -> Step[Closed | Again]:
    """Close a request in any state. One effect."""
    # Delete the document of the request. From now on it is not carried out, except by an attempt that has seen it open.
    closed = yield from CloseRequest(entity, request)
    return Again(memory, "whether the request was closed is not known") if isinstance(closed, NoAnswer) else closed


def clean_requests(entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory) -> Step[Finished]:
    """Delete requests opened long ago and not carried out. One effect, without reply.

    No fence is needed. An attempt that has seen a request open may still commit; then there is no document for the answer, as
    if the caller had closed the request.

    Args:
        candidates: ids of the requests, with the ETags of their open documents.
    """
    if candidates:
        # Delete the requests, as they were read. A request answered since has another ETag, and stays for its caller.
        yield from DeleteRequests(entity, candidates)
    return Finished(memory)
