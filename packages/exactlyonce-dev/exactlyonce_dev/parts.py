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
Say = Callable[[str, str], None]
"""Writes a line of the log: the part, and what it says."""
Hear = Callable[[dict[str, Any]], None]
"""Takes what a part tells after it is ready."""
_LONGEST_LINE: Final = 1 << 20


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
        self._log = asyncio.create_task(self._copy())
        self.ready = asyncio.create_task(self._await_ready())
        self._told = asyncio.create_task(self._listen(hear)) if hear else None
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
            limit=_LONGEST_LINE,
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
        await self._log
        if self._told is not None:
            await self._told

    async def _await_ready(self) -> dict[str, Any] | None:
        """What the part says when it is ready; None if it ended before."""
        assert self._process.stdout is not None  # noqa: S101  # It was asked for.
        line = await self._process.stdout.readline()
        found: dict[str, Any] | None = json.loads(line) if line.strip() else None
        return found

    async def _listen(self, hear: Hear) -> None:
        await asyncio.wait({self.ready})
        assert self._process.stdout is not None  # noqa: S101  # As above.
        while line := await self._process.stdout.readline():
            hear(json.loads(line))

    async def _copy(self) -> None:
        assert self._process.stderr is not None  # noqa: S101  # As above.
        while line := await self._process.stderr.readline():
            self._write(self.name, line.decode(errors="replace").rstrip())
