"""The wire of an application in memory, to the test's functions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Final

from exactlyonce.drivers.runtime import Clock
from exactlyonce.handling.calls import Api
from exactlyonce.testing.services import Request, Response, Service, Trouble
from exactlyonce.transports import http as wire
from exactlyonce.transports.http import Received
from exactlyonce.values.frozen_json import Json, read_json

CALLED: Final[ContextVar[Api]] = ContextVar("called")
"""The `Api` of the call that a task makes; two of them may have the same address."""


class MemoryWire:
    """Hands requests to the functions that play services.

    A service honours keys for as long as its `Api` promises: a call with a final answer is not carried out again.

    Args:
        services: the functions, by the name of the `Api`.
        clock: for slow answers, and the lifetime of keys.

    Attributes:
        tries: the sent requests in order, by the name of the `Api`.
        troubles: the troubles of the next tries in order, by the name of the `Api`.
        errors: unexpected exceptions of services.
    """

    def __init__(self, services: Mapping[str, Service], clock: Clock) -> None:
        self.services = services
        self.tries: defaultdict[str, list[Request]] = defaultdict(list)
        self.troubles: defaultdict[str, deque[Trouble]] = defaultdict(deque)
        self.errors: list[BaseException] = []
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[datetime, Response]] = {}

    async def send(self, request: wire.Request) -> Received | str:
        api = CALLED.get()
        tried = _read(api, request)
        self.tries[api.name].append(tried)
        troubles = self.troubles[api.name]
        trouble = troubles.popleft() if troubles else timedelta(0)
        if isinstance(trouble, Response):
            return _received(trouble, api)
        if trouble == "down":
            return "ClientConnectorError"
        try:
            response = self._carried_out(api, tried)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not isinstance(error, OSError):
                self.errors.append(error)
            return type(error).__name__
        if trouble == "lost":
            return "ServerDisconnectedError"
        assert isinstance(trouble, timedelta)  # noqa: S101  # The only kind left.
        await self._clock.sleep(min(trouble, api.timeout).total_seconds())
        return "TimeoutError" if trouble > api.timeout else _received(response, api)

    def _carried_out(self, api: Api, tried: Request) -> Response:
        now = self._clock.now()
        at, response = self._known.get((api.name, tried.key), (now, None))
        if response is None or now - at >= api.key_lifetime:
            response = self.services[api.name](tried)
            if _received(response, api).is_final:
                self._known[api.name, tried.key] = now, response
        return response


def _read(api: Api, request: wire.Request) -> Request:
    path = request.address.removeprefix(api.base.rstrip("/"))
    body = None if request.body is None else read_json(request.body)
    return Request(request.method, path, request.headers[api.key_header], body, request.headers)


def _received(response: Response, api: Api) -> Received:
    headers = {"content-type": "application/json", **{name.lower(): item for name, item in response.headers.items()}}
    is_text = isinstance(response.body, str) and "json" not in headers["content-type"]
    text = response.body if is_text else "" if response.body is None else Json.of(response.body).text
    body = text.encode()
    return Received(response.status, headers, body if len(body) <= api.most_bytes else None)
