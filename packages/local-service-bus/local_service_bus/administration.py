"""What can be asked of a running endpoint besides being Service Bus: JSON over HTTP, only for clients on this machine.

POST   /faults       {a fault rule}          {"id"}
GET    /faults/{id}                          {"hits"}
DELETE /faults                               {}
GET    /clock                                {"now"}
POST   /clock        {"advance"}             {"now"}
GET    /counts       ?entity                 {"active", "locked", "scheduled", "deferred", "dead_letters"}
GET    /history      ?after                  {"accepted": [...]}; 410 if some of it is forgotten
DELETE /connections                          {}
DELETE /links        ?entity&condition       {}
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final

from aiohttp import web

from local_service_bus.amqp.server import HOST, AmqpServer
from local_service_bus.broker.history import ForgottenError
from local_service_bus.broker.refusals import DETACH_FORCED, RefusedError
from local_service_bus.clock import Clock
from local_service_bus.faults import FaultRule

_BAD: Final = (AttributeError, KeyError, TypeError, ValueError, RefusedError)
"""What makes no sense to the endpoint."""

_Asked = Mapping[str, str]
_Act = Callable[[_Asked, dict[str, Any]], dict[str, Any] | None]


class Administration:
    """Answers administrators, one after the other with the clients."""

    def __init__(self, server: AmqpServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[int]:
        """Listen on the loopback, and tell at which port; 0 picks a free one."""
        app = web.Application()
        app.add_routes(
            [
                web.post("/faults", _answering(self._add_fault)),
                web.get("/faults/{id}", _answering(self._hits)),
                web.delete("/faults", _answering(lambda *_: self._server.service.faults.clear())),
                web.get("/clock", _answering(lambda *_: {"now": self._clock.now()})),
                web.post("/clock", _answering(self._advance_clock)),
                web.get("/counts", _answering(self._counts)),
                web.get("/history", _answering(self._history)),
                web.delete("/connections", _answering(lambda *_: self._server.drop_connections())),
                web.delete("/links", _answering(self._detach_links)),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, port).start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    def _add_fault(self, _: _Asked, body: dict[str, Any]) -> dict[str, Any]:
        return {"id": self._server.service.faults.add(FaultRule(**body))}

    def _hits(self, asked: _Asked, _: dict[str, Any]) -> dict[str, Any]:
        return {"hits": self._server.service.faults.hits(int(asked["id"]))}

    def _advance_clock(self, _: _Asked, body: dict[str, Any]) -> dict[str, Any]:
        return {"now": self._server.advance_clock(float(body["advance"]))}

    def _counts(self, asked: _Asked, _: dict[str, Any]) -> dict[str, Any]:
        return asdict(self._server.service.broker.counts(asked["entity"]))

    def _history(self, asked: _Asked, _: dict[str, Any]) -> dict[str, Any]:
        accepted = self._server.service.broker.history.read(int(asked.get("after", "0")))
        return {"accepted": [asdict(item) for item in accepted]}

    def _detach_links(self, asked: _Asked, _: dict[str, Any]) -> None:
        self._server.detach_links(asked["entity"], asked.get("condition", DETACH_FORCED))


def _answering(act: _Act) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            body = await request.json() if request.can_read_body else {}
            return web.json_response(act({**request.query, **request.match_info}, body) or {})
        except ForgottenError as error:
            return web.json_response({"error": str(error)}, status=410)
        except _BAD as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)

    return answer
