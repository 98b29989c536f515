"""The HTTP surface of opened requests: POST to open; POST, GET and DELETE of the opened request."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import azure.functions as func

from exactlyonce.effects.library import FoundRequests
from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.requests.asker import Answered, answered, encoded
from exactlyonce.hosting.requests.door import (
    NOT_THERE,
    NOT_YET,
    Refused,
    body_of,
    guarded,
    made,
    not_allowed,
    response_of,
)
from exactlyonce.protocols.outbox.judge import request_unknown
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.outbox.requests import Opened, close_request, find_request, open_request
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import MAX_MESSAGE_BYTES, EntityRef, Envelope
from exactlyonce.values.raised import Show, shown

# Opened requests: a caller opens, carries out, reads and closes them. The service's side of calls between services.


SOURCE: Final = "exactlyonce/request"
"""Source of the messages of all opened requests; the ids alone are unique."""
_STORED: Final = 2 * MAX_MESSAGE_BYTES
"""Most bytes of a stored envelope."""


@dataclass(frozen=True)
class Requests:
    """Requests of an application, carried out in the same lanes as messages from queues."""

    receiver: Receiver
    maintenance: Maintenance

    async def open(self, entity: Entity[Any], message: object) -> Opened:
        """Open a request; nothing is carried out yet. Raises `InvalidMessage`, `HandlerFailed` or `TryAgainLater`."""
        name, data = encoded(message)
        if data.size > MAX_MESSAGE_BYTES:
            raise InvalidMessage(f"The request has {data.size} bytes; at most {MAX_MESSAGE_BYTES} are taken.")

        def envelope(id: str, at: datetime) -> Envelope:
            return Envelope(SOURCE, id, name, data, at)

        await self.receiver.ready()
        ref = entity.ref_of(envelope("opened", self.receiver.now()))
        return await self.maintenance.run(ref, lambda memory: open_request(ref, envelope, memory))

    async def carry_out(self, entity: Entity[Any], ref: EntityRef, opened: Opened) -> Answered:
        """Carry a request out, or return the present answer. Raises `RequestUnknown` for a closed request, or as `ask` does."""
        stored = await self._found(ref, opened)
        document = stored.documents[0]
        if document.envelope is None or document.answer is not None:
            return answered(document.answer or Answer(), replayed=True)
        envelope = Envelope.read(document.envelope.text, limit=_STORED)
        # The message is the one that was opened: a retry could send a different body.
        message = replace(envelope, asked=opened.request, opened=stored.token or opened.token)
        processed = await self.receiver.ask(message, entity, ref)
        if processed.answer is None:
            raise request_unknown(opened.request)
        return answered(processed.answer, replayed=processed.before)

    async def answer(self, ref: EntityRef, opened: Opened) -> Answered | None:
        """The answer to a request; None without an answer so far. Raises `RequestUnknown` or `TryAgainLater`."""
        answer = (await self._found(ref, opened)).documents[0].answer
        return None if answer is None else answered(answer, replayed=True)

    async def close(self, ref: EntityRef, opened: Opened) -> None:
        """Close a request: delete its document, with the answer. Raises `TryAgainLater`."""
        await self.receiver.ready()
        await self.maintenance.run(ref, lambda memory: close_request(ref, opened.request, memory))

    async def _found(self, ref: EntityRef, opened: Opened) -> FoundRequests:
        await self.receiver.ready()
        stored = await self.maintenance.run(ref, lambda memory: find_request(ref, opened.request, opened.token, memory))
        if not stored.documents:
            raise request_unknown(opened.request)
        return stored


def require_requests(entity: Entity[Any]) -> None:
    """Raise `ConfigurationError` unless requests for the entity can be opened."""
    if not isinstance(entity.strategy, Outbox):
        raise ConfigurationError(
            f"Requests for {entity} cannot be opened: only Outbox() keeps their documents. Give it strategy=Outbox(), or "
            "answer requests that carry a key, with once.answer."
        )


AT: Final = "at"
"""Parameter of a request's address: the encoded session token of the request's document."""
REQUEST: Final = "request"
"""Parameter of a route: the id of a request."""
METHODS: Final = ("GET", "HEAD", "POST", "DELETE")
"""Methods on an opened request."""
_OF_PATHS: Final = "%/:@!$&'()*+,;=~"
_TOKEN: Final = re.compile(r"[0-9]{1,20}:-?[0-9]{1,20}#[0-9]{1,20}(?:#[0-9]{1,20}=-?[0-9]{1,20}){0,64}")
_ID: Final = re.compile(r"[0-9A-Za-z-]{8,64}")
_MOST_ENCODED: Final = 4096


@dataclass(frozen=True)
class OpenedDoor:
    """Opens requests, and serves opened requests."""

    requests: Requests
    show: Show = shown

    async def open(self, request: func.HttpRequest, entity: Entity[Any], message: object) -> func.HttpResponse:
        """Open a request; documented at `ExactlyOnce.open_request`."""

        async def opened() -> func.HttpResponse:
            if request.method.upper() != "POST":
                raise Refused(not_allowed(("POST",)))
            opened = await self.requests.open(entity, made(message, body_of(request)))
            path = quote(urlsplit(request.url).path.rstrip("/"), safe=_OF_PATHS)
            place = f"{path}/{quote(opened.request, safe='')}?{AT}={token_text(opened.token)}"
            return func.HttpResponse(status_code=201, headers={"Location": place})

        return await guarded(opened(), entity, self.show)

    async def serve(self, request: func.HttpRequest, entity: Entity[Any], key: str | EntityKey) -> func.HttpResponse:
        """Serve an opened request; documented at `ExactlyOnce.serve_request`."""
        if REQUEST not in request.route_params:
            raise ConfigurationError(
                f"The route of {entity}'s requests has no parameter {REQUEST}. Let it end with {{{REQUEST}}}, as in "
                f"accounts/{{account}}/charges/{{{REQUEST}}}."
            )
        opened = Opened(request.route_params[REQUEST], token_of(request.params.get(AT)) or "")
        method = request.method.upper()
        response = await guarded(self._served(method, entity, key, opened), entity, self.show)
        return without_body(response) if method == "HEAD" else response

    async def _served(
        self, method: str, entity: Entity[Any], key: str | EntityKey, opened: Opened
    ) -> func.HttpResponse:
        if method not in METHODS:
            raise Refused(not_allowed(METHODS))
        if not opened.token or not _ID.fullmatch(opened.request):
            raise Refused(NOT_THERE)
        ref: EntityRef = entity.ref(key)
        match method:
            case "POST":
                return response_of(await self.requests.carry_out(entity, ref, opened))
            case "GET" | "HEAD":
                answered = await self.requests.answer(ref, opened)
                return NOT_YET.response() if answered is None else response_of(answered)
        await self.requests.close(ref, opened)
        return func.HttpResponse(status_code=204)


def without_body(response: func.HttpResponse) -> func.HttpResponse:
    """The response to HEAD, made from the response to GET (RFC 9110, 9.3.2)."""
    return func.HttpResponse(
        status_code=response.status_code, headers=dict(response.headers), mimetype=response.mimetype
    )


def token_text(token: str) -> str:
    """A session token as part of an address."""
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def token_of(text: str | None) -> str | None:
    """The session token in an address; None for an address without a possible token."""
    if text is None or len(text) > _MOST_ENCODED:
        return None
    try:
        token = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return token if _TOKEN.fullmatch(token) else None
