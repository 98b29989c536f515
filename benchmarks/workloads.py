"""What the servers are asked to do: the same requests to each, by sixteen clients at once, without an SDK."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter
from typing import Any, Final

from benchmarks.servers import Server
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.raw_connection import RawAnswer, RawConnection, Signer

CLIENTS: Final = 16
DOCUMENTS: Final = 20_000
GAMES: Final = 200
"""Partition keys of the documents that are queried."""

PLAYERS: Final = 1_000
_COLLECTION: Final = ["dbs", "bench", "colls", "items"]
_ITEMS: Final = [*_COLLECTION, "docs"]
_FILLER: Final = "x" * 800
"""Makes a document about 1 KB."""

_QUERY: Final = {
    "x-ms-documentdb-query-enablecrosspartition": "True",
    "x-ms-max-item-count": "100",
    "Content-Type": "application/query+json",
}
QUERIES: Final = {
    "query: one player's documents, any partition": "SELECT * FROM c WHERE c.player = @player",
    "query: one game's best ten": "SELECT TOP 10 c.id, c.score FROM c WHERE c.game = @game ORDER BY c.score DESC",
}
"""By name; the first finds 20 documents of 20,000, the other sorts the 100 of one partition key."""


@dataclass
class Load:
    """Sixteen connections to one server, with documents to read, write and query."""

    server: Server
    signer: Signer = field(default_factory=lambda: Signer(WELL_KNOWN_KEY))
    connections: list[RawConnection] = field(default_factory=list)
    etags: dict[int, str] = field(default_factory=dict)

    async def prepare(self, documents: int = DOCUMENTS) -> None:
        """Connect and create all documents."""
        self.connections = [await self._open() for _ in range(CLIENTS)]
        key = {"paths": ["/game"], "kind": "Hash", "version": 2}
        await self._expect(201, 0, self.signer.request("POST", ["dbs"], {"id": "bench"}))
        await self._expect(201, 0, self.signer.request("POST", _COLLECTION[:3], {"id": "items", "partitionKey": key}))
        await asyncio.gather(*(self._create(client, documents) for client in range(CLIENTS)))

    def close(self) -> None:
        """End the connections."""
        for connection in self.connections:
            connection.close()

    async def measure(self, workload: str, operations: int) -> float:
        """Operations per second over `operations` of them, shared by all clients."""
        act = {"point read": self._read, "conditional write": self._write}.get(workload)
        beginning = perf_counter()
        share = operations // CLIENTS
        if act is not None:
            await asyncio.gather(*(act(client, share) for client in range(CLIENTS)))
        else:
            await asyncio.gather(*(self._query(client, share, QUERIES[workload]) for client in range(CLIENTS)))
        return share * CLIENTS / (perf_counter() - beginning)

    async def _create(self, client: int, documents: int) -> None:
        for number in range(client, documents, CLIENTS):
            body = _document(number)
            request = self.signer.request("POST", _ITEMS, body, key=body["game"])
            self.etags[number] = (await self._expect(201, client, request)).headers["etag"]

    async def _read(self, client: int, times: int) -> None:
        request = self.signer.request("GET", [*_ITEMS, f"d{client}"], key=_document(client)["game"])
        for _ in range(times):
            await self._expect(200, client, request)

    async def _write(self, client: int, times: int) -> None:
        body, path = _document(client), [*_ITEMS, f"d{client}"]
        for _ in range(times):
            guard = {"If-Match": self.etags[client]}
            request = self.signer.request("PUT", path, body, key=body["game"], headers=guard)
            self.etags[client] = (await self._expect(200, client, request)).headers["etag"]

    async def _query(self, client: int, times: int, text: str) -> None:
        chance = Random(client)
        for _ in range(times):
            game, player = f"game-{chance.randrange(GAMES)}", f"player-{chance.randrange(PLAYERS)}"
            values = {"@game": game, "@player": player}
            parameters = [{"name": name, "value": value} for name, value in values.items() if name in text]
            key = game if "@game" in text else None
            body = {"query": text, "parameters": parameters}
            answer = await self._expect(200, client, self.signer.request("POST", _ITEMS, body, key=key, headers=_QUERY))
            _require_rows(answer.content["Documents"], text)

    async def _open(self) -> RawConnection:
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # Both servers sign their own certificate.
        return await RawConnection.open(self.server.endpoint, trust)

    async def _expect(self, status: int, client: int, request: bytes) -> RawAnswer:
        answer = await self.connections[client].send(request)
        if answer.headers.get("connection", "").lower() == "close":
            self.connections[client].close()
            self.connections[client] = await self._open()
        if answer.status != status:
            raise RuntimeError(f"{self.server.name} answers {answer.status}: {answer.body[:300]!r}")
        return answer


def _document(number: int) -> dict[str, Any]:
    return {
        "id": f"d{number}",
        "game": f"game-{number % GAMES}",
        "player": f"player-{number % PLAYERS}",
        "score": number * 7919 % DOCUMENTS,
        "filler": _FILLER,
    }


def _require_rows(rows: Sequence[Any], text: str) -> None:
    """A fast wrong answer does not count."""
    expected = 10 if "TOP 10" in text else DOCUMENTS // (GAMES if "@game" in text else PLAYERS)
    if len(rows) != expected:
        raise RuntimeError(f"{text!r} found {len(rows)} instead of {expected} documents.")
