"""Processes that are killed and start again."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from benchmarks.report import ROOT


class Killable:
    """A process that is ended by SIGKILL only.

    Args:
        command: what to run, in the root of the repository.
        log: file for what it writes to standard error; one for all its lives.
        environment: variables on top of our own.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self._log, self._environment = log, {**os.environ, **(environment or {})}
        self._process: Process | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it does not run."""
        return self._process is None or self._process.returncode is not None

    async def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as errors:
            self._process = await self._started(errors)

    async def _started(self, errors: BinaryIO) -> Process:
        return await asyncio.create_subprocess_exec(
            *self.command, cwd=ROOT, env=self._environment, stdout=PIPE, stderr=errors
        )

    async def first_line(self) -> str:
        """What it prints when it is ready. Raises `RuntimeError`, with the end of its log, if it ends before."""
        line = b""
        if self._process is not None and self._process.stdout is not None:
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command} did not start: {self._log.read_text(encoding='utf-8')[-2000:]}")
        return line.decode()

    async def kill(self) -> None:
        """End it, and wait until it is gone."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
