"""The work: messages to counters of many entities, some of them more than once, several in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter

from benchmarks.peers.port import Message


@dataclass(frozen=True, slots=True)
class Workload:
    """How much work.

    Attributes:
        messages: how many different ones.
        copies: how many deliveries come on top. Every other copy comes while its message may still be in flight, the rest at
            any time after it.
        entities: how many; each message is for one of them, by chance.
        in_flight: how many deliveries are being processed at any time.
        warm_up: how many messages are processed before anything is measured, for other entities.
    """

    messages: int = 2_000
    copies: int = 200
    entities: int = 200
    in_flight: int = 16
    warm_up: int = 200

    def deliveries(self) -> list[Message]:
        """What is delivered, in order; the same every time."""
        chance = Random(self.messages)
        messages = [Message(f"m-{item}", f"e-{chance.randrange(self.entities)}") for item in range(self.messages)]
        timed = list(enumerate(map(float, range(self.messages))))
        for number, original in enumerate(chance.sample(range(self.messages), self.copies)):
            latest = self.messages if number % 2 else original + self.in_flight / 2
            timed.append((original, chance.uniform(original, latest)))
        return [messages[original] for original, _ in sorted(timed, key=lambda item: item[1])]

    def warming(self) -> list[Message]:
        """What is delivered before."""
        return [Message(f"w-{number}", f"warm-{number % self.in_flight}") for number in range(self.warm_up)]

    async def deliver(
        self, deliveries: Sequence[Message], process: Callable[[Message], Awaitable[None]]
    ) -> list[float]:
        """Process all, so many in flight; return how many seconds each took. Raises what processing raises, at once."""
        waiting = iter(deliveries)
        seconds: list[float] = []
        workers = [asyncio.create_task(_work(waiting, process, seconds)) for _ in range(self.in_flight)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        return seconds


async def _work(
    waiting: Iterator[Message], process: Callable[[Message], Awaitable[None]], seconds: list[float]
) -> None:
    for message in waiting:
        began = perf_counter()
        await process(message)
        seconds.append(perf_counter() - began)
