"""`python -m benchmarks.sessions`: what sessions of Service Bus change where several processes share a queue.

The sample app runs on the local Service Bus and the local Cosmos DB, in two function hosts. Shots wait in the queue before the
hosts start; the time runs from the first that leaves it to the last. A conflict is a write of a game that found it changed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.report import exit_code, machine, parser, write_result
from demo.bus import Bus, running_bus
from demo.options import Options
from demo.queues import open_queue
from demo.shots import Shot
from demo.stack import APP, DATABASE, Stack, running_stack
from demo.trouble import WRITES

HOSTS: Final = 2
LATENCY_MILLISECONDS: Final = 5
"""Of each request to the store."""
GAMES: Final = {"1 hot game": 1, "50 games": 50}
_QUEUE: Final = "shooting-range"
_POLL_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 1_800


@dataclass(frozen=True, slots=True)
class Measured:
    """One run.

    Attributes:
        games: how they are called.
        sessions: whether the queue has them.
        per_second: shots processed.
        conflicts: writes of games that found them changed.
    """

    games: str
    sessions: bool
    per_second: float
    conflicts: int


async def measure(games: str, *, sessions: bool, shots: int) -> Measured:
    """One run on servers of its own.

    Raises:
        TimeoutError: the queue did not drain.
    """
    options = Options(games=GAMES[games], faults=False, transport="servicebus", sessions=sessions)
    with (
        tempfile.TemporaryDirectory() as logs,
        running_bus(options) as bus,
        running_stack(APP, Path(logs), options.strategy, disordered=False, bus=bus) as stack,
    ):
        if bus is None:
            raise RuntimeError("Sessions are measured on Service Bus.")
        stack.cosmos.set_latency(LATENCY_MILLISECONDS)
        async with open_queue(stack, _QUEUE) as queue:
            for number in range(shots):
                shot = Shot(f"shot-{number}", f"game-{number % options.games}", number % 100)
                await queue.send(shot.envelope.to_json().text.encode())
        await asyncio.to_thread(stack.start_hosts, HOSTS)
        seconds = await _drained(bus, shots)
        stack.stop_hosts()
        return Measured(games, sessions, round(shots / seconds, 1), _conflicts(stack))


async def _drained(bus: Bus, shots: int) -> float:
    """Seconds from the first shot that left the queue to the last."""
    deadline, began = time.monotonic() + _PATIENCE_SECONDS, None
    while time.monotonic() < deadline:
        counts = bus.endpoint.counts(_QUEUE)
        left = counts.active + counts.locked
        if began is None and left < shots:
            began = time.monotonic()
        if began is not None and not left:
            return time.monotonic() - began
        await asyncio.sleep(_POLL_SECONDS)
    raise TimeoutError("The queue did not drain.")


def _conflicts(stack: Stack) -> int:
    return sum(
        total.refused
        for total in stack.cosmos.totals()
        if (total.database, total.container) == (DATABASE, "games") and total.operation in WRITES
    )


def missed(runs: Sequence[Measured]) -> Iterator[str]:
    """A sentence for each run with sessions in which there was a conflict."""
    for run in runs:
        if run.sessions and run.conflicts:
            yield f"With sessions {run.games} had {run.conflicts} conflicts; there must be none."


def main() -> int:
    """Measure, in turn; the exit code is 1 if there was a conflict in spite of sessions."""
    made = parser("sessions", __doc__, page=None)
    made.add_argument("--shots", type=int, default=600, help="of each run; default: %(default)s")
    made.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    options = made.parse_args()
    on = machine()
    runs = [
        asyncio.run(measure(games, sessions=sessions, shots=options.shots))
        for turn in range(options.rounds)
        for games in GAMES
        for sessions in ((False, True) if turn % 2 else (True, False))
    ]
    settings = {"shots": options.shots, "hosts": HOSTS, "latency_ms": LATENCY_MILLISECONDS}
    result = {"machine": on, "settings": settings, "runs": [asdict(run) for run in runs]}
    write_result(options.output, result)
    return exit_code(missed(runs))


if __name__ == "__main__":
    sys.exit(main())
