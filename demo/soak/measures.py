"""What a soak measures: memory of a host, backlog, conflicts and throttling over time, and the latency of every shot."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from demo.queues import Queue
from demo.shots import SOURCE, Shot
from demo.stack import DATABASE, Stack
from exactlyonce.records.ledger import by_hash, read_entity, time_in
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from handlers.shooting_range import ranges

_CONFLICTS = (409, 412)
_THROTTLED = 429


@dataclass(frozen=True, slots=True)
class Sample:
    """One look.

    Attributes:
        second: since the soak began.
        memory: resident bytes of the oldest host, which is never killed.
        backlog: messages in the queues, those in work included.
        requests, conflicts, throttled: to the store since the last look.
    """

    second: float
    memory: int
    backlog: int
    requests: int
    conflicts: int
    throttled: int

    def __str__(self) -> str:
        return f"{self.second:5.0f} s  {self.memory / 2**20:.0f} MiB  {self.backlog} messages wait"


class Measures:
    """Measures a running stack.

    Args:
        stack: that runs.
        queues: whose messages are counted.

    Attributes:
        samples: so far.
    """

    def __init__(self, stack: Stack, queues: Iterable[Queue]) -> None:
        self._stack, self._queues = stack, tuple(queues)
        self._host = stack.hosts[0].pid
        self._began = time.monotonic()
        self._logged = 0
        self.samples: list[Sample] = []

    async def take(self) -> Sample:
        """Look once more."""
        backlog = sum([await queue.waiting() for queue in self._queues])
        requests = await asyncio.to_thread(self._stack.cosmos.requests, self._logged)
        self._logged = max((request.n for request in requests), default=self._logged)
        statuses = [request.status for request in requests if request.database == DATABASE]
        sample = Sample(
            time.monotonic() - self._began,
            _resident(self._host),
            backlog,
            len(statuses),
            sum(status in _CONFLICTS for status in statuses),
            statuses.count(_THROTTLED),
        )
        self.samples.append(sample)
        return sample

    def latencies(self, shots: Iterable[Shot]) -> tuple[float, ...]:
        """Seconds from the sending of each shot to its commit, by the mark of the shot, which has the time of the commit."""
        sent = {message_hash(f"{SOURCE}/{shot.id}"): shot.time for shot in shots}
        found: dict[str, float] = {}
        for write in self._stack.cosmos.history(DATABASE, "games"):
            if write.document is None or "_kind" in write.document:
                continue
            ledger = read_entity(ranges.ref(write.id), Json.of(write.document)).ledger
            for hash, mark in {} if ledger is None else by_hash(ledger.marks).items():
                if hash in sent and hash not in found:
                    found[hash] = time_in(mark) / 1000 - sent[hash].timestamp()
        return tuple(found.values())


def _resident(process: int) -> int:
    """Resident bytes of a process, as Linux tells them."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
