"""Parts of a local stack: processes whose output becomes lines of one log."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

GRACE_SECONDS: Final = 15
_WIDTH: Final = 7
_PIECE: Final = 65_536
"""Bytes that are read at a time."""
Say = Callable[[str, str], None]
"""Writes a line of the log: the part, and what it says."""


def say(part: str, line: str) -> None:
    """Write a line of the log to stderr, with the name of the part that says it."""
    print(f"{part.ljust(_WIDTH)}| {line}", file=sys.stderr, flush=True)


class Part:
    """A process, from `start` to `end`. It prints one line of JSON to stdout once it is ready.

    Args:
        name: before every line of its log.
        process: just started.
        write: takes its log.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, write: Say = say) -> None:
        self.name = name
        self._process = process
        self._write = write
        self._log = asyncio.create_task(self._copy(process.stderr))
        self._rest: asyncio.Task[None] | None = None
        self.ready = asyncio.create_task(self._await_ready())
        self.ended = asyncio.create_task(process.wait())

    @classmethod
    async def start(
        cls, name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], write: Say = say
    ) -> Part:
        """Start `python -m` with these arguments. Ctrl-C does not reach it: `end` does, in the right order."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *arguments),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        return cls(name, process, write)

    async def end(self) -> None:
        """End the process: asked first, after a grace forced. Its last lines are in the log."""
        if not self.ended.done():
            self._process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(self.ended), GRACE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self.ended
        self.ready.cancel()
        await asyncio.gather(self._log, *([self._rest] if self._rest else []))

    async def _await_ready(self) -> dict[str, Any] | None:
        """What the part says when it is ready; None if it ended before."""
        assert self._process.stdout is not None  # noqa: S101  # It was asked for.
        line = await self._process.stdout.readline()
        found: dict[str, Any] | None = json.loads(line) if line.strip() else None
        self._rest = asyncio.create_task(self._copy(self._process.stdout))  # A pipe that nobody reads stops its writer.
        return found

    async def _copy(self, lines: asyncio.StreamReader | None) -> None:
        assert lines is not None  # noqa: S101  # As above.
        begun = b""
        while part := await lines.read(_PIECE):  # `readline` refuses a long line, and then nobody reads any more.
            *whole, begun = (begun + part).split(b"\n")
            for line in whole:
                self._say(line)
        if begun:
            self._say(begun)

    def _say(self, line: bytes) -> None:
        self._write(self.name, line.decode(errors="replace").rstrip())
