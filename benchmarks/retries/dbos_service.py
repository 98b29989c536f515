"""DBOS behind HTTP, in a process of its own: `python -m benchmarks.retries.dbos_service URL EXECUTOR`.

It prints its port when it listens. What died with an executor goes on when an executor of that name starts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import uuid4

from aiohttp import web

from benchmarks.peers.port import library

THREADS: Final = 16
_COUNT: Final = "INSERT INTO tallies VALUES (:entity, :key)"
_TOTAL: Final = "SELECT count(*) FROM tallies WHERE entity = :entity"

Count = Callable[[str, str], dict[str, Any]]


def workflow(url: str) -> Count:
    """What the decorators make of the functions that a user would write: a key is counted by a row, in one transaction."""
    dbos, sql = library("dbos"), library("sqlalchemy")
    source = dbos.SQLAlchemyDatasource.create(url)

    def count(entity: str, key: str) -> dict[str, Any]:
        session, given = source.sql_session(), {"entity": entity, "key": key}
        session.execute(sql.text(_COUNT), given)
        return {"id": str(uuid4()), "total": session.execute(sql.text(_TOTAL), given).scalar()}

    transaction = source.transaction(count)

    def process(entity: str, key: str) -> dict[str, Any]:
        counted: dict[str, Any] = transaction(entity, key)
        return counted

    made: Count = dbos.DBOS.workflow(name="process")(process)
    return made


def application(process: Count) -> web.Application:
    """The workflow of a request has the key of the request for its id."""
    dbos, threads = library("dbos"), ThreadPoolExecutor(THREADS)

    def counted(key: str, entity: str, named: str) -> dict[str, Any]:
        with dbos.SetWorkflowID(key):
            return process(entity, named)

    async def answer(request: web.Request) -> web.Response:
        key, asked = request.headers["Idempotency-Key"], await request.json()
        entity = request.match_info["entity"]
        answered = await asyncio.get_running_loop().run_in_executor(threads, counted, key, entity, asked["key"])
        return web.json_response(answered)

    made = web.Application()
    made.router.add_post("/tallies/{entity}", answer)
    return made


async def serve(url: str, executor: str) -> None:
    """Serve until it is killed."""
    dbos = library("dbos").DBOS
    dbos(config={"name": "retries", "system_database_url": url, "executor_id": executor, "log_level": "ERROR"})
    process = workflow(url)
    dbos.launch()
    runner = web.AppRunner(application(process))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
