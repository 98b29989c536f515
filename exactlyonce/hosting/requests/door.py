"""The door: answers HTTP requests with what their handlers replied, once and for all."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import azure.functions as func
from pydantic import ValidationError

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, HandlerFailed
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import is_message
from exactlyonce.hosting.deliveries.failures import named
from exactlyonce.hosting.requests.asker import Answered, Asker, Request
from exactlyonce.hosting.requests.fingerprint import fingerprint
from exactlyonce.hosting.requests.keys import HEADER, Keys, read_key, time_of
from exactlyonce.hosting.requests.problems import FAULT, NOT_JSON, misfit, problem_of
from exactlyonce.raised import ApplicationsCode, Show, class_of, shown
from exactlyonce.values.validation import problems

CALLER: Final = "x-ms-client-principal-id"
"""Header in which the front end of Azure names the authenticated caller."""
REPLAYED: Final = "Idempotent-Replayed"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Door:
    """Answers requests.

    Attributes:
        asker: asks the entities.
        show: makes of an exception what may be logged of it.
    """

    asker: Asker
    show: Show = shown

    async def answer(
        self, request: func.HttpRequest, entity: Entity[Any], message: object, scope: str | None, keys: Keys
    ) -> func.HttpResponse:
        """As `ExactlyOnce.answer`, which documents it."""
        body = request.get_body()
        if body and not is_json(request.headers.get("Content-Type")):
            return NOT_JSON.response()
        try:
            key = read_key(request.headers.get(HEADER))
            await self.asker.ready()
            time = time_of(key, self.asker.now()) if keys == "uuid7" else None
            caller = request.headers.get(CALLER) if scope is None else scope
            source = f"http:{caller}" if caller else "http"
            asked = fingerprint(request.method, urlsplit(request.url).path, body)
            answered = await self.asker.ask(entity, made(message), Request(key, asked, source, time))
        except ConfigurationError:
            raise  # The operator's, not the client's.
        except ValidationError as error:
            return misfit(problems(error)).response()
        except ExactlyOnceError as error:
            problem = problem_of(error)
            told = None if problem.status < FAULT else self.show(error)
            _log.warning(
                "a request for %s was answered with %d: %s", entity, problem.status, named(error), exc_info=told
            )
            return problem.response()
        return response_of(answered)


def made(message: object) -> object:
    """A message, or what makes one.

    Raises:
        ValidationError: of pydantic: what came does not fit.
        HandlerFailed: the function that makes the message raised anything else.
    """
    if is_message(message) or not callable(message):
        return message
    with ApplicationsCode(
        lambda error: HandlerFailed(f"The function that makes the message of a request raised {class_of(error)}."),
        ExactlyOnceError,
        ValidationError,
    ):
        return message()


def is_json(media_type: str | None) -> bool:
    """Whether a body is JSON, as far as its sender says."""
    name = (media_type or "application/json").partition(";")[0].strip().lower()
    return name == "application/json" or (name.startswith("application/") and name.endswith("+json"))


def response_of(answered: Answered) -> func.HttpResponse:
    """A committed answer as a response."""
    headers = dict(answered.headers)
    if answered.replayed:
        headers[REPLAYED] = "true"
    mimetype = None if answered.body is None else "application/json"
    return func.HttpResponse(answered.body, status_code=answered.status, headers=headers, mimetype=mimetype)
