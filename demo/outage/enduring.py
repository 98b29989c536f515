"""Fire shots, take the store away, kill hosts, give the store back, and wait until nothing is left to heal."""

from __future__ import annotations

import asyncio
import json
import time
import zipfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any, Final

from demo.oracle import Finding, judge
from demo.play import gather, owing
from demo.queues import Queue, open_queue
from demo.shots import Shot
from demo.stack import DATABASE, ROOT, Stack, running_stack
from devtools.publishing import build_archive
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.requests import ITEM_OPERATIONS, PROPERTY_READS

HOSTS: Final = 2
GAMES: Final = 10
_QUEUES: Final = ("shooting-range", "leader-board")
_POLL_SECONDS: Final = 0.5
_QUEUES_OF_THE_HOST: Final = {"maxDequeueCount": 3, "visibilityTimeout": "00:00:00"}


@dataclass(frozen=True)
class Outage:
    """What happens.

    Attributes:
        seconds: that the store answers nothing.
        shots: fired over twice that time, from a third of it before the outage on.
        invisible: seconds until the messages of a killed host come back; 600 on the real host.
        delivery_timeout: of the library, in seconds; None for its default.
        limit: seconds after the outage in which everything has to be healed.
    """

    seconds: float = 40.0
    shots: int = 400
    invisible: int = 600
    delivery_timeout: float | None = None
    limit: float = 720.0


@dataclass(frozen=True)
class Endured:
    """What came of it.

    Attributes:
        healed: seconds from the end of the outage until nothing was left to do; None if the limit was over before.
        left: messages that were in the queues then.
        refused: requests that the store did not answer.
        killed: hosts.
        returned: messages that were sent to their queues once more, by the hosts' logs; some of them several times.
        parked: messages that were ever parked.
        findings: what does not add up.
    """

    healed: float | None
    left: int
    refused: int
    killed: int
    returned: int
    parked: int
    findings: tuple[Finding, ...]

    @property
    def problem(self) -> str | None:
        """What is wrong; None if everything healed by itself."""
        if self.healed is None:
            return f"{self.left} messages are still in the queues or owed."
        if self.parked:
            return f"{self.parked} messages were parked."
        if self.findings:
            return f"{len(self.findings)} violations of exactly-once processing, such as {self.findings[0]}."
        return None if self.returned else "The outage was too short: no message was given up."


async def endure(outage: Outage, folder: Path, say: Callable[[str], None]) -> Endured:
    """Play it.

    Args:
        outage: what happens.
        folder: for the app and the logs.
        say: called with what is under way.
    """
    random = Random(1)
    shots = tuple(Shot(f"shot-{n}", f"game-{n % GAMES}", random.choice((0, 17, 42))) for n in range(outage.shots))
    app, logs = _app(folder / "app"), folder / "logs"
    logs.mkdir()
    with running_stack(app, logs, "outbox", disordered=False) as stack:
        stack.invisible = outage.invisible
        if outage.delivery_timeout is not None:
            stack.settings["EXACTLYONCE__deliveryTimeout"] = str(outage.delivery_timeout)
        await asyncio.to_thread(stack.start_hosts, HOSTS)
        async with AsyncExitStack() as clients:
            queues = [await clients.enter_async_context(open_queue(stack, name)) for name in _QUEUES]
            firing = asyncio.create_task(fire(queues[0], shots, 2 * outage.seconds))
            await asyncio.sleep(outage.seconds / 3)
            say(f"the store is away for {outage.seconds:g} s")
            refused, killed = await _away(stack, outage, say)
            began = time.monotonic()
            await firing
            healed, left = None, 1
            while left and time.monotonic() - began < outage.limit:
                await asyncio.sleep(_POLL_SECONDS)
                left = sum([await queue.waiting() + await queue.given_up() for queue in queues]) + owing(stack)
                say(f"{left} messages are left, {time.monotonic() - began:.0f} s after the outage")
                healed = None if left else time.monotonic() - began
        stack.stop_hosts()
        parked = parked_in(stack)
        findings = judge(shots, await gather(stack))
        returned = sum(log.read_text().count(" was returned to its queue") for log in logs.glob("host-*.log"))
    return Endured(healed, left, refused, killed, returned, parked, findings)


async def _away(stack: Stack, outage: Outage, say: Callable[[str], None]) -> tuple[int, int]:
    """Take the store away, kill a host after a third of the time and all after two, and give the store back.

    Returns:
        How many requests were refused, and how many hosts were killed.
    """
    third = outage.seconds / 3
    rule = stack.cosmos.add_fault(FaultRule(DATABASE, operations=(*ITEM_OPERATIONS, *PROPERTY_READS), when="before"))
    began = time.monotonic()
    await asyncio.sleep(third)
    killed = stack.kill_host()
    await asyncio.to_thread(stack.start_hosts, HOSTS)
    await asyncio.sleep(max(0.0, 2 * third - (time.monotonic() - began)))
    killed += stack.kill_hosts()
    await asyncio.to_thread(stack.start_hosts, HOSTS)
    await asyncio.sleep(max(0.0, outage.seconds - (time.monotonic() - began)))
    refused = sum(fault.hit for fault in stack.cosmos.faults() if fault.rule_id == rule)
    stack.cosmos.remove_fault(rule)
    say(f"the store answers again; {refused} requests were not answered, {killed} hosts were killed")
    return refused, killed


async def fire(queue: Queue, shots: tuple[Shot, ...], seconds: float) -> None:
    """Send shots, evenly over a time, each with the time at which it is sent."""
    for shot in shots:
        dated = replace(shot.envelope, time=datetime.now(timezone.utc))
        await queue.send(dated.to_json().text.encode())
        await asyncio.sleep(seconds / len(shots))


def parked_in(stack: Stack) -> int:
    """How many documents of parked messages were ever written."""
    written: list[dict[str, Any] | None] = [item.document for item in stack.cosmos.history(DATABASE, "exactlyonce")]
    return sum(item is not None and item.get("kind") == "parked" for item in written)


def _app(folder: Path) -> Path:
    """The sample app as it is published, on a host that gives up soon."""
    archive = folder.with_suffix(".zip")
    build_archive(ROOT, archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    path = folder / "host.json"
    content = json.loads(path.read_text())
    content["extensions"]["queues"] |= _QUEUES_OF_THE_HOST
    path.write_text(json.dumps(content))
    return folder
