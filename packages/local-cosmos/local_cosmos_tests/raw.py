"""Signed requests to Cosmos DB without the SDK: nothing is retried, nothing is interpreted."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import quote, urlsplit

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
        self._host = urlsplit(endpoint).netloc
        self._key = base64.b64decode(key)

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
        date = formatdate(usegmt=True)
        sent = {"x-ms-date": date, "Authorization": self._authorization(verb, path, date), **(headers or {})}
        if key is not None:
            sent["x-ms-documentdb-partitionkey"] = json.dumps([key])
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self._host)
        try:
            connection.request(verb, "/" + quote(path), content, sent)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        received = {name.lower(): value for name, value in response.getheaders()}
        return RawReply(response.status, received, json.loads(text) if text else None)

    def _authorization(self, verb: str, path: str, date: str) -> str:
        segments = path.strip("/").split("/") if path else []
        odd = len(segments) % 2
        kind = segments[-1] if odd else segments[-2] if segments else ""
        link = "/".join(segments[:-1] if odd else segments)
        text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.digest(self._key, text.encode(), hashlib.sha256)).decode()
        return quote(f"type=master&ver=1.0&sig={signature}")
