"""The server of the console. It answers browsers of this machine only, and the pages that it served itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector, web

from exactlyonce.errors import ConfigurationError
from exactlyonce_dev.plan import LOOPBACK
from exactlyonce_dev.story import Story
from exactlyonce_dev.trouble import Trouble

_HERE: Final = frozenset({LOOPBACK, "localhost", "::1"})
_SECONDS: Final = 60
_PAGE: Final = {
    "": ("page.html", "text/html"),
    "console.css": ("console.css", "text/css"),
    "console.js": ("console.js", "text/javascript"),
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_ASKED: Final = ("types", "entities", "entity", "parked")
_DONE: Final = ("requeue", "discard", "again")


class Console:
    """Serves the console.

    Args:
        story: of the app.
        trouble: for its local Cosmos DB.
        backstage: the socket file of the app's process.
        kill: kills that process; says whether there was one.
    """

    def __init__(self, story: Story, trouble: Trouble, backstage: Path, kill: Callable[[], bool]) -> None:
        self._story = story
        self._trouble = trouble
        self._backstage = backstage
        self._kill = kill

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[str]:
        """Serve the console on a port of this machine, 0 for a free one; gives its address."""
        runner = web.AppRunner(self.server(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
            yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()

    def server(self) -> web.Application:
        """The requests that are answered."""
        server = web.Application(middlewares=[_guarded], client_max_size=1_000_000)
        server.add_routes([web.get(f"/{name}", _file(*what)) for name, what in _PAGE.items()])
        server.add_routes([web.get(f"/api/{name}", self._ask) for name in _ASKED])
        server.add_routes([web.post(f"/api/{name}", self._ask) for name in _DONE])
        server.add_routes(
            [
                web.get("/api/messages", self._messages),
                web.get("/api/trouble", self._armed),
                web.post("/api/trouble", self._make_trouble),
                web.post("/api/calm", self._calm),
                web.post("/api/kill", self._kill_app),
            ]
        )
        return server

    async def _ask(self, request: web.Request) -> web.Response:
        """Let the app's process answer."""
        timeout, url = ClientTimeout(_SECONDS), f"http://app/{request.path.rpartition('/')[2]}"
        try:
            async with (
                ClientSession(connector=UnixConnector(str(self._backstage)), timeout=timeout) as session,
                session.request(request.method, url, params=request.query, data=await request.read()) as reply,
            ):
                return web.Response(body=await reply.read(), status=reply.status, content_type="application/json")
        except (ClientError, TimeoutError):
            return _problem("The app does not run at present; the log of exactlyonce dev says why.", 503)

    async def _messages(self, request: web.Request) -> web.Response:
        version = str(self._story.version)
        changed = request.query.get("version") != version
        return web.json_response({"version": version, "messages": self._story.rows() if changed else None})

    async def _armed(self, _: web.Request) -> web.Response:
        return web.json_response({"armed": await self._trouble.armed()})

    async def _make_trouble(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        try:
            await self._trouble.make(wanted.get("kind", ""), wanted.get("container") or None)
        except (ConfigurationError, ValueError) as error:
            return _problem(str(error), 409)
        return await self._armed(request)

    async def _calm(self, request: web.Request) -> web.Response:
        await self._trouble.end()
        return await self._armed(request)

    async def _kill_app(self, _: web.Request) -> web.Response:
        return web.json_response({}) if self._kill() else _problem("The app does not run at present.", 503)


@web.middleware
async def _guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuses other hosts' names, which lead here by DNS rebinding, and requests of other pages."""
    if refusal := _refusal(request):
        return _problem(refusal, 403)
    try:
        response = await handler(request)
    except web.HTTPException as error:
        return _problem(error.reason, error.status)
    response.headers.update(_HEADERS)
    return response


def _refusal(request: web.Request) -> str | None:
    headers, host = request.headers, request.headers.get("Host", "")
    if urlsplit(f"//{host}").hostname not in _HERE:
        return f"The console is for this machine only: open it as http://{LOOPBACK}."
    if headers.get("Origin", f"http://{host}") != f"http://{host}" or headers.get("Sec-Fetch-Site", "none") not in (
        "none",
        "same-origin",
    ):
        return "The console takes no requests of other pages."
    if request.method != "GET" and request.content_type != "application/json":
        return "The console takes JSON only."
    return None


def _file(name: str, type: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(_: web.Request) -> web.Response:
        text = (files(__package__) / name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=type, charset="utf-8")

    return serve


def _problem(sentence: str, status: int) -> web.Response:
    problem: dict[str, Any] = {"error": sentence}
    return web.json_response(problem, status=status, headers=_HEADERS)
