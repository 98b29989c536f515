"""From a reply to HTTP, well-behaved or not."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import lru_cache

from aiohttp import web

from local_cosmos.semantics.emulator import Outcome
from local_cosmos.semantics.requests import Reply

_BODILESS = frozenset({204, 304})


def response(reply: Reply, now: float, location: str | None = None) -> web.Response:
    """A reply as HTTP, with the headers that the SDKs look at.

    Args:
        location: What was asked for, as the client addressed it.
    """
    headers = {
        "Date": _date(int(now)),
        "Content-Type": "application/json",
        "x-ms-request-charge": f"{reply.charge:.2f}",
        "x-ms-activity-id": str(uuid.uuid4()),
        "x-ms-gatewayversion": "version=2.0.0",
        "x-ms-serviceversion": "version=local",
    }
    optional = (
        ("Content-Location", location),
        ("etag", reply.etag),
        ("lsn", reply.lsn),
        ("x-ms-session-token", reply.session_token),
        ("x-ms-alt-content-path", reply.content_path),
        ("x-ms-documentdb-partitionkeyrangeid", reply.range_id),
        ("x-ms-continuation", reply.continuation),
        ("x-ms-item-count", reply.item_count),
        ("x-ms-substatus", reply.substatus or None),
        ("x-ms-retry-after-ms", reply.retry_after_ms),
        ("x-ms-resource-usage", reply.resource_usage),
        ("x-ms-documentdb-collection-index-transformation-progress", reply.index_progress),
        ("x-ms-documentdb-query-metrics", reply.query_metrics),
        ("x-ms-cosmos-index-utilization", reply.index_metrics),
    )
    for name, value in optional:
        if value is not None:
            headers[name] = str(value)
    return web.Response(status=reply.status, body=None if reply.status in _BODILESS else reply.body, headers=headers)


@lru_cache(maxsize=8)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


async def send(
    request: web.BaseRequest, outcome: Outcome, now: float, released: Callable[[], Awaitable[None]]
) -> web.StreamResponse:
    """Carry out an outcome on the connection.

    Args:
        released: Waits until a hanging request may go.
    """
    location = f"{request.scheme}://{request.host}{request.raw_path}"
    match outcome.manner:
        case "answer":
            return response(outcome.reply, now, location)
        case "truncate":
            return await _truncated(request, response(outcome.reply, now, location))
        case "reset":
            _reset(request)
        case "hang":
            await released()
            _close(request)
        case "close":
            _close(request)
    return web.Response()  # Written to a closed connection, which aiohttp takes for a client that left.


async def _truncated(request: web.BaseRequest, whole: web.Response) -> web.StreamResponse:
    """Announce the whole body, send the first half, end the connection."""
    body = whole.body if isinstance(whole.body, bytes) else b""
    half = web.StreamResponse(status=whole.status, headers=whole.headers)
    half.content_length = len(body)
    await half.prepare(request)
    await half.write(body[: len(body) // 2])
    _close(request)
    return half


def _close(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.close()


def _reset(request: web.BaseRequest) -> None:
    """With a linger time of zero, closing discards the connection: RST instead of FIN."""
    if request.transport is not None:
        connection: socket.socket = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
