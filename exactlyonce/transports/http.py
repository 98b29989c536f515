"""The wire of calls: one HTTP request, and its answer or failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

import aiohttp

_NOT_FINAL: Final = frozenset({401, 408, 409, 425, 429})
"""401 is about the credentials of one try, and may come before the service has looked for the key of an earlier try."""
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    Attributes:
        headers: the key and credentials among them, so the representation of a request has no headers.
        body: JSON; None for no body.
        timeout: the limit for the whole exchange.
        most_bytes: the limit for the answer's body.
    """

    method: str
    address: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout: timedelta
    most_bytes: int

    def __repr__(self) -> str:
        return f"Request({self.method!r})"


@dataclass(frozen=True, slots=True)
class Received:
    """An answer.

    Attributes:
        headers: names in lower case.
        body: the bytes as received; None for a body above the limit.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def is_final(self) -> bool:
        """Whether the service, or a gateway before it, has decided. After any other answer the call is tried again."""
        return self.status not in _NOT_FINAL and self.status < _SERVER_ERROR


class Wire(Protocol):
    """Sends requests."""

    async def send(self, request: Request) -> Received | str:
        """Send a request. Returns the class of the failure without an answer: then the request may have been carried out."""


class HttpWire:
    """Sends requests with aiohttp: follows no redirect, and keeps no cookie. Its client opens on first use."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Received | str:
        timeout = aiohttp.ClientTimeout(total=request.timeout.total_seconds())
        try:
            async with self._open().request(
                request.method,
                request.address,
                headers=request.headers,
                data=request.body,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Received(response.status, headers, await _body(response, request.most_bytes))
        # Credentials may be no valid header (ValueError), and a broken answer may raise any of these from the parser.
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            return type(error).__name__

    async def close(self) -> None:
        """Close the client. A later use opens a new client."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)  # Each `Api` has a limit of its own.
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    read = bytearray()
    async for part in response.content.iter_chunked(most + 1):
        read += part
        if len(read) > most:
            return None
    return bytes(read)
