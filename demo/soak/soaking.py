"""One soak on one transport: shots without a pause, trouble without a pause, and what is measured meanwhile."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from azure.core.exceptions import AzureError

from demo.bus import running_bus
from demo.options import Options, Transport
from demo.oracle import Finding, judge
from demo.outage.enduring import parked_in
from demo.play import gather, owing
from demo.queues import Queue, open_queue
from demo.shots import Shot
from demo.soak.measures import Measures, Sample
from demo.stack import APP, DATABASE, ROOT, Stack, running_stack
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.requests import ITEM_OPERATIONS

Result = TypeVar("Result")

GAMES: Final = 12
HOSTS: Final = 3
_QUEUES: Final = ("shooting-range", "leader-board")
_TROUBLE_SECONDS: Final = 12.0
"""From one trouble to the next; throttling and lost replies last half of it."""
_SAMPLE_SECONDS: Final = 5.0
_JOBS_BEGIN: Final = 2 / 3
_MOST_SPLITS: Final = 3
_TRIES: Final = 10
_TWICE: Final = 0.2
_REST_SECONDS: Final = 600.0
_JOB_FILE: Final = ROOT / "infra" / "synapse" / "shooting-range.json"


@dataclass(frozen=True)
class Soak:
    """What happens.

    Attributes:
        transport: `storage` or `servicebus`.
        seconds: that shots are fired. No job begins in the last third of them, since jobs are waited for.
        rate: shots a second.
        jobs: whether Spark audits and cleans up all the while.
        job_pause: seconds between two jobs.
        seed: of shots and trouble.
    """

    transport: Transport
    seconds: float
    rate: float = 4.0
    jobs: bool = True
    job_pause: float = 20.0
    seed: int = 1


@dataclass
class Soaked:
    """What came of it.

    Attributes:
        soak: what happened.
        shots, copies: distinct shots, and how many of them were sent twice.
        kills, throttlings, losses, splits: trouble that was made.
        audits, clean_ups: jobs that ended well.
        failures: last lines of jobs that did not.
        left: messages that were not processed when the time was over.
        parked: messages that were ever parked.
        findings: what does not add up.
        samples, latencies: what was measured; latencies in seconds, from the sending of a shot to its commit.
    """

    soak: Soak
    shots: int = 0
    copies: int = 0
    kills: int = 0
    throttlings: int = 0
    losses: int = 0
    splits: int = 0
    audits: int = 0
    clean_ups: int = 0
    failures: list[str] = field(default_factory=list)
    left: int = 0
    parked: int = 0
    findings: tuple[Finding, ...] = ()
    samples: tuple[Sample, ...] = ()
    latencies: tuple[float, ...] = ()

    @property
    def violations(self) -> int:
        """Everything that the guarantee forbids, and what was left to do."""
        return len(self.findings) + self.parked + self.left + len(self.failures)


async def soaked(soak: Soak, logs: Path, say: Callable[[str], None]) -> Soaked:
    """Play it.

    Args:
        soak: what happens.
        logs: folder for the logs.
        say: called with what is under way.
    """
    done, random = Soaked(soak), Random(soak.seed)
    with (
        running_bus(Options(transport=soak.transport, seed=soak.seed)) as bus,
        running_stack(APP, logs, "outbox", disordered=False, bus=bus) as stack,
    ):
        await asyncio.to_thread(stack.start_hosts, HOSTS)
        async with AsyncExitStack() as clients:
            queues = [await clients.enter_async_context(open_queue(stack, name)) for name in _QUEUES]
            measures = Measures(stack, queues)
            with _jobs(stack, logs, done) if soak.jobs else nullcontext():
                besides = [
                    asyncio.create_task(_trouble(stack, done, Random(soak.seed + 1))),
                    asyncio.create_task(_measured(measures, say)),
                ]
                shots = await _fired(soak, queues[0], random, done)
                for task in besides:
                    task.cancel()
                await asyncio.gather(*besides, return_exceptions=True)
            stack.cosmos.clear_faults()
            await asyncio.to_thread(stack.start_hosts, HOSTS)
            done.left = await _rest(stack, queues)
            await _patiently(measures.take)
        stack.stop_hosts()
        done.parked, done.findings = parked_in(stack), judge(shots, await gather(stack))
        done.samples, done.latencies = tuple(measures.samples), measures.latencies(shots)
    return done


async def _fired(soak: Soak, queue: Queue, random: Random, done: Soaked) -> tuple[Shot, ...]:
    began, shots = time.monotonic(), list[Shot]()
    for number in count():
        due = began + number / soak.rate
        if due - began >= soak.seconds:
            return tuple(shots)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        shot = Shot(f"shot-{number}", f"game-{random.randrange(GAMES)}", random.choice((0, 17, 42)))
        shot = replace(shot, time=datetime.now(timezone.utc))
        shots.append(shot)
        done.shots += 1
        for _ in range(1 + (random.random() < _TWICE)):
            await _patiently(partial(queue.send, shot.envelope.to_json().text.encode()))
            done.copies += 1
    raise AssertionError


async def _trouble(stack: Stack, done: Soaked, random: Random) -> None:
    """Kill, throttle, lose replies and split, one after the other. The oldest host is spared: its memory is measured."""
    partition = "0"
    while True:
        await asyncio.sleep(_TROUBLE_SECONDS / 2)
        kind = random.choice(("kill", "throttle", "lose", "split"))
        if kind == "split" and done.splits < _MOST_SPLITS:
            partition = stack.cosmos.split(DATABASE, "games", partition)[0]
            done.splits += 1
        elif kind in ("kill", "split"):
            done.kills += stack.kill_host(random.randrange(1, len(stack.hosts)))
            await asyncio.to_thread(stack.start_hosts, HOSTS)
        else:
            rule = _throttling(done.throttlings) if kind == "throttle" else _losing(done.losses)
            done.throttlings += kind == "throttle"
            done.losses += kind == "lose"
            number = stack.cosmos.add_fault(rule)
            await asyncio.sleep(_TROUBLE_SECONDS / 2)
            stack.cosmos.remove_fault(number)


def _throttling(seed: int) -> FaultRule:
    return FaultRule(
        DATABASE,
        operations=ITEM_OPERATIONS,
        when="before",
        action="status",
        status=429,
        substatus=3200,
        retry_after_ms=50,
        probability=0.4,
        seed=seed,
    )


def _losing(seed: int) -> FaultRule:
    return FaultRule(DATABASE, operations=ITEM_OPERATIONS, when="after", action="close", probability=0.15, seed=seed)


async def _measured(measures: Measures, say: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(_SAMPLE_SECONDS)
        say(str(await _patiently(measures.take)))


async def _rest(stack: Stack, queues: list[Queue]) -> int:
    """Wait until nothing is left to do; return how many messages are left when the time is over."""
    began, left = time.monotonic(), 1
    while left and time.monotonic() - began < _REST_SECONDS:
        await asyncio.sleep(1.0)
        left = await _patiently(partial(_unfinished, stack, queues))
    return left


async def _unfinished(stack: Stack, queues: list[Queue]) -> int:
    return sum([await queue.waiting() + await queue.given_up() for queue in queues]) + owing(stack)


async def _patiently(call: Callable[[], Awaitable[Result]]) -> Result:
    """Make a call again while its server does not answer: a busy machine's servers answer late. Sending twice makes a copy."""
    for _ in range(_TRIES):
        try:
            return await call()
        except (AzureError, OSError):  # noqa: PERF203  # The pauses are what takes time.
            await asyncio.sleep(_SAMPLE_SECONDS)
    return await call()


@contextmanager
def _jobs(stack: Stack, logs: Path, done: Soaked) -> Iterator[None]:
    """Audit and clean up, one after the other, in a thread, until the block ends and the job under way has ended."""
    stop, began = threading.Event(), time.monotonic()

    def work() -> None:
        for number in count():
            name = "cleanup" if number % 2 else "audit"
            if stop.wait(done.soak.job_pause) or time.monotonic() - began > done.soak.seconds * _JOBS_BEGIN:
                return
            options = ("--delete",) if name == "cleanup" else ()
            ran = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    f"spark_jobs.{name}",
                    "--config",
                    _JOB_FILE,
                    "--out",
                    logs / f"{name}-{number}",
                    *options,
                ],
                cwd=ROOT,
                env={**os.environ, **stack.environment},
                capture_output=True,
                text=True,
                check=False,
            )
            if ran.returncode:
                done.failures.append(f"{name}: exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()[-400:]}")
            elif name == "audit":
                done.audits += 1
            else:
                done.clean_ups += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
