"""Function hosts as processes of their own: forks of one process that has imported what apps take from others.

A new interpreter spends one and a half seconds of processor time on imports. A fork has them, and imports library and app anew.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from function_host.cli import main

_PRELOADED: Final = (
    *("function_host.cli", "azure.cosmos.aio", "azure.identity.aio", "azure.servicebus.aio"),
    *("azure.storage.blob.aio", "azure.storage.queue.aio", "pydantic_settings"),
)
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([*_PRELOADED])
_STDOUT, _STDERR = 1, 2


class Host:
    """A function host.

    Args:
        arguments: of `python -m function_host`.
        code: folder from which library and app are imported, and in which the host works.
        environment: of the host.
        log: what it says goes here.
    """

    def __init__(self, arguments: Sequence[str], code: Path, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        said, saying = _FORKS.Pipe(duplex=False)
        with saying:
            self._process = _FORKS.Process(
                target=_serve, args=(tuple(arguments), code, dict(environment), log, saying), daemon=True
            )
            self._process.start()
        self._said = said

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process.pid is not None  # noqa: S101  # It was started.
        return self._process.pid

    def ready(self) -> dict[str, Any]:
        """Wait until it serves; returns what it says then.

        Raises:
            RuntimeError: it ended before; the text has the end of its log.
        """
        with os.fdopen(os.dup(self._said.fileno())) as lines:
            line = lines.readline()
        if not line:
            raise RuntimeError(f"The function host did not start: {self._log.read_text()[-2000:]}")
        return dict(json.loads(line))

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()

    def stop(self) -> None:
        """Let it finish what it is doing."""
        self._process.terminate()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, and kill it if it takes longer."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        self._said.close()


def _serve(arguments: Sequence[str], code: Path, environment: Mapping[str, str], log: Path, saying: Connection) -> None:
    """Be a host, in a process of its own."""
    with log.open("w") as file:
        os.dup2(file.fileno(), _STDERR)
    os.dup2(saying.fileno(), _STDOUT)
    saying.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(code)
    with suppress(ValueError):
        sys.path.remove(str(code))
    sys.path.insert(0, str(code))
    sys.exit(main(arguments))
