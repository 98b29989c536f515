"""Fire shots while hosts of two versions take turns, and wait until nothing is left to do."""

from __future__ import annotations

import asyncio
import io
import subprocess
import tarfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from demo.oracle import Finding, judge
from demo.outage.enduring import fire, parked_in
from demo.play import gather, owing
from demo.queues import Queue, open_queue
from demo.shots import Shot
from demo.stack import ROOT, Stack, running_stack

GAMES: Final = 4
_QUEUES: Final = ("shooting-range", "leader-board")
_POLL_SECONDS: Final = 0.5
CODE: Final = ("exactlyonce", "handlers", "function_app.py", "host.json")
_HOSTS: Final = 2
_TWICE: Final = 0.25
"""Share of the shots that are sent twice."""


@dataclass(frozen=True)
class Upgrade:
    """What happens.

    Attributes:
        earlier: folder with the code of the earlier version.
        shots: messages; a quarter of them is sent twice.
        seconds: over which they are sent.
        back: whether the earlier version comes back, and is replaced once more.
        limit: seconds after the last shot in which everything has to be done.
    """

    earlier: Path
    shots: int = 200
    seconds: float = 40.0
    back: bool = True
    limit: float = 1800.0


@dataclass(frozen=True)
class Upgraded:
    """What came of it.

    Attributes:
        left: messages that were not processed, or owed, when the time was over.
        replaced: hosts that were killed while messages were under way.
        parked: messages that were ever parked.
        findings: what does not add up.
    """

    left: int
    replaced: int
    parked: int
    findings: tuple[Finding, ...]

    @property
    def problem(self) -> str | None:
        """What is wrong; None if every shot took place once."""
        if self.left:
            return f"{self.left} messages are still in the queues or owed."
        if self.parked:
            return f"{self.parked} messages were parked."
        if self.findings:
            return f"{len(self.findings)} violations of exactly-once processing, such as {self.findings[0]}."
        return None


def checked_out(commit: str, folder: Path) -> Path:
    """The library and the sample of a commit, in a folder.

    Raises:
        subprocess.CalledProcessError: git does not know the commit.
    """
    command = ["git", "archive", commit, *CODE]
    packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def upgrade(given: Upgrade, logs: Path, say: Callable[[str], None]) -> Upgraded:
    """Play it.

    Args:
        given: what happens.
        logs: folder for the logs.
        say: called with what is under way.
    """
    random = Random(1)
    shots = tuple(Shot(f"shot-{n}", f"game-{n % GAMES}", random.choice((0, 17, 42))) for n in range(given.shots))
    deliveries = tuple(item for shot in shots for item in ((shot, shot) if random.random() < _TWICE else (shot,)))
    turns = [ROOT] * _HOSTS + ([given.earlier] * _HOSTS + [ROOT] * _HOSTS if given.back else [])
    with running_stack(ROOT, logs, "outbox", disordered=False) as stack:
        async with AsyncExitStack() as clients:
            queues = [await clients.enter_async_context(open_queue(stack, name)) for name in _QUEUES]
            await _start(stack, given.earlier)
            firing = asyncio.create_task(fire(queues[0], deliveries, given.seconds))
            for code in turns:
                await asyncio.sleep(given.seconds / (len(turns) + 1))
                stack.kill_host()
                await _start(stack, code)
                say(f"a host runs {'this version' if code == ROOT else 'the earlier version'}")
            await firing
            left = await _rest(stack, queues, given.limit)
        stack.stop_hosts()
        return Upgraded(left, len(turns), parked_in(stack), judge(shots, await gather(stack)))


async def _start(stack: Stack, code: Path) -> None:
    """Start as many hosts as are missing, with this version of library and app."""
    stack.code = stack.app = code
    await asyncio.to_thread(stack.start_hosts, _HOSTS)


async def _rest(stack: Stack, queues: list[Queue], limit: float) -> int:
    """Wait until nothing is left to do; return how many messages are left when the time is over."""
    began, left = time.monotonic(), 1
    while left and time.monotonic() - began < limit:
        await asyncio.sleep(_POLL_SECONDS)
        left = sum([await queue.waiting() + await queue.given_up() for queue in queues]) + owing(stack)
    return left
