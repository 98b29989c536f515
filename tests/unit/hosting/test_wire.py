"""The wire of calls, against a server that is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from exactlyonce.transports.http import HttpWire, Received, Request

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def wire() -> AsyncIterator[HttpWire]:
    wire = HttpWire()
    yield wire
    await wire.close()


async def asked(wire: HttpWire, answer: Answer, **more: Any) -> Received | str:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        given: dict[str, Any] = {
            "method": "POST",
            "headers": {},
            "body": None,
            "timeout": timedelta(seconds=20),
            "most_bytes": 10,
        }
        return await wire.send(Request(**{**given, "address": str(server.make_url("/v1/a?b=c")), **more}))


async def test_a_request_arrives_and_its_answer_comes_back(wire: HttpWire) -> None:
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.path_qs, request.headers["Idempotency-Key"], await request.read()))
        return web.Response(status=201, body=b"0123456789", headers={"X-A": "b"})

    received = await asked(wire, answer, headers={"Idempotency-Key": "k"}, body=b"{}")
    assert isinstance(received, Received)
    assert (received.status, received.body, received.headers["x-a"]) == (201, b"0123456789", "b")
    assert seen == [("POST", "/v1/a?b=c", "k", b"{}")]


async def test_a_body_that_is_too_long_is_not_read(wire: HttpWire) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"0123456789a")

    received = await asked(wire, answer)
    assert isinstance(received, Received)
    assert (received.status, received.body) == (200, None)


async def test_no_redirect_is_followed_and_no_cookie_kept(wire: HttpWire) -> None:
    cookies = []

    async def answer(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        return web.Response(status=307, headers={"Location": "https://evil.example/", "Set-Cookie": "a=b"})

    for _ in range(2):
        received = await asked(wire, answer)
        assert isinstance(received, Received)
        assert (received.status, received.headers["location"]) == (307, "https://evil.example/")
    assert cookies == [None, None]


async def test_an_answer_that_does_not_come_in_time_is_none(wire: HttpWire) -> None:
    gone = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        await gone.wait()
        return web.Response()

    received = await asked(wire, answer, timeout=timedelta(milliseconds=1))
    gone.set()
    assert isinstance(received, str)
    assert "Timeout" in received


async def test_a_connection_that_breaks_is_named(wire: HttpWire) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    assert isinstance(await asked(wire, answer), str)
    assert isinstance(await asked(wire, answer, address="http://127.0.0.1:1/"), str)


async def test_headers_that_cannot_be_are_an_error_of_the_try(wire: HttpWire) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response()

    assert await asked(wire, answer, headers={"Authorization": "a\r\nb: c"}) == "ValueError"


async def test_a_closed_wire_opens_again(wire: HttpWire) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response()

    await wire.close()
    assert isinstance(await asked(wire, answer), Received)
    await wire.close()
    assert isinstance(await asked(wire, answer), Received)
