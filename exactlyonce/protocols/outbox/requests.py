"""What callers do with requests besides having them carried out: open them, look at them, close them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.library import Closed, CloseRequest, DeleteRequests, FoundRequests, LoadRequests, OpenRequest
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.envelope import EntityRef, Envelope


@dataclass(frozen=True, slots=True)
class Opened:
    """A request was opened.

    Attributes:
        request: its id.
        token: session token for the library's partition that shows it.
    """

    request: str
    token: str


def open_request(
    entity: EntityRef, message: Callable[[str, datetime], Envelope], memory: Memory
) -> Step[Opened | Again]:
    """Open a request. At most 2 effects.

    Args:
        entity: that is to carry it out.
        message: makes its envelope, of the id of the request and the present.
        memory: of this process.
    """
    # Begin. The id is made here and fresh in every attempt: under an id of the caller's, a late copy of this would open the
    # request once more after it was closed, and a late copy of what follows would carry it out again.
    begun = yield from Begin(more=1)
    (request,) = begun.given
    envelope = message(request, begun.at)
    # Open the request. If that is not acknowledged, another one is opened; nobody knows this one, and clean-up deletes it.
    opened = yield from OpenRequest(entity, RequestDocument(entity.key, request, begun.at, envelope.to_json(), None))
    if isinstance(opened, NoAnswer) or opened.token is None:
        return Again(memory, "whether the request was opened is not known")
    return Opened(request, opened.token)


def find_request(entity: EntityRef, request: str, token: str | None, memory: Memory) -> Step[FoundRequests | Again]:
    """Look at a request. One effect.

    Args:
        entity: that carries it out.
        request: its id.
        token: that shows it.
        memory: of this process.
    """
    # Read the document of the request, in a view that shows it or what became of it since. An older one might not have it yet.
    found = yield from LoadRequests(entity, (request,), token)
    return Again(memory, "the request could not be read") if isinstance(found, NoAnswer) else found


def close_request(entity: EntityRef, request: str, memory: Memory) -> Step[Closed | Again]:
    """Close a request, whatever became of it. One effect."""
    # Delete the document of the request. From now on nothing of it is carried out, but for an attempt that has seen it open.
    closed = yield from CloseRequest(entity, request)
    return Again(memory, "whether the request was closed is not known") if isinstance(closed, NoAnswer) else closed


def clean_requests(entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory) -> Step[Finished]:
    """Delete requests that were opened long ago and not carried out. One effect, which is not answered.

    It needs no fence. An attempt that has seen a request open may still commit; then there is no document to keep its answer
    in, as if the caller had closed the request.

    Args:
        entity: whose requests they are.
        candidates: id of each, and its ETag as it was read open.
        memory: of this process.
    """
    if candidates:
        # Delete the requests, as they were read. One that was answered since has another ETag, and stays for its caller.
        yield from DeleteRequests(entity, candidates)
    return Finished(memory)
