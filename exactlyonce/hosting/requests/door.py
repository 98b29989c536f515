"""The door: answers HTTP requests with what their handlers replied, once and for all."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import azure.functions as func
from pydantic import ValidationError

from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import is_message
from exactlyonce.hosting.deliveries.failures import named
from exactlyonce.hosting.requests.asker import Answered, Asker, Request
from exactlyonce.hosting.requests.fingerprint import fingerprint
from exactlyonce.hosting.requests.keys import HEADER, Keys, read_key, time_of
from exactlyonce.hosting.requests.problems import NOT_JSON, misfit, problem_of
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
    """

    asker: Asker

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
            _log.warning("a request for %s was answered with %d: %s", entity, problem.status, named(error))
            return problem.response()
        return response_of(answered)


def made(message: object) -> object:
    """A message, or what makes one. Raises pydantic's `ValidationError`."""
    return message() if callable(message) and not is_message(message) else message


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
