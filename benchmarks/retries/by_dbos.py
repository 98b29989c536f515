"""DBOS on PostgreSQL: the key of a request is the id of its workflow, in one of two processes."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.port import installed, library
from benchmarks.peers.postgres import postgres, version
from benchmarks.retries.killing import Killable
from benchmarks.retries.port import Door, Product, Serving

EXECUTORS: Final = 2
_TABLE: Final = "CREATE TABLE tallies (entity text NOT NULL, key text NOT NULL)"
_EFFECTS: Final = "SELECT key, count(*) FROM tallies GROUP BY key"


class OnDbos:
    """DBOS at work. Its database is not killed, as Cosmos DB is not."""

    path = "/tallies/{entity}"
    expiring: Final = {"known until its workflow is deleted (by default, never)": "/tallies/{entity}"}
    processes = EXECUTORS

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        command = [sys.executable, "-m", "benchmarks.retries.dbos_service", url]
        self._executors = [
            Killable([*command, f"executor-{number}"], folder / f"executor-{number}.log") for number in range(EXECUTORS)
        ]
        self._doors: dict[int, Door] = {}

    @property
    def doors(self) -> Sequence[Door]:
        return tuple(self._doors.values())

    async def open(self) -> None:
        """Create the table, and start the executors, one after the other: the first one migrates the database."""
        await asyncio.to_thread(self._ask, _TABLE)
        for number in range(EXECUTORS):
            await self._start(number)

    async def restart(self, process: int) -> None:
        await self._executors[process].kill()
        await self._start(process)

    async def _start(self, number: int) -> None:
        await self._executors[number].start()
        self._doors[number] = Door(f"http://127.0.0.1:{int(await self._executors[number].first_line())}")

    async def effects(self) -> Counter[str]:
        rows = await asyncio.to_thread(self._ask, _EFFECTS)
        return Counter(dict(rows))

    async def expire(self) -> None:
        """Delete all workflows, as its retention policy does with those that are old."""
        await asyncio.to_thread(self._delete)

    def _delete(self) -> None:
        client = library("dbos").DBOSClient(system_database_url=self._url)
        workflows = [workflow.workflow_id for workflow in client.list_workflows()]
        client.delete_workflows(workflows)
        client.destroy()

    def _ask(self, statement: str) -> Any:
        with library("psycopg").connect(self._url, autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    async def close(self) -> None:
        """End the executors."""
        for executor in self._executors:
            await executor.kill()


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Serving]:
    with postgres(folder) as url:
        running = OnDbos(url, folder)
        try:
            await running.open()
            yield running
        finally:
            await running.close()


ON_DBOS: Final = Product(
    "DBOS on PostgreSQL", lambda: {**installed("dbos", "psycopg"), "PostgreSQL": version()}, _opened
)
