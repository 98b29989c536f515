"""The nodes that take requests: `$cbs` for tokens, `<entity>/$management` for all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from local_service_bus.amqp.authorization import SharedKey
from local_service_bus.amqp.replies import ACCEPTED, NO_CONTENT, OK, Request, status, status_of
from local_service_bus.amqp.requests import EntityRequest
from local_service_bus.amqp.service import Service
from local_service_bus.amqp.steps import Client, Step
from local_service_bus.broker.messages import SessionLock, Stored
from local_service_bus.broker.refusals import ARGUMENT_ERROR, UNAUTHORIZED, RefusedError


def put_token(shared_key: SharedKey, grant: Callable[[], None], request: Request) -> None:
    """Take a token; whoever shows a good one may open links on its connection."""
    if shared_key.signed(str(request.body)):
        grant()
        request.reply(status(ACCEPTED, "Accepted"), None)
    else:
        text = f"Unauthorized access: the local endpoint wants a signature by {shared_key.name!r} with the right key."
        request.reply(status(status_of(RefusedError(UNAUTHORIZED, text)), text), None)


def manage(
    service: Service,
    client: Client,
    address: str,
    holding: Callable[[str], SessionLock | None],
    request: Request,
) -> None:
    """Do what is asked of an entity."""
    body = request.body if isinstance(request.body, dict) else {}
    try:
        entity_request = EntityRequest(service.broker, address, request.operation, body=body, holding=holding)
        service.perform(_Manage(client, address, request, entity_request))
    except RefusedError as refusal:
        _refuse(request, refusal)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        _refuse(request, _incomplete(request, error))


class _Manage(Step):
    def __init__(self, client: Client, address: str, request: Request, asked: EntityRequest) -> None:
        super().__init__(client, asked.operation, address, message_ids=asked.message_ids())
        self._request = request
        self._asked = asked
        self._seen: list[Stored] = []
        self._result: Mapping[str, Any] | None = None

    def act(self) -> None:
        try:
            self._seen = self._asked.held()
            self._result = self._asked.perform()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _incomplete(self._request, error) from error

    def answer(self, refusal: RefusedError | None) -> None:
        if refusal is not None:
            _refuse(self._request, refusal)
        elif self._result is None and self.operation in ("peek", "list_sessions", "list_rules"):
            self._request.reply(status(NO_CONTENT, "No content"), None)
        else:
            self._request.reply(status(OK, "OK"), dict(self._result or {}))

    def lose_lock(self) -> None:
        self._asked.lose_locks()

    def repeat(self) -> None:
        self._asked.repeat(self._seen)


def _incomplete(request: Request, error: Exception) -> RefusedError:
    """A request without something that it needs, or with something of another type."""
    told = f"{type(error).__name__}: {error}"
    return RefusedError(ARGUMENT_ERROR, f"The body of {request.operation!r} is not what the service wants ({told}).")


def _refuse(request: Request, refusal: RefusedError) -> None:
    told = status(status_of(refusal), refusal.text)
    request.reply({**told, "errorCondition": refusal.condition}, None)
