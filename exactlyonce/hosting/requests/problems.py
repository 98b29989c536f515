"""Problems: the responses to requests that have no answer, as problem+json (RFC 9457)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import azure.functions as func

from exactlyonce.errors import (
    ExactlyOnceError,
    InvalidKey,
    InvalidMessage,
    KeyReused,
    MessageFromTheFuture,
    RequestUnknown,
    TooOldToJudge,
    TryAgainLater,
    UniqueKeyTaken,
)

FAULT: Final = 500
"""The first status code that says that the fault is not the client's."""
RETRY_AFTER: Final = 1
"""Seconds after which a client may repeat a request whose outcome is not known."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The response to a request without an answer.

    Attributes:
        status: status code of HTTP.
        title: the kind of problem.
        detail: what to do.
        retry_after: seconds after which the request may be repeated; None if that does not help.
        headers: names and values of further headers.
    """

    status: int
    title: str
    detail: str
    retry_after: int | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def response(self) -> func.HttpResponse:
        """As a response."""
        body = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        headers = dict(self.headers)
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return func.HttpResponse(
            json.dumps(body), status_code=self.status, headers=headers, mimetype="application/problem+json"
        )


class Refused(Exception):
    """A request that is refused before anything is looked up.

    Attributes:
        problem: that the client is told.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem = problem


NOT_JSON: Final = Problem(415, "Unsupported media type", "Send the body as application/json.")
COMPRESSED: Final = Problem(
    415,
    "Unsupported content encoding",
    "Send the body as it is: compressed again, a retry would look like another request.",
    headers=(("Accept-Encoding", "identity"),),
)

NOT_THERE: Final = Problem(
    404,
    "No such request",
    "It was closed, or left open for too long, and is not carried out now; or this is not its address as opening it gave it.",
)
NOT_YET: Final = Problem(409, "Not answered yet", "It is open. POST carries it out.", RETRY_AFTER)
_EXPIRED: Final = Problem(
    400,
    "Key expired",
    "The request is so old that its outcome may be forgotten, so it was not carried out now. Find out whether it was before. "
    "If not, send it with a new key.",
)
_FAILED: Final = Problem(500, "Failed", "Nothing was changed. The request may be repeated with the same key.")
_PROBLEMS: Final[tuple[tuple[type[ExactlyOnceError], Problem], ...]] = (
    (
        KeyReused,
        Problem(
            422,
            "Key reused",
            "Another request had this key. Nothing was changed. Send another request with another key.",
        ),
    ),
    (TooOldToJudge, _EXPIRED),
    (MessageFromTheFuture, Problem(400, "Clock error", "The time of the request is ahead. Set the client's clock.")),
    (RequestUnknown, NOT_THERE),
    (InvalidMessage, Problem(400, "Invalid request", "The request does not fit what this operation takes.")),
    (UniqueKeyTaken, Problem(409, "Taken", "Another one has the same unique values. Nothing was changed.")),
    (
        TryAgainLater,
        Problem(
            503,
            "Outcome not known",
            "Repeat the request with the same key: if it was carried out, its answer comes.",
            RETRY_AFTER,
        ),
    ),
)


def problem_of(error: ExactlyOnceError) -> Problem:
    """The problem of an error. Only a wrong key shows the error's own text: other texts name what is stored."""
    if isinstance(error, InvalidKey):
        return Problem(400, "Invalid key", str(error))
    return next((problem for kind, problem in _PROBLEMS if isinstance(error, kind)), _FAILED)


def not_allowed(methods: tuple[str, ...]) -> Problem:
    """The problem of a method that an address does not take."""
    allowed = ", ".join(methods)
    return Problem(405, "Method not allowed", f"This address takes {allowed}.", headers=(("Allow", allowed),))


def misfit(detail: str) -> Problem:
    """The problem of a body that does not fit its message."""
    return Problem(400, "Invalid request", detail)
