"""Documents of requests in Cosmos DB: they lie in the library's partition of their entity."""

from __future__ import annotations

from exactlyonce.effects.effect import UNKNOWN, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.effects.port import Busy, performs
from exactlyonce.effects.requests import (
    CLOSED,
    Closed,
    CloseRequest,
    DeleteRequests,
    FoundRequests,
    KeepAnswers,
    LoadRequests,
    OpenRequest,
)
from exactlyonce.records.library import read_request
from exactlyonce.stores.cosmos.containers import CosmosContainers
from exactlyonce.stores.cosmos.layout import from_library, request_id, to_library
from exactlyonce.stores.cosmos.partition import Applied, Documents
from exactlyonce.stores.cosmos.replies import Operation
from exactlyonce.stores.refusals import require_same
from exactlyonce.values.session_tokens import later


class CosmosRequests(CosmosContainers):
    """The effects on documents of requests."""

    @performs(OpenRequest)
    async def open_request(self, effect: OpenRequest) -> Written | Conflict | Unknown:
        documents = [to_library(effect.entity, effect.document)]
        reply = await self._library(effect.entity).write_all(documents, Operation.OPEN_REQUEST)
        if isinstance(reply, Conflict):
            return reply
        return Written(reply.token) if isinstance(reply, Applied) and reply.token is not None else UNKNOWN

    @performs(LoadRequests)
    async def load_requests(self, effect: LoadRequests) -> FoundRequests | NoAnswer | Busy:
        wanted = {request_id(request): request for request in effect.requests}
        reply = await self._library(effect.entity).read_all(tuple(wanted), effect.token)
        if not isinstance(reply, Documents):
            return reply
        found = {one["id"]: read_request(from_library(one)) for one in reply.properties}
        for id, document in found.items():
            require_same(effect.entity, id, document.request, wanted[id])
        return FoundRequests(tuple(found[id] for id in wanted if id in found), reply.token)

    @performs(KeepAnswers)
    async def keep_answers(self, effect: KeepAnswers) -> Written | Unknown:
        token: str | None = None
        for document in effect.documents:
            properties = to_library(effect.entity, document)
            reply = await self._library(effect.entity).replace(properties["id"], properties, None, Operation.KEEP)
            # One that is gone is kept as well as any. The primary says so, and its token shows it gone.
            if not isinstance(reply, Applied | Conflict) or reply.token is None:
                return UNKNOWN
            token = later(token, reply.token)
        return UNKNOWN if token is None else Written(token)

    @performs(CloseRequest)
    async def close_request(self, effect: CloseRequest) -> Closed | Unknown:
        reply = await self._library(effect.entity).delete(request_id(effect.request))
        return reply if isinstance(reply, NoAnswer) else CLOSED

    @performs(DeleteRequests)
    async def delete_requests(self, effect: DeleteRequests) -> None:
        await self._library(effect.entity).delete_all({request_id(one): etag for one, etag in effect.requests})
