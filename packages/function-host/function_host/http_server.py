"""The HTTP side: requests to functions, on loopback only.

Mirrors the real host: 404 for anything that matches no route and method, 500 with an empty body when a function fails, or
returns nothing, which the worker cannot encode. Keys (authLevel) are not checked, as under `func start`. `POST
/admin/functions/<name>` runs a timer function beside its schedule: 202, at once; whether it failed is in the log.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

import azure.functions as func
from aiohttp import web
from multidict import CIMultiDict

from .errors import SettingsError
from .functions import Function, HttpTrigger
from .routes import Route, RouteTable

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
_LARGEST_BODY = 100 * 1024 * 1024  # The real host's limit, in bytes.

Invoke = Callable[[Function, object], Awaitable[object]]


class HttpServer:
    """Serves all HTTP functions of an app.

    Args:
        prefix: host.json's `routePrefix`; empty for none.
        start: begins to run a timer function by its name; whether there is one.
        grace: seconds that running requests get when the server closes.
    """

    def __init__(
        self, functions: Iterable[Function], prefix: str, invoke: Invoke, start: Callable[[str], bool], grace: float
    ) -> None:
        self._table = RouteTable(
            (Route.parse(f"{prefix}/{function.trigger.route.template}"), function.trigger.methods, function)
            for function in functions
            if isinstance(function.trigger, HttpTrigger)
        )
        self._invoke = invoke
        self._start = start
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_post("/admin/functions/{name}", self._run)
        application.router.add_route("*", "/{path:.*}", self._respond)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=grace)

    async def open(self, port: int) -> str:
        """Listen, on a free port when it is 0, and return the server's address.

        Raises:
            SettingsError: the port is taken.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, port).start()
        except OSError as error:
            raise SettingsError(f"Port {port} cannot be had: choose another, or 0 for a free one ({error}).") from error
        return f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        """Take no more requests, wait for the running ones up to the grace, and close."""
        await self._runner.cleanup()

    async def _run(self, request: web.Request) -> web.Response:
        return web.Response(status=202 if self._start(request.match_info["name"]) else 404)

    async def _respond(self, request: web.Request) -> web.Response:
        found = self._table.find(request.method, request.raw_path.partition("?")[0])
        if found is None:
            return web.Response(status=404)
        function, route_parameters = found
        value = await http_request(request, route_parameters)
        try:
            return http_response(await self._invoke(function, value))
        except Exception:
            # Whatever a function raises is a 500; the details are for the log, not for the caller.
            logger.exception("%s: failed", function.name)
            return web.Response(status=500)


async def http_request(request: web.Request, route_parameters: dict[str, str]) -> func.HttpRequest:
    """The function's view of a request; repeated parameters and headers are joined by commas."""
    return func.HttpRequest(
        method=request.method,
        url=str(request.url),
        headers={name: ",".join(request.headers.getall(name)) for name in request.headers},
        params={name: ",".join(request.query.getall(name)) for name in request.query},
        route_params=route_parameters,
        body=await request.read(),
    )


def http_response(result: object) -> web.Response:
    """The reply for what a function returned.

    Raises:
        TypeError: it is neither a `func.HttpResponse` nor a text.
    """
    if isinstance(result, str):
        return web.Response(text=result)
    if not isinstance(result, func.HttpResponse):
        raise TypeError(f"an HTTP function returned {type(result).__name__}: return a func.HttpResponse or a str")
    headers = CIMultiDict(result.headers.items())
    is_text = result.mimetype.startswith("text/")
    headers.setdefault("Content-Type", f"{result.mimetype}; charset={result.charset}" if is_text else result.mimetype)
    return web.Response(status=result.status_code, headers=headers, body=result.get_body())
