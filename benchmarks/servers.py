"""The servers that are compared, each in a process of its own on a free port."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

VERCEL_PACKAGE: Final = "@vercel/cosmosdb-server@1.0.1"
"""A Cosmos DB emulator in memory, written in TypeScript, that needs no container engine either."""

_PROGRAM: Final = """
const server = require(%s).createHttpsServer({ keepAlive: %s });
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""
"""A program for Node.js that listens on a free port and prints it."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its name in the result, its address, and its process."""

    name: str
    endpoint: str
    process: int

    def cpu_seconds(self) -> float:
        """CPU time that the process has taken so far, in all its threads."""
        return time.clock_gettime(~self.process << 3 | 2)  # What `clock_getcpuclockid` of Linux gives.


@contextmanager
def ours(*, tls: bool, admin: bool = False) -> Iterator[Server]:
    """This repository's; with what administers it, if that is wanted."""
    options = [option for option, wanted in (("--tls", tls), ("--admin", admin)) if wanted]
    command = [sys.executable, "-m", "local_cosmos", "--port", "0", *options]
    with _running(command) as (process, output):
        yield Server("ours", json.loads(output.readline())["endpoint"], process)


@contextmanager
def vercel(directory: Path, *, kept_alive: bool) -> Iterator[Server]:
    """The one from npm over https, which is installed into `directory` if it is not there yet.

    Args:
        directory: For npm.
        kept_alive: Its own command closes the connection after every answer; True lets it keep them, which only a program
            that imports the package can have.
    """
    package = directory / "node_modules/@vercel/cosmosdb-server"
    if not package.exists():
        install = ["npm", "install", "--prefix", str(directory), "--no-audit", "--no-fund", VERCEL_PACKAGE]
        subprocess.run(install, check=True, stdout=sys.stderr)  # noqa: S603
    program = _PROGRAM % (json.dumps(str(package)), json.dumps(kept_alive))
    with _running(["node", "--eval", program]) as (process, output):
        name = "vercel, connections kept" if kept_alive else "vercel"
        yield Server(name, f"https://127.0.0.1:{int(output.readline())}/", process)


@contextmanager
def _running(command: list[str]) -> Iterator[tuple[int, IO[str]]]:
    """The process of a command, and its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
    try:
        if process.stdout is None:
            raise RuntimeError("The output of the process is not there.")
        yield process.pid, process.stdout
    finally:
        process.terminate()
        process.communicate()
