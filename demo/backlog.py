"""What hosts do with a backlog: `python -m demo.backlog --messages 100000`; the exit code is 0 if nothing was violated.

Messages wait in a queue before any host runs: first for a few games, then each for a game of its own, or for as many games as
`--games` says. Then hosts start, and work until nothing is left to do. Afterwards the judge of `make demo` replays every shot.
With more than a few ten thousand, take Service Bus: Azurite looks at all messages of a queue for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from demo.bus import running_bus
from demo.options import Options
from demo.oracle import judge
from demo.outage.enduring import parked_in
from demo.play import gather, owing
from demo.queues import Queue, open_queue
from demo.shots import Shot
from demo.soak.measures import Measures
from demo.stack import APP, running_stack

FEW: Final = 20
_HOSTS: Final = 2
_SENDERS: Final = 32
_SAMPLE_SECONDS: Final = 5.0
_QUEUES: Final = ("shooting-range", "leader-board")


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of a backlog.

    Attributes:
        messages, games: how many there were.
        seconds: from the start of the hosts until nothing was left to do.
        memory: most resident bytes of a host.
        requests, conflicts: to the store.
        violations: what does not add up, and messages that were given up or parked.
    """

    messages: int
    games: int
    seconds: float
    memory: int
    requests: int
    conflicts: int
    violations: int

    def __str__(self) -> str:
        return (
            f"{self.messages:,} messages for {self.games:,} games: {self.seconds:.0f} s, {self.messages / self.seconds:.0f} a "
            f"second; {self.requests / self.messages:.2f} requests a message, {self.conflicts:,} conflicts; a host had "
            f"{self.memory / 2**20:.0f} MiB at most; {self.violations} violations"
        )


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser("python -m demo.backlog", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="of each backlog (%(default)s)")
    parser.add_argument("--games", type=int, action="append", help="that the messages are for; once for each backlog")
    parser.add_argument("--transport", choices=("storage", "servicebus"), default="storage", help="%(default)s")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s")
    given = parser.parse_args()
    violations = 0
    for games in given.games or (FEW, given.messages):
        logs = Path(tempfile.mkdtemp(prefix="exactlyonce-backlog-"))
        print(f"{given.messages:,} messages for {games:,} games; logs in {logs}", flush=True)
        options = Options(transport=given.transport, sessions=False, seed=given.seed)
        worked = asyncio.run(work(planned(given.messages, games, Random(given.seed)), games, logs, options))
        print(worked, flush=True)
        violations += worked.violations
    return 1 if violations else 0


def planned(messages: int, games: int, random: Random) -> Sequence[Shot]:
    """Shots at games in turn, in the order in which they wait."""
    return [Shot(f"shot-{number}", f"game-{number % games}", random.choice((0, 17, 42))) for number in range(messages)]


async def work(shots: Sequence[Shot], games: int, logs: Path, options: Options) -> Worked:
    """Send everything, then start the hosts, and wait until nothing is left to do."""
    with running_bus(options) as bus, running_stack(APP, logs, "outbox", disordered=False, bus=bus) as stack:
        async with AsyncExitStack() as clients:
            queues = [await clients.enter_async_context(open_queue(stack, name)) for name in _QUEUES]
            await _send(queues[0], shots)
            print("all of them wait", flush=True)
            begun = time.monotonic()
            await asyncio.to_thread(stack.start_hosts, _HOSTS)
            measures = Measures(stack, queues)
            while (await measures.take()).backlog or owing(stack):
                print(measures.samples[-1], flush=True)
                await asyncio.sleep(_SAMPLE_SECONDS)
            seconds = time.monotonic() - begun
            given_up = sum([await queue.given_up() for queue in queues])
        stack.stop_hosts()
        found = len(judge(shots, await gather(stack))) + parked_in(stack) + given_up
        return Worked(
            len(shots),
            games,
            seconds,
            max(sample.memory for sample in measures.samples),
            sum(sample.requests for sample in measures.samples),
            sum(sample.conflicts for sample in measures.samples),
            found,
        )


async def _send(queue: Queue, shots: Sequence[Shot]) -> None:
    waiting = iter(shots)

    async def send() -> None:
        for shot in waiting:
            await queue.send(shot.envelope.to_json().text.encode())

    await asyncio.gather(*(send() for _ in range(_SENDERS)))


if __name__ == "__main__":
    sys.exit(main())
