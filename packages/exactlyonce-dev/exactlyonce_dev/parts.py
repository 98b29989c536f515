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
Hear = Callable[[dict[str, Any]], None]
"""Takes what a part tells after it is ready."""


def say(part: str, line: str) -> None:
    """Write a line of the log to stderr, with the name of the part that says it."""
    print(f"{part.ljust(_WIDTH)}| {line}", file=sys.stderr, flush=True)


class Part:
    """A process, from `start` to `end`. It prints one line of JSON to stdout once it is ready.

    Args:
        name: before every line of its log.
        process: just started.
        write: takes its log.
        hear: takes the lines of JSON that follow the first; None if there are none.
    """

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, write: Say = say, hear: Hear | None = None
    ) -> None:
        self.name = name
        self._process = process
        self._write = write
        self._hear = hear
        self._log = asyncio.create_task(self._read(process.stderr, self._say))
        self._rest: asyncio.Task[None] | None = None
        self.ready = asyncio.create_task(self._await_ready())
        self.ended = asyncio.create_task(process.wait())

    @classmethod
    async def start(
        cls,
        name: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        write: Say = say,
        hear: Hear | None = None,
    ) -> Part:
        """Start `python -m` with these arguments. Ctrl-C does not reach it: `end` does, in the right order.

        It ends with this process, even if that is killed.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "exactlyonce_dev.tied", *arguments),
            cwd=folder,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        return cls(name, process, write, hear)

    def kill(self) -> None:
        """End the process as a crash would."""
        if not self.ended.done():
            self._process.kill()

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
        # A pipe that nobody reads stops its writer.
        self._rest = asyncio.create_task(self._read(self._process.stdout, self._take if self._hear else self._say))
        return found

    async def _read(self, lines: asyncio.StreamReader | None, take: Callable[[bytes], None]) -> None:
        assert lines is not None  # noqa: S101  # As above.
        begun = b""
        while part := await lines.read(_PIECE):  # `readline` refuses a long line, and then nobody reads any more.
            *whole, begun = (begun + part).split(b"\n")
            for line in whole:
                take(line)
        if begun:
            take(begun)

    def _take(self, line: bytes) -> None:
        assert self._hear is not None  # noqa: S101  # It is called if there is one.
        try:
            told = json.loads(line)
        except ValueError:  # The last line of a process that was killed may be half of one; the log gets no bodies.
            return
        self._hear(told)

    def _say(self, line: bytes) -> None:
        self._write(self.name, line.decode(errors="replace").rstrip())
