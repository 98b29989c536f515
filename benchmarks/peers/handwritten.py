"""Inbox and outbox in PostgreSQL, as one would write them by hand: the floor, with nothing in it that could be left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.port import Message, Peer, Running, installed, library
from benchmarks.peers.postgres import postgres, version

CONNECTIONS: Final = 16
"""For deliveries. The relay has one of its own."""

_TABLES: Final = """
CREATE TABLE inbox (message text PRIMARY KEY);
CREATE TABLE counters (entity text PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE outbox (position bigserial PRIMARY KEY, output text NOT NULL);
"""
_REMEMBER: Final = "INSERT INTO inbox VALUES (%s) ON CONFLICT DO NOTHING"
_COUNT: Final = "INSERT INTO counters VALUES (%s, 1) ON CONFLICT (entity) DO UPDATE SET n = counters.n + 1"
_OWE: Final = "INSERT INTO outbox (output) VALUES (%s)"
_TAKE: Final = """
DELETE FROM outbox WHERE position IN (SELECT position FROM outbox ORDER BY position LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING output
"""


class Handwritten:
    """One transaction for each delivery. A relay sends what is owed, and forgets it when it was sent."""

    def __init__(self, connections: list[Any]) -> None:
        self._relaying, *others = connections
        self._idle: asyncio.Queue[Any] = asyncio.Queue()
        for connection in others:
            self._idle.put_nowait(connection)
        self._owing = asyncio.Event()
        self._sink: set[str] = set()

    async def deliver(self, message: Message) -> None:
        connection = await self._idle.get()
        try:
            async with connection.transaction():
                # A copy waits here while its message is being processed, and then finds it.
                remembered = await connection.execute(_REMEMBER, (message.id,))
                if remembered.rowcount:
                    await connection.execute(_COUNT, (message.entity,))
                    await connection.execute(_OWE, (message.id,))
        finally:
            self._idle.put_nowait(connection)
        self._owing.set()

    async def relay(self) -> None:
        """Send what is owed, until it is cancelled. Being woken spares it the delay of a relay that polls."""
        while True:
            await self._owing.wait()
            self._owing.clear()
            while await self._relayed():
                pass

    async def _relayed(self) -> bool:
        async with self._relaying.transaction():
            outputs = await (await self._relaying.execute(_TAKE)).fetchall()
            self._sink.update(output for (output,) in outputs)
        return bool(outputs)

    async def sent(self) -> int:
        return len(self._sink)

    async def counted(self) -> int:
        return await self._ask("SELECT coalesce(sum(n), 0)::bigint FROM counters")

    async def stored(self) -> int:
        return await self._ask("SELECT pg_database_size(current_database())")

    async def _ask(self, question: str) -> int:
        (answer,) = await (await self._relaying.execute(question)).fetchone()
        return int(answer)


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[Running]:
    psycopg = library("psycopg")
    with postgres(folder) as url:
        connect = psycopg.AsyncConnection.connect
        connections = [await connect(url, autocommit=True) for _ in range(CONNECTIONS + 1)]
        await connections[0].execute(_TABLES)
        running = Handwritten(connections)
        relay = asyncio.create_task(running.relay())
        try:
            yield running
        finally:
            relay.cancel()
            await asyncio.wait([relay])
            for connection in connections:
                await connection.close()


HANDWRITTEN: Final = Peer("PostgreSQL by hand", lambda: {"PostgreSQL": version(), **installed("psycopg")}, _open)
