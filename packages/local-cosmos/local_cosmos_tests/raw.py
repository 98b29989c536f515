"""Signed requests to Cosmos DB without the SDK: nothing is retried, nothing is interpreted."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import urlsplit

from local_cosmos.raw_connection import Signer

KEY: Final = {"paths": ["/pk"], "kind": "Hash", "version": 2}
"""The partition key of a container."""
UPSERT: Final = {"x-ms-documentdb-is-upsert": "True"}
QUERY: Final = {"Content-Type": "application/query+json"}
BATCH: Final = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
BULK: Final = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}
"""Of a request for the first physical partition."""


@dataclass(frozen=True)
class RawReply:
    """Status, headers in lower case, parsed body (None for none)."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def substatus(self) -> int:
        """The `x-ms-substatus` header, 0 for none."""
        return int(self.headers.get("x-ms-substatus", 0))


class RawClient:
    """Sends one request per connection.

    Args:
        endpoint: `http://host:port/`.
        key: Master key in base64.
    """

    def __init__(self, endpoint: str, key: str) -> None:
        self._url = urlsplit(endpoint)
        self._signer = Signer(key)

    def send(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawReply:
        """Send a signed request.

        Args:
            verb: The HTTP method.
            path: Such as `dbs/d/colls/c/docs/id`, not encoded.
            body: Serialised as JSON unless it is bytes.
            key: The partition key, a string.
            headers: More headers.
        """
        segments = path.strip("/").split("/") if path else []
        sent = {"Host": self._url.netloc, **(headers or {})}
        request = self._signer.request(verb, segments, b"" if body is None else body, key=key, headers=sent)
        with socket.create_connection((str(self._url.hostname), self._url.port or 80)) as connection:
            connection.sendall(request)
            with HTTPResponse(connection, method=verb) as response:
                response.begin()
                text = response.read()
        received = {name.lower(): value for name, value in response.getheaders()}
        return RawReply(response.status, received, json.loads(text) if text else None)
