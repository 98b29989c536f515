"""DBOS: a workflow for each message, which has the message's id, with a transaction and a step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.peers.port import Message, Peer, Running, installed, library
from benchmarks.peers.postgres import postgres, version

THREADS: Final = 16

_TABLE: Final = "CREATE TABLE counters (entity text PRIMARY KEY, n bigint NOT NULL)"
_COUNT: Final = "INSERT INTO counters VALUES (:entity, 1) ON CONFLICT (entity) DO UPDATE SET n = counters.n + 1"


class Dbos:
    """Workflows in threads: coroutines took twice as long.

    Counter and checkpoint are one transaction, in the database that DBOS itself uses.
    """

    def __init__(self, url: str, question_of_size: str) -> None:
        self._dbos, self._sql = library("dbos"), library("sqlalchemy")
        self._size = question_of_size
        self._sink: set[str] = set()
        self._source = self._dbos.SQLAlchemyDatasource.create(url)
        with self._source.engine.begin() as connection:
            connection.execute(self._sql.text(_TABLE))
        self._process = self._workflow()
        self._dbos.DBOS.launch()
        self._threads = ThreadPoolExecutor(THREADS)

    def _workflow(self) -> Callable[[str, str], None]:
        """What the decorators make of the three functions that a user would write."""
        dbos, source, counting = self._dbos.DBOS, self._source, self._sql.text(_COUNT)

        def count(entity: str) -> None:
            source.sql_session().execute(counting, {"entity": entity})

        def process(message: str, entity: str) -> None:
            transaction(entity)
            step(message)

        def send(message: str) -> None:
            self._sink.add(message)

        transaction = source.transaction(count)
        step = dbos.step(name="send")(send)
        workflow: Callable[[str, str], None] = dbos.workflow(name="process")(process)
        return workflow

    async def deliver(self, message: Message) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._deliver, message)

    def _deliver(self, message: Message) -> None:
        with self._dbos.SetWorkflowID(message.id):
            self._process(message.id, message.entity)

    async def sent(self) -> int:
        return len(self._sink)

    async def counted(self) -> int:
        return self._ask("SELECT coalesce(sum(n), 0) FROM counters")

    async def stored(self) -> int:
        return self._ask(self._size)

    def _ask(self, question: str) -> int:
        with self._source.engine.begin() as connection:
            return int(connection.execute(self._sql.text(question)).scalar())

    def close(self) -> None:
        """End threads and connections."""
        self._threads.shutdown(cancel_futures=True)
        self._source.engine.dispose()


@asynccontextmanager
async def _on_sqlite(folder: Path) -> AsyncIterator[Running]:
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    with _launched(f"sqlite:///{folder / 'dbos.sqlite'}", size) as running:
        yield running


@asynccontextmanager
async def _on_postgres(folder: Path) -> AsyncIterator[Running]:
    size = "SELECT pg_database_size(current_database())"
    with postgres(folder) as url, _launched(url, size) as running:
        yield running


@contextmanager
def _launched(url: str, question_of_size: str) -> Iterator[Dbos]:
    """There can be one in a process, so every round destroys its own, whatever happens."""
    dbos = library("dbos").DBOS
    dbos(config={"name": "peers", "system_database_url": url, "log_level": "ERROR"})
    try:
        with closing(Dbos(url, question_of_size)) as running:
            yield running
    finally:
        dbos.destroy(destroy_registry=True)


DBOS_ON_SQLITE: Final = Peer("DBOS on SQLite", lambda: installed("dbos"), _on_sqlite)
DBOS_ON_POSTGRES: Final = Peer(
    "DBOS on PostgreSQL", lambda: {**installed("dbos", "psycopg"), "PostgreSQL": version()}, _on_postgres
)
