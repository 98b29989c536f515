"""Function hosts in virtual time: a queue that delivers at least once, and processes that take, finish, and die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from devtools.simulation.model import LAST
from devtools.simulation.processes import Process, Settings
from devtools.simulation.weather import COPY_LIFE
from devtools.simulation.wire import Surrounding
from exactlyonce import Envelope, HandlerFailed, TryAgainLater
from exactlyonce.identity import EntityRef

PREFETCH: Final = LAST
"""Deliveries that one process works on at a time."""
_CRASH_SOON: Final = 0.06  # Seconds: before, while or after the request that it strikes takes effect.


@dataclass(frozen=True, slots=True)
class Message:
    """A message; `accepted_at` is in seconds since the start."""

    name: str
    entity: EntityRef
    envelope: Envelope
    accepted_at: float


@dataclass(slots=True)
class Delivery:
    """A copy of a message in the queue, which counts how often it was given out."""

    message: Message
    times: int = 0


class Hosts:
    """All instances and their queue.

    Args:
        world: what they share.
        random: the source of chance.
        settings: of the processes.
        size: how many processes there are when all live.
        poison: told of messages that were given out too often.

    Attributes:
        deliveries: how many there were.
    """

    def __init__(
        self, world: Surrounding, random: Random, settings: Settings, size: int, poison: Callable[[Message], None]
    ) -> None:
        self._world = world
        self._random = random
        self._settings = settings
        self._poison = poison
        self._backlog: list[Delivery] = []
        self._processes: list[Process | None] = [self._start() for _ in range(size)]
        self.deliveries = 0

    def any_process(self) -> Process | None:
        """A process for a job; None if all are dead."""
        alive = [process for process in self._processes if process is not None]
        return self._random.choice(alive) if alive else None

    def enqueue(self, message: Message, delay: float = 0.0) -> None:
        """Make a message visible after some seconds."""
        self._world.loop.call_later(delay, self._arrive, Delivery(message))

    def enqueue_copy(self, message: Message, delay: float) -> None:
        """Deliver a message once more, unless it would be older by then than any copy may be."""
        if self._world.loop.time() + delay < message.accepted_at + COPY_LIFE:
            self._world.weather.counted["duplicate delivery"] += 1
            self.enqueue(message, delay)

    def _arrive(self, delivery: Delivery) -> None:
        free = [process for process in self._processes if process is not None and process.in_flight < PREFETCH]
        if not free:
            self._backlog.append(delivery)
            return
        process = self._random.choice(free)
        process.in_flight += 1
        delivery.times += 1
        self.deliveries += 1
        self._world.loop.create_task(self._deliver(process, delivery))

    async def _deliver(self, process: Process, delivery: Delivery) -> None:
        history, weather, message = self._world.history, self._world.weather, delivery.message
        history.delivered(message.name, "delivered")
        try:
            await process.process(message.entity, message.envelope)
        except asyncio.CancelledError:
            self._come_back(delivery, "its process died")
        except TryAgainLater:
            self._come_back(delivery, "given back")
        except HandlerFailed:
            self._come_back(delivery, "refused")
        except Exception as error:  # Nothing else may come out.
            history.convict("no_surprise", message.entity.id, f"{message.name} raised {error!r}")
        else:
            history.acknowledge(message.name)
            if weather.happens(weather.climate.acknowledgement_lost, "acknowledgement lost"):
                self._come_back(delivery, "acknowledgement lost")
        process.in_flight -= 1
        if process.alive:
            self._take_from_backlog()

    def _take_from_backlog(self) -> None:
        if self._backlog:
            index = self._random.randrange(len(self._backlog))
            self._backlog[index], self._backlog[-1] = self._backlog[-1], self._backlog[index]
            self._arrive(self._backlog.pop())

    def _come_back(self, delivery: Delivery, why: str) -> None:
        self._world.history.delivered(delivery.message.name, why)
        if delivery.times >= self._settings.deliveries:
            self._world.weather.counted["message given up by the host"] += 1
            self._poison(delivery.message)
        else:
            self._world.loop.call_later(10 ** self._random.uniform(-1, 2.5), self._arrive, delivery)

    def _start(self) -> Process:
        return Process(self._world, self._random, self._settings, self._doom)

    def _doom(self, process: Process) -> None:
        self._world.loop.call_later(self._random.random() * _CRASH_SOON, self._storm, process)

    def _storm(self, first: Process) -> None:
        """A process dies, and perhaps others with it."""
        if not first.alive:
            return
        storm = self._world.weather.climate.storm
        for index, process in enumerate(self._processes):
            if process is not None and (process is first or self._random.random() < storm):
                self._world.weather.counted["crash"] += 1
                process.die()
                self._processes[index] = None
                self._world.loop.call_later(10 ** self._random.uniform(-1, 2), self._restart, index)

    def _restart(self, index: int) -> None:
        self._processes[index] = self._start()
        for _ in range(min(PREFETCH, len(self._backlog))):
            self._take_from_backlog()
