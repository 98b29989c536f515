"""Processes that are started and ended, and the address that each of them prints first."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, Final

from benchmarks.report import ROOT

_GRACE_SECONDS: Final = 10


@contextmanager
def process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    ended_by: Signals = SIGTERM,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command for the length of a `with` block.

    Args:
        command: what to run, in the root of the repository.
        log: file for what it writes to standard error.
        environment: variables on top of our own.
        ended_by: signal that ends it; after some seconds it is killed.
    """
    with log.open("w", encoding="utf-8") as errors:
        started = subprocess.Popen(  # noqa: S603
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield started
    finally:
        started.send_signal(ended_by)
        try:
            started.communicate(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()


async def cancelled_by_sigterm(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """As SIGINT cancels what `asyncio.run` runs, so that whatever was started is ended in its `finally`."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(SIGTERM, task.cancel)
    return await task


def first_line(started: subprocess.Popen[str], what: str, log: Path) -> str:
    """What a process prints when it is ready. Raises `RuntimeError`, with the end of its log, if it ends before."""
    line = started.stdout.readline() if started.stdout else ""
    if not line:
        raise RuntimeError(f"{what} did not start: {log.read_text(encoding='utf-8')[-2000:]}")
    return line
