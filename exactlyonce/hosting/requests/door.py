"""The door: answers HTTP requests with the committed replies of their handlers."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Final
from urllib.parse import urlsplit

import azure.functions as func
from pydantic import ValidationError

from exactlyonce.errors import (
    ConfigurationError,
    ExactlyOnceError,
    HandlerFailed,
    InvalidKey,
    InvalidMessage,
    KeyReused,
    MessageFromTheFuture,
    RequestUnknown,
    TooOldToJudge,
    TryAgainLater,
    UniqueKeyTaken,
)
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import is_message, is_message_type
from exactlyonce.hosting.deliveries.triggers import named
from exactlyonce.hosting.requests.asker import (
    HEADER,
    Answered,
    Asker,
    Keys,
    Request,
    fingerprint,
    read_key,
    source_of,
    time_of,
)
from exactlyonce.values.declarations import kind_of
from exactlyonce.values.frozen_json import changed_by_doubles, is_json, problems, read_json
from exactlyonce.values.raised import Show, class_of, shown
from exactlyonce.values.round_trips import ApplicationsCode

# Problems: the responses to requests without an answer, as problem+json (RFC 9457).


FAULT: Final = 500
"""The lowest status code for faults of the server."""
RETRY_AFTER: Final = 1
"""Seconds after which a client may repeat a request with an unknown outcome."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The response to a request without an answer.

    Attributes:
        status: HTTP status code.
        title: the kind of problem.
        detail: advice for the client.
        retry_after: seconds after which the request may be repeated; None if repeating does not help.
        headers: names and values of further headers.
    """

    status: int
    title: str
    detail: str
    retry_after: int | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def response(self) -> func.HttpResponse:
        body = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        headers = dict(self.headers)
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return func.HttpResponse(
            json.dumps(body), status_code=self.status, headers=headers, mimetype="application/problem+json"
        )


class Refused(Exception):
    """A request that is refused before any look-up."""

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
    "The request was closed, or left open for too long, or the address is wrong. Nothing was carried out now.",
)
NOT_YET: Final = Problem(409, "Not answered yet", "The request is open. POST carries it out.", RETRY_AFTER)
_EXPIRED: Final = Problem(
    400,
    "Key expired",
    "The request is so old that its outcome may be forgotten. It was not carried out now. Find out whether it was before; if "
    "not, send it with a new key.",
)
_FAILED: Final = Problem(500, "Failed", "Nothing was changed. The request may be repeated with the same key.")
_PROBLEMS: Final[tuple[tuple[type[ExactlyOnceError], Problem], ...]] = (
    (
        KeyReused,
        Problem(
            422,
            "Key reused",
            "The key belongs to a different request. Nothing was changed. Send a new request with a new key.",
        ),
    ),
    (TooOldToJudge, _EXPIRED),
    (MessageFromTheFuture, Problem(400, "Clock error", "The time of the request is ahead. Set the client's clock.")),
    (RequestUnknown, NOT_THERE),
    (InvalidMessage, Problem(400, "Invalid request", "The request does not fit what this operation takes.")),
    (UniqueKeyTaken, Problem(409, "Taken", "Another entity has the same unique values. Nothing was changed.")),
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
    """The problem of an error. Only a wrong key shows the error's own text: other texts quote stored data."""
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


CALLER: Final = "x-ms-client-principal-id"
"""Header in which the front end of Azure names the authenticated caller."""
REPLAYED: Final = "Idempotent-Replayed"
METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
"""Methods whose requests are answered. All other methods are safe: a client that repeats them expects no change."""
_MISMADE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of code that reads a body of an unexpected form."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Door:
    """Answers requests."""

    asker: Asker
    show: Show = shown

    async def answer(
        self, request: func.HttpRequest, entity: Entity[Any], message: object, scope: str | None, keys: Keys
    ) -> func.HttpResponse:
        """Answer a request; documented at `ExactlyOnce.answer`."""
        return await guarded(self._answered(request, entity, message, scope, keys), entity, self.show)

    async def _answered(
        self, request: func.HttpRequest, entity: Entity[Any], message: object, scope: str | None, keys: Keys
    ) -> func.HttpResponse:
        if request.method.upper() not in METHODS:
            raise Refused(not_allowed(METHODS))
        body = body_of(request)
        key = read_key(request.headers.get(HEADER))
        await self.asker.ready()
        time = time_of(key, self.asker.now()) if keys == "uuid7" else None
        caller = request.headers.get(CALLER) if scope is None else scope
        asked = fingerprint(request.method, _path_of(request.url), body.text)
        identity = Request(key, asked, source_of(caller), time)
        return response_of(await self.asker.ask(entity, made(message, body), identity))


async def guarded(response: Awaitable[func.HttpResponse], entity: Entity[Any], show: Show) -> func.HttpResponse:
    """The response, or the problem to tell the client. Raises `ConfigurationError`: a mistake of the operator."""
    try:
        return await response
    except ConfigurationError:
        raise
    except Refused as refusal:
        if (cause := refusal.__cause__) is not None:  # The mistake may be in the application's code.
            text = "the body of a request for %s does not make its message: %s"
            _log.warning(text, entity, class_of(cause), exc_info=show(cause))
        return refusal.problem.response()
    except ExactlyOnceError as error:
        problem = problem_of(error)
        told = None if problem.status < FAULT else show(error)
        _log.warning("a request for %s was answered with %d: %s", entity, problem.status, named(error), exc_info=told)
        return problem.response()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request: as sent, and as `read_json` reads it, with None for an empty body."""

    text: bytes
    content: Any


def body_of(request: func.HttpRequest) -> Body:
    """The body of a request. Raises `Refused` for a compressed body, or a body other than JSON."""
    text = request.get_body() or b""
    if not text:
        return Body(text, None)
    encodings = request.headers.get("Content-Encoding", "").split(",")
    if {encoding.strip().lower() for encoding in encodings} - {"", "identity"}:
        raise Refused(COMPRESSED)
    if not is_json(request.headers.get("Content-Type") or "application/json"):
        raise Refused(NOT_JSON)
    try:
        return Body(text, read_json(text))
    except ValueError as error:
        raise Refused(misfit(f"The body is not JSON that every parser reads alike. {error}")) from None


def made(message: object, body: Body) -> object:
    """The message of a request, as given, or as made by a function from the content of the body.

    Raises:
        Refused: the body does not fit.
        HandlerFailed: the function raised an exception that no body explains.
    """
    if is_message_type(message):  # The defaults of the class would be taken for the body.
        raise ConfigurationError(
            f"The message of a request is {kind_of(message)}. Give a message, or a function that makes one of the body, such "
            "as that class's model_validate."
        )
    maker: Any = message if callable(message) and not is_message(message) else None
    takes_content = maker is not None and _takes_argument(maker)
    if body.text and not takes_content and (place := changed_by_doubles(body.text)):
        raise Refused(misfit(f"{place}: This number has more digits than a double keeps. Send it as a string."))
    if maker is None:
        return message
    try:
        with ApplicationsCode(
            lambda error: HandlerFailed(f"The function that makes the message of a request raised {class_of(error)}."),
            ExactlyOnceError,
            *_MISMADE,
        ):
            result = maker(body.content) if takes_content else maker()
    except ValidationError as error:
        raise Refused(misfit(problems(error))) from None
    except ExactlyOnceError:
        raise
    except _MISMADE as error:
        raise Refused(misfit("The body does not have the form that this operation takes.")) from error
    if is_message(result):
        return result
    if inspect.iscoroutine(result):
        result.close()  # Nothing of the coroutine ran; without this Python would warn.
    raise ConfigurationError(
        f"The function that makes the message of a request returned {kind_of(result)}. Let it be a plain function that "
        "returns an instance of a message type."
    )


def _path_of(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError:  # The client may have written the host.
        raise Refused(misfit("The address of the request cannot be read.")) from None


def _takes_argument(maker: Any) -> bool:
    """Whether a function has a required parameter."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = signature(maker).parameters.values()
    except (TypeError, ValueError):  # Some built-in functions have no signature.
        return False
    return any(parameter.kind in kinds and parameter.default is Parameter.empty for parameter in parameters)


def response_of(answered: Answered) -> func.HttpResponse:
    """A committed answer as a response."""
    headers = dict(answered.headers)
    if answered.replayed:
        headers[REPLAYED] = "true"
    mimetype = None if answered.body is None else "application/json"
    return func.HttpResponse(answered.body, status_code=answered.status, headers=headers, mimetype=mimetype)
