"""Restate: a counter is a virtual object, and the message's id is the idempotency key of the call."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from time import perf_counter
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector

from benchmarks.peers.port import Message, NotInstalledError, Peer, Running, installed
from benchmarks.peers.processes import first_line, process

VERSION: Final = "1.7.12"
PACKAGE: Final = f"@restatedev/restate-server@{VERSION}"
SETTINGS: Final = {"RESTATE_DISABLE_TELEMETRY": "true", "RESTATE_LOG_FILTER": "warn"}
"""Of its server. A folder for temporary files comes on top: ended in the middle of its work, it leaves some."""

_NODE: Final = "peers"
_START_SECONDS: Final = 600
_ANSWER_SECONDS: Final = 600
_LOOK_AGAIN_SECONDS: Final = 0.05
_SUM: Final = "SELECT coalesce(sum(CAST(value_utf8 AS BIGINT)), 0) AS n FROM state WHERE service_name = 'Counter'"


class Restate:
    """A client of the server, on its Unix sockets."""

    def __init__(self, data: Path, ingress: ClientSession, admin: ClientSession) -> None:
        self._data = data
        self._ingress = ingress
        self._admin = admin

    async def deliver(self, message: Message) -> None:
        address = f"http://restate/Counter/{message.entity}/count"
        async with self._ingress.post(address, json=message.id, headers={"Idempotency-Key": message.id}) as answer:
            answer.raise_for_status()

    async def sent(self) -> int:
        async with self._ingress.get("http://restate/Sink/taken") as answer:
            answer.raise_for_status()
            return int(await answer.json())

    async def counted(self) -> int:
        asked = {"query": _SUM}
        async with self._admin.post(
            "http://restate/query", json=asked, headers={"Accept": "application/json"}
        ) as answer:
            answer.raise_for_status()
            return int((await answer.json())["rows"][0]["n"])

    async def stored(self) -> int:
        return sum(_size(path) for path in self._data.rglob("*"))

    async def ready(self, has_ended: Callable[[], bool]) -> None:
        """Wait until the server is there. Raises `RuntimeError` if it ends before, or does not come."""
        deadline = perf_counter() + _START_SECONDS
        while not await self._healthy():
            if has_ended() or perf_counter() > deadline:
                raise RuntimeError("The Restate server did not start.")
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def register(self, port: int) -> None:
        """Register the handlers' address."""
        async with self._admin.post("http://restate/deployments", json={"uri": f"http://127.0.0.1:{port}"}) as answer:
            answer.raise_for_status()

    async def _healthy(self) -> bool:
        try:
            for session, path in ((self._admin, "health"), (self._ingress, "restate/health")):
                async with session.get(f"http://restate/{path}") as answer:
                    answer.raise_for_status()
            await self.counted()  # It cannot say before all partitions are there, which comes later than health.
        except ClientError:
            return False
        return True


def restate(npm: Path) -> Peer[Running]:
    """The peer; npm installs its server into this folder if it is not there yet."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Running]:
        server_program, data = program(npm), folder / _NODE
        serving = [sys.executable, "-m", "benchmarks.peers.restate_service"]
        command = [str(server_program), "--listen-mode", "unix", "--base-dir", str(folder), "--node-name", _NODE]
        settings = {**SETTINGS, "RESTATE_SHUTDOWN_TIMEOUT": "1s", "TMPDIR": str(folder)}
        log = folder / "service.log"
        with (
            process(serving, log, ended_by=SIGKILL) as service,
            process([*command, "--no-logo"], folder / "server.log", settings) as server,
        ):
            async with session(data / "ingress.sock") as ingress, session(data / "admin.sock") as admin:
                running = Restate(data, ingress, admin)
                await running.ready(lambda: server.poll() is not None)
                await running.register(int(first_line(service, "The service for Restate", log)))
                yield running

    return Peer("Restate", lambda: versions(npm), opened)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):  # The server deletes files while we look.
        return path.stat().st_size if path.is_file() else 0
    return 0


def session(path: Path) -> ClientSession:
    """A client of what listens on a Unix socket."""
    return ClientSession(connector=UnixConnector(str(path)), timeout=ClientTimeout(total=_ANSWER_SECONDS))


def versions(npm: Path) -> dict[str, str]:
    """Of the SDK and the server. Raises `NotInstalledError`."""
    found = {**installed("restate-sdk", "hypercorn"), "restate-server": VERSION}
    program(npm)
    return found


def program(folder: Path) -> Path:
    """The server for this machine, which npm installs into the folder if it is not there yet. Raises `NotInstalledError`."""
    pattern = "node_modules/@restatedev/restate-server-*/bin/restate-server"
    if not any(folder.glob(pattern)):
        if shutil.which("npm") is None:
            raise NotInstalledError("The Restate server comes from npm, which is not installed (Node.js 20 or newer).")
        # Its only script reports the installation to its makers.
        install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
        if subprocess.run(install, check=False, stdout=sys.stderr).returncode:  # noqa: S603
            raise NotInstalledError(f"npm could not install {PACKAGE}.")
    found = sorted(folder.glob(pattern))
    if not found:
        raise NotInstalledError(f"{PACKAGE} has no server for this machine.")
    return found[0]
