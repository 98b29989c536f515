"""Signed requests to Cosmos DB over one kept connection, without the SDK: nothing is retried, nothing is interpreted.

For benchmarks, and for tests that need many requests or bad ones.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import quote, urlsplit

_LINE: Final = b"\r\n"
_LARGEST_HEAD: Final = 1024 * 1024
"""Bytes; also the buffer for bodies."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What came back.

    Attributes:
        headers: By name in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The body as JSON; None for an empty one."""
        return json.loads(self.body) if self.body else None

    @property
    def substatus(self) -> int:
        """The `x-ms-substatus` header, 0 for none."""
        return int(self.headers.get("x-ms-substatus", 0))


class RawConnection:
    """One connection; use it from one task at a time. Made by `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, endpoint: str, certificates: ssl.SSLContext | None = None) -> RawConnection:
        """Connect.

        Args:
            endpoint: `http://host:port/` or `https://host:port/`.
            certificates: Whom to trust with https.
        """
        url = urlsplit(endpoint)
        secured = certificates if url.scheme == "https" else None
        return cls(*await asyncio.open_connection(url.hostname, url.port, ssl=secured, limit=_LARGEST_HEAD))

    async def send(self, request: bytes) -> RawAnswer:
        """Send the bytes of one request and wait for its answer.

        Raises:
            asyncio.IncompleteReadError: The server closed the connection.
        """
        self._writer.write(request)
        await self._writer.drain()
        status_line, *lines = (await self._reader.readuntil(_LINE * 2)).decode("latin-1").splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return RawAnswer(int(status_line.split(" ", 2)[1]), headers, body)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


class Signer:
    """Makes requests signed with a master key.

    Args:
        key: In base64.
    """

    def __init__(self, key: str) -> None:
        self._key = base64.b64decode(key)

    def request(
        self,
        verb: str,
        path: Sequence[str],
        body: Any = b"",
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        date: str | None = None,
    ) -> bytes:
        """The bytes of a request.

        Args:
            path: Segments, not encoded: `["dbs", "d", "colls", "c"]`.
            body: Serialised as JSON unless it is bytes.
            key: The partition key, a string.
            date: For `x-ms-date`; now by default.
        """
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        date = formatdate(usegmt=True) if date is None else date
        sent = {"Host": "localhost", "x-ms-date": date, "Authorization": self._authorization(verb, path, date)}
        sent |= {"x-ms-version": "2020-07-15", "Content-Length": str(len(content)), **(headers or {})}
        if key is not None:
            sent["x-ms-documentdb-partitionkey"] = json.dumps([key])
        target = "/" + "/".join(quote(segment, safe="") for segment in path)
        lines = [f"{verb} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        return "\r\n".join(lines).encode("utf-8") + content

    def _authorization(self, verb: str, path: Sequence[str], date: str) -> str:
        is_list = len(path) % 2 == 1
        kind = path[-1] if is_list else path[-2] if path else ""
        link = "/".join(path[:-1] if is_list else path)
        text = f"{verb.lower()}\n{kind.lower()}\n{link}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.digest(self._key, text.encode("utf-8"), hashlib.sha256)).decode("ascii")
        return quote(f"type=master&ver=1.0&sig={signature}", safe="")
