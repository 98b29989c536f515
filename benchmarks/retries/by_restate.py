"""Restate: a tally is a virtual object, and the key of a request is the idempotency key of its call."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import ClientSession

from benchmarks.peers.by_restate import SETTINGS, Restate, program, session, versions
from benchmarks.retries.killing import Killable
from benchmarks.retries.port import Door, Product, Serving
from benchmarks.retries.restate_service import BRIEF

_NODE: Final = "retries"
_STATE: Final = "SELECT value_utf8 AS times FROM state WHERE service_name = 'Tally'"


class OnRestate:
    """A server, and the process of its handlers. Expired keys go every second, where the default is every hour."""

    path = "/Tally/{entity}/count"
    expiring: Final = {
        f"known for {BRIEF.total_seconds():.0f} s (`idempotency_retention`; a day by default)": "/Tally/{entity}/count_briefly"
    }
    processes = 2

    def __init__(self, folder: Path, npm: Path, ingress: ClientSession, admin: ClientSession) -> None:
        command = [str(program(npm)), "--listen-mode", "unix", "--base-dir", str(folder), "--node-name", _NODE]
        settings = {**SETTINGS, "RESTATE_WORKER__CLEANUP_INTERVAL": "1s", "TMPDIR": str(folder)}
        self._server = Killable([*command, "--no-logo"], folder / "server.log", settings)
        self._serving = [sys.executable, "-m", "benchmarks.retries.restate_service"]
        self._handlers = Killable([*self._serving, "0"], folder / "service.log")
        self._socket = folder / _NODE / "ingress.sock"
        self._admin = admin
        self._restate = Restate(folder / _NODE, ingress, admin)

    @property
    def doors(self) -> Sequence[Door]:
        return (Door("http://restate", self._socket),)

    async def open(self) -> None:
        """Start both, and register the handlers."""
        await self._handlers.start()
        port = int(await self._handlers.first_line())
        self._handlers.command = [*self._serving, str(port)]
        await self._server.start()
        await self._restate.ready(lambda: self._server.has_ended)
        await self._restate.register(port)

    async def restart(self, process: int) -> None:
        killed = (self._handlers, self._server)[process]
        await killed.kill()
        await killed.start()
        if killed is self._handlers:
            await self._handlers.first_line()

    async def effects(self) -> Counter[str]:
        async with self._admin.post(
            "http://restate/query", json={"query": _STATE}, headers={"Accept": "application/json"}
        ) as answer:
            answer.raise_for_status()
            rows = (await answer.json())["rows"]
        found: Counter[str] = Counter()
        for row in rows:
            found.update(json.loads(row["times"]))
        return found

    async def expire(self) -> None:
        """They do so by themselves."""

    async def close(self) -> None:
        """End both."""
        await self._server.kill()
        await self._handlers.kill()


def on_restate(npm: Path) -> Product:
    """The product; npm installs its server into this folder if it is not there yet."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Serving]:
        data = folder / _NODE
        async with session(data / "ingress.sock") as ingress, session(data / "admin.sock") as admin:
            running = OnRestate(folder, npm, ingress, admin)
            try:
                await running.open()
                yield running
            finally:
                await running.close()

    return Product("Restate", lambda: versions(npm), opened)
