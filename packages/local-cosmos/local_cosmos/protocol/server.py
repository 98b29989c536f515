"""The HTTP server. It binds to the loopback address only."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable, Collection
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from aiohttp import StreamReader, web
from aiohttp.web import RequestPayloadError

from local_cosmos import front_page
from local_cosmos.protocol.admin import AdminEndpoints, AdminError
from local_cosmos.protocol.authorization import Authorization
from local_cosmos.protocol.parsing import parse_request, segments
from local_cosmos.protocol.wire import response, send
from local_cosmos.semantics.emulator import Emulator, Outcome
from local_cosmos.semantics.errors import RefusedError, bad_request, too_large
from local_cosmos.semantics.requests import ITEM_OPERATIONS, Request, refused

LARGEST_BODY: Final = 8 * 1024 * 1024
"""Bytes that are read at all; from 2 MB on the service refuses a request anyway, and says so per operation."""

LONGEST_SKEW_SECONDS: Final = 15 * 60
"""Documented: the date of a signature may differ from the server's time by so much."""


async def read_body(content: StreamReader) -> bytes:
    """The whole body of a request.

    Raises:
        RefusedError: 400 or 413; it is not sent as it was announced, or too large.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_BODY:
                raise too_large()
    except RequestPayloadError as error:
        raise bad_request("The body is not sent as its headers announce it.") from error
    return b"".join(pieces)


def require_recent(date: str, now: Callable[[], float] = time.time) -> None:
    """Accept the date that a request is signed with, by the machine's time: clients do not know of a clock that tests move.

    Raises:
        RefusedError: 401 or 403; not a date, or too far from now.
    """
    try:
        signed = _seconds(date)
    except (ValueError, OverflowError) as error:
        raise RefusedError(401, f"The request needs an HTTP date in x-ms-date or Date; it is {date!r}.") from error
    if abs(signed - now()) > LONGEST_SKEW_SECONDS:
        raise RefusedError(
            403, f"The authorization token is not valid at the current time: it is signed at {date}. Check the clock."
        )


@lru_cache(maxsize=256)
def _seconds(date: str) -> float:
    """Seconds since 1970; many requests bear the same date, which has whole seconds."""
    return parsedate_to_datetime(date).timestamp()


LOOPBACK: Final = "127.0.0.1"
_SHUTDOWN_SECONDS: Final = 1.0
_TURNS_TO_CONNECT: Final = 4
"""Turns of the event loop from the acceptance of a connection until the server knows of it, and one more."""
_BACKLOG: Final = 128


class PortTakenError(Exception):
    """A port on which the server cannot listen; the text says why."""


class CosmosServer:
    """Serves an emulator over http, or over https.

    Args:
        key: The account's master key, in base64.
        admin: True to serve the admin endpoints, too.
        tls: With this context over https; None for plain http.
    """

    def __init__(
        self,
        emulator: Emulator,
        key: str,
        *,
        admin: bool = False,
        tls: ssl.SSLContext | None = None,
        tokens: Collection[str] = (),
    ) -> None:
        self._emulator = emulator
        self._key = Authorization(key, tokens)
        self._admin = AdminEndpoints(emulator) if admin else None
        self._tls = tls
        self._released = asyncio.Condition()
        self._stopping = False
        self._runner: web.ServerRunner | None = None
        self._listening: socket.socket | None = None

    async def start(self, port: int = 0) -> str:
        """Begin to listen; port 0 picks a free one. Returns the endpoint, with a final slash.

        Raises:
            PortTakenError: another process listens there.
        """
        try:
            self._listening = socket.create_server((LOOPBACK, port), backlog=_BACKLOG)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise PortTakenError(f"Port {port} cannot be had ({why}). Choose another one, or 0.") from None
        server = web.Server(self._handle, access_log=None, auto_decompress=False)
        self._runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.SockSite(self._runner, self._listening, ssl_context=self._tls, backlog=_BACKLOG).start()
        bound = self._runner.addresses[0][1]
        return f"{'https' if self._tls else 'http'}://{LOOPBACK}:{bound}/"

    async def stop(self) -> None:
        """Release what hangs, close all connections."""
        self._stopping = True
        await self.release_hanging()
        if self._runner is None or self._runner.server is None or self._listening is None:
            return
        # Whatever is accepted has to be known before the server is closed: asyncio would leave it open.
        asyncio.get_running_loop().remove_reader(self._listening)
        for _ in range(_TURNS_TO_CONNECT):
            await asyncio.sleep(0)
        transports = [handler.transport for handler in self._runner.server.connections]
        await self._runner.cleanup()
        for transport in transports:
            if transport is not None:
                transport.abort()  # Over https a closed connection waits for the client to say goodbye.
        await asyncio.sleep(0)

    async def release_hanging(self) -> None:
        """Let requests go whose rule is gone."""
        async with self._released:
            self._released.notify_all()

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        started = self._emulator.elapsed()
        path = segments(http.raw_path)
        try:
            body = await read_body(http.content)
        except RefusedError as refusal:
            return response(refused(refusal), self._emulator.clock.now())
        if http.remote == LOOPBACK and front_page.is_wanted(http.method, path, http.headers):
            return web.Response(text=front_page.page(self._emulator, _base_url(http)), headers=front_page.HEADERS)
        if path[:1] == ["_admin"]:
            return await self._administer(http, path[1:], body)
        try:
            request = self._authorized(http, path, body)
        except RefusedError as refusal:
            return response(refused(refusal), self._emulator.clock.now())
        if self._emulator.latency and request.operation in ITEM_OPERATIONS:
            await asyncio.sleep(self._emulator.latency)
        outcome = self._emulator.serve(request, started)
        return await send(http, outcome, self._emulator.clock.now(), lambda: self._until_released(outcome))

    async def _administer(self, http: web.BaseRequest, path: list[str], body: bytes) -> web.Response:
        if self._admin is None or http.remote != LOOPBACK:
            return web.json_response({"message": "Not served; start the emulator with --admin."}, status=404)
        try:
            answer = self._admin.answer(http.method, path, http.query, body)
        except AdminError as error:
            return web.json_response({"message": str(error)}, status=400)
        await self.release_hanging()
        return web.json_response(answer)

    def _authorized(self, http: web.BaseRequest, path: list[str], body: bytes) -> Request:
        headers = http.headers
        date = headers.get("x-ms-date") or headers.get("Date") or ""
        self._key.check(http.method, path, date, headers.get("Authorization"))
        require_recent(date)
        return parse_request(http.method, path, headers, body, _base_url(http))

    async def _until_released(self, outcome: Outcome) -> None:
        async with self._released:
            await self._released.wait_for(lambda: self._stopping or not self._is_armed(outcome.fault))

    def _is_armed(self, fault: int | None) -> bool:
        return fault is not None and self._emulator.faults.is_armed(fault)


def _base_url(http: web.BaseRequest) -> str:
    """Scheme, host and port as the client knows them."""
    return f"{http.scheme}://{http.host}/"
