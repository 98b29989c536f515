"""The server of the console. It answers browsers of this machine only, and the pages that it served itself."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector, web

from exactlyonce.errors import ConfigurationError
from exactlyonce_dev.plan import LOOPBACK
from exactlyonce_dev.story import Story
from exactlyonce_dev.trial import Trials
from exactlyonce_dev.trouble import Trouble

_HERE: Final = frozenset({LOOPBACK, "localhost", "::1"})
_SECONDS: Final = 60
_PAGE: Final = {
    "": ("page.html", "text/html"),
    "console.css": ("console.css", "text/css"),
    **{name: (name, "text/javascript") for name in ("console.js", "dom.js", "messages.js", "panels.js")},
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_ASKED: Final = ("types", "entities", "entity", "unfinished", "parked")
_DONE: Final = ("requeue", "discard", "again", "end")
_TOKEN: Final = "X-Exactlyonce-Console"  # noqa: S105  # The name of a header.
_REQUIRED: Final = web.AppKey("required", str)
"""The token that requests have to bring; empty for none."""


State = Literal["starts", "runs", "killed", "ended"]
"""A process starts until it answers requests. One that was killed starts again; one that ended waits for a change of a file."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What `exactlyonce dev` adds to the console: the story of deliveries, and what breaks the app.

    Attributes:
        kill: kills the app's process; says whether there was one.
    """

    story: Story
    trouble: Trouble
    kill: Callable[[], bool]
    state: Callable[[], State]
    trials: Trials


class Console:
    """Serves the console.

    Args:
        backstage: the socket file of the process that has the application.
        place: what is looked at, in words.
        acts: whether it does anything but look.
        stage: of an app on this machine; None for an account.
        token: that requests have to bring, where other users of this machine must not ask; None for none.
    """

    def __init__(
        self, backstage: Path, place: str, *, acts: bool = True, stage: Stage | None = None, token: str | None = None
    ) -> None:
        self._backstage = backstage
        self._about = {"place": place, "acts": acts, "dev": stage is not None}
        self._stage = stage
        self._token = token

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[str]:
        """Serve the console on a port of this machine, 0 for a free one; gives its address."""
        runner = web.AppRunner(self.server(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
            token = "" if self._token is None else f"#token={self._token}"  # No server and no log gets a fragment.
            yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/{token}"
        finally:
            await runner.cleanup()

    def server(self) -> web.Application:
        """The requests that are answered."""
        server = web.Application(middlewares=[_guarded], client_max_size=1_000_000)
        server[_REQUIRED] = self._token or ""
        server.add_routes([web.get(f"/{name}", _file(*what)) for name, what in _PAGE.items()])
        server.add_routes([web.get("/api/about", self._tell_about)])
        server.add_routes([web.get(f"/api/{name}", self._ask) for name in _ASKED])
        server.add_routes([web.post(f"/api/{name}", self._ask) for name in _DONE])
        if self._stage is not None:
            server.add_routes(_Playing(self._stage).routes)
        return server

    async def _tell_about(self, _: web.Request) -> web.Response:
        return web.json_response(self._about)

    async def _ask(self, request: web.Request) -> web.Response:
        """Let the app's process answer."""
        # To requeue thousands takes minutes, at the rate of 'exactlyonce ops'.
        timeout = ClientTimeout(_SECONDS if request.method == "GET" else None)
        url = f"http://app/{request.path.rpartition('/')[2]}"
        try:
            async with (
                ClientSession(connector=UnixConnector(str(self._backstage)), timeout=timeout) as session,
                session.request(request.method, url, params=request.query, data=await request.read()) as reply,
            ):
                return web.Response(body=await reply.read(), status=reply.status, content_type="application/json")
        except TimeoutError:
            return _problem(
                f"There is no answer after {_SECONDS} s: the store does not answer, or much is stored.", 504
            )
        except ClientError:
            return _problem("The app does not run at present; the log of exactlyonce dev says why.", 503)


class _Playing:
    """The requests about an app on this machine."""

    def __init__(self, stage: Stage) -> None:
        self._story, self._trouble, self._trials = stage.story, stage.trouble, stage.trials
        self._kill, self._state = stage.kill, stage.state

    @property
    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/messages", self._messages),
            web.get("/api/trouble", self._armed),
            web.post("/api/test", self._test),
            web.post("/api/trouble", self._make_trouble),
            web.post("/api/calm", self._calm),
            web.post("/api/kill", self._kill_app),
        ]

    async def _test(self, request: web.Request) -> web.Response:
        """The story of a delivery as a test, which was run."""
        wanted = await request.json()
        try:
            return web.json_response(await self._trials.result({"id": wanted.get("id", ""), **self._story.whole()}))
        except ConfigurationError as error:
            return _problem(str(error), 409)

    async def _messages(self, request: web.Request) -> web.Response:
        version = str(self._story.version)
        changed = request.query.get("version") != version
        messages = self._story.rows() if changed else None
        return web.json_response({"version": version, "messages": messages, "app": self._state()})

    async def _armed(self, _: web.Request) -> web.Response:
        return web.json_response({"armed": await self._trouble.armed()})

    async def _make_trouble(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        try:
            await self._trouble.make(wanted.get("kind", ""), wanted.get("container") or None)
            self._story.expect(wanted["kind"])
        except (ConfigurationError, ValueError) as error:
            return _problem(str(error), 409)
        return await self._armed(request)

    async def _calm(self, request: web.Request) -> web.Response:
        await self._trouble.end()
        self._story.calm()
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
    if _name(host) not in _HERE:
        return f"The console is for this machine only: open it as http://{LOOPBACK}."
    if headers.get("Origin", f"http://{host}") != f"http://{host}" or headers.get("Sec-Fetch-Site", "none") not in (
        "none",
        "same-origin",
    ):
        return "The console takes no requests of other pages."
    required = request.app[_REQUIRED]
    if request.path.startswith("/api/") and not secrets.compare_digest(headers.get(_TOKEN, ""), required) and required:
        return "Open the console by the whole address that the command has printed: it ends with a token."
    if request.method != "GET" and request.content_type != "application/json":
        return "The console takes JSON only."
    return None


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # A bracket that nothing closes.
        return None


def _file(name: str, type: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(_: web.Request) -> web.Response:
        text = (files(__package__) / name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=type, charset="utf-8")

    return serve


def _problem(sentence: str, status: int) -> web.Response:
    problem: dict[str, Any] = {"error": sentence}
    return web.json_response(problem, status=status, headers=_HEADERS)
