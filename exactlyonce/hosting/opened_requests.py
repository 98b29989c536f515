"""The part of an application that serves requests which callers open."""

from __future__ import annotations

from typing import Any

import azure.functions as func

from exactlyonce.handling.entities import Entity
from exactlyonce.handling.keys import EntityKey
from exactlyonce.hosting.deliveries.failures import told
from exactlyonce.hosting.requests.opened import require_requests
from exactlyonce.hosting.requests.opened_door import OpenedDoor
from exactlyonce.hosting.wiring import Parts


class OpenedRequests:
    """An application that other services call: OPEN, POST, GET, DELETE."""

    _parts: Parts

    @told
    async def open_request(self, request: func.HttpRequest, entity: Entity[Any], message: object) -> func.HttpResponse:
        """Open a request: store its message, and give it an address. Nothing is carried out yet.

        The response is 201 with the address in `Location`, which `serve_request` serves. A request that is opened and never
        carried out is deleted by clean-up. Errors are problem+json.

        Args:
            request: as the trigger gives it; its path is the collection that the address lies in.
            entity: the type whose handler takes the message; its strategy is `Outbox`.
            message: as for `answer`.

        Raises:
            ConfigurationError: no timer sweeps this application, or the entity has another strategy.
        """
        self._require_served(entity)
        return await OpenedDoor(self._parts.requests, self._parts.show).open(request, entity, message)

    @told
    async def serve_request(
        self, request: func.HttpRequest, entity: Entity[Any], key: str | EntityKey
    ) -> func.HttpResponse:
        """Serve a request that was opened, at the address that opening it gave.

        POST carries it out, once however often it comes and however late, and answers with what the handler replied; GET gives
        the answer once more, or 409 while there is none, and HEAD the same without a body; DELETE closes the request. From then
        on nothing is known of it, and all of them answer 404, but DELETE 204. Other methods are 405 with `Allow`.

        Args:
            request: as the trigger gives it; the route has a parameter `request`.
            entity: the type whose handler takes the message.
            key: of the entity, from the route.

        Raises:
            ConfigurationError: as `open_request` does; or the route has no parameter `request`.
        """
        self._require_served(entity)
        return await OpenedDoor(self._parts.requests, self._parts.show).serve(request, entity, key)

    def _require_served(self, entity: Entity[Any]) -> None:
        self._require_swept(entity)
        require_requests(entity)

    def _require_swept(self, entity: Entity[Any]) -> None:
        raise NotImplementedError
