"""A PostgreSQL server of its own, on a Unix socket in the folder of a round."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwnam
from typing import Any, Final

from benchmarks.peers.port import NotInstalledError

USER: Final = "peers"
"""The role that owns everything. Nobody else can reach the socket."""

DEBIAN: Final = Path("/usr/lib/postgresql")
"""Where Debian has one folder for each version, outside the path."""

_SERVICE_ACCOUNT: Final = "postgres"
"""Who runs the server where we are root, which PostgreSQL refuses to run as. Debian's package makes this account."""


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a server for the length of a `with` block, with the settings that it has by default; gives its URL.

    Raises:
        NotInstalledError: there is none.
        RuntimeError: it does not start.
    """
    programs = _programs()
    data, log = folder / "data", folder / "postgres.log"
    if os.geteuid() == 0:
        shutil.chown(folder, _account())
    _run(programs / "initdb", "-D", data, "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C")
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
    try:
        _run(programs / "pg_ctl", "start", "-D", data, "-l", log, "-o", settings)
        yield f"postgresql://{USER}@/postgres?host={folder}"
    finally:
        if (data / "postmaster.pid").exists():
            _run(programs / "pg_ctl", "stop", "-D", data, "-m", "immediate")


def version() -> str:
    """Of the server that would be run. Raises `NotInstalledError`."""
    return _run(_programs() / "postgres", "--version").split()[2]


def _programs() -> Path:
    """The folder of the newest server: what Debian has outside the path, or what is on the path."""
    found = sorted(DEBIAN.glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    if not found and on_path is None:
        raise NotInstalledError("PostgreSQL is not installed (Debian: apt install postgresql).")
    return found[-1].parent if found else Path(str(on_path)).resolve().parent


def _account() -> str:
    try:
        return getpwnam(_SERVICE_ACCOUNT).pw_name
    except KeyError:
        raise NotInstalledError(
            f"PostgreSQL does not run as root, and there is no account {_SERVICE_ACCOUNT!r} (Debian: apt install postgresql)."
        ) from None


def _run(program: Path, *arguments: str | Path) -> str:
    other: dict[str, Any] = {"user": _account(), "group": _account(), "extra_groups": []} if os.geteuid() == 0 else {}
    command = [str(program), *map(str, arguments)]
    ran = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True, **other)  # noqa: S603
    if ran.returncode:
        raise RuntimeError(f"{program.name} failed: {ran.stdout}{ran.stderr}")
    return str(ran.stdout)
