"""How tests start the command: from the package's own folder, so that a process imports what stands there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.raw_connection import RawAnswer, RawConnection, Signer

PACKAGE: Final = Path(__file__).resolve().parents[1]
SIGNER: Final = Signer(WELL_KNOWN_KEY)
_COMMAND: Final = (sys.executable, "-m", "local_cosmos", "--port", "0")


class Process:
    """An emulator in a process of its own. At the end of a `with` block it is killed."""

    def __init__(self, *options: str) -> None:
        self.popen = subprocess.Popen(
            [*_COMMAND, *options], cwd=PACKAGE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.popen.stdout is not None
        self.announcement = json.loads(self.popen.stdout.readline())
        self.endpoint: str = self.announcement["endpoint"]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        if self.popen.returncode is None:
            self.stop(signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Signal the process; returns exit code and what else it printed."""
        self.popen.send_signal(number)
        out, err = self.popen.communicate()
        return self.popen.returncode, out, err

    async def ask(self, *request: Any, **more: Any) -> RawAnswer:
        """Send one request on a connection of its own."""
        connection = await RawConnection.open(self.endpoint)
        try:
            return await connection.send(SIGNER.request(*request, **more))
        finally:
            connection.close()


def run(*options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """What the command says that ends by itself."""
    return subprocess.run([*_COMMAND, *options], cwd=PACKAGE, capture_output=True, text=True, check=False, **more)


def play(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """What a program says that ends by itself, on both of its outputs."""
    sent = {**os.environ, **environment}
    return subprocess.run(command, env=sent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
