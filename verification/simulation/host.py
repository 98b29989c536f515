"""Function hosts in virtual time: a queue that delivers at least once, and processes that take, finish, and die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Final

from exactlyonce import Envelope, ExactlyOnceError, MessageError, StoredDataError, TryAgainLater
from exactlyonce.errors import HandlerFailed
from exactlyonce.testing.loop import VirtualClock
from verification.simulation.history import LAST
from verification.simulation.plans import Plan
from verification.simulation.processes import Delivery, Message, Process
from verification.simulation.protocols import Application
from verification.simulation.wire import Surrounding

PREFETCH: Final = LAST
"""Deliveries that one process works on at a time."""
_ASKED_AGAIN: Final = 0.3  # How often somebody asks once more, and more often with the same chance.
_GATHERING: Final = 0.1  # Seconds in which a batch comes together.
_CRASH_SOON: Final = 0.06  # Seconds: before, while or after the request that it strikes takes effect.
_SETTLED_IN_BATCHES: Final = 3  # Deliveries after those in which a batch processes a message.
_IN_ORDER: Final = 0.7  # How often a process that has nothing to do is told that it ends.
_POISON_PAUSE: Final = (
    600.0  # Seconds after which a host delivers once more what a function on a poison queue failed on.
)


class Hosts:
    """All instances and their queues: one for each entity type, and its poison queue.

    Args:
    """

    def __init__(
        self,
        world: Surrounding,
        random: Random,
        application: Application,
        plan: Plan,
        parked: Callable[[str, Envelope], None],
    ) -> None:
        self._world = world
        self._random = random
        self._application = application
        self._plan = plan
        self._parked = parked
        self._numbers = count(1)
        self._backlog: list[Delivery] = []
        self._processes: list[Process | None] = [None] * plan.processes
        self._asleep = set(range(plan.processes))
        self.deliveries = 0

    def any_process(self) -> Process | None:
        """A process for a job; None if all are dead."""
        self._wake()
        alive = [process for process in self._processes if process is not None]
        return self._random.choice(alive) if alive else None

    def end_all(self, *, in_order: bool) -> None:
        """End all processes; others begin when there is something to do."""
        for index in range(len(self._processes)):
            self._leave(index, in_order=in_order)

    def ask(self, message: Message) -> None:
        """Carry a request out, for somebody who waits, and may ask once more, however it ends."""
        process = self.any_process()
        if self._random.random() < _ASKED_AGAIN:
            self._world.loop.call_later(10 ** self._random.uniform(-1, 5), self.ask, message)
        if process is not None:
            self._world.loop.create_task(self._answer(process, message))

    async def _answer(self, process: Process, message: Message) -> None:
        history = self._world.history
        history.delivered(message.name, "asked")
        self.deliveries += 1
        try:
            answered = await process.ask(message.envelope, message.entity)
        except (ExactlyOnceError, asyncio.CancelledError):
            self._world.weather.counted["asked in vain"] += 1
            history.delivered(message.name, "asked in vain")
        else:
            history.acknowledge(message.name)
            if not answered:
                history.convict("answered", message.entity.id, f"{message.name} was carried out, and not answered")

    def enqueue(self, message: Message, delay: float = 0.0) -> None:
        """Make a message visible after some seconds."""
        self._world.history.copies.appear(message.name)
        self._world.loop.call_later(delay, self._arrive, Delivery(message, next(self._numbers)))

    def enqueue_copy(self, message: Message, delay: float) -> None:
        """Deliver a message once more, however old it is by then."""
        self._world.weather.counted["duplicate delivery"] += 1
        self.enqueue(message, delay)

    def _arrive(self, delivery: Delivery) -> None:
        self._backlog.append(delivery)
        if self._plan.batch == 1:
            self._take()
        else:
            self._world.loop.call_later(self._random.random() * _GATHERING, self._take)

    def _take(self) -> None:
        if self._backlog:
            self._wake()
        free = [process for process in self._processes if process is not None and process.in_flight < PREFETCH]
        if not free or not self._backlog:
            return
        process, deliveries = self._random.choice(free), self._next()
        process.in_flight += len(deliveries)
        self.deliveries += len(deliveries)
        self._world.loop.create_task(self._deliver(process, deliveries))

    def _next(self) -> Sequence[Delivery]:
        first = self._from_backlog(self._random.randrange(len(self._backlog)))
        deliveries = [first]
        for index in reversed(range(len(self._backlog))):
            if len(deliveries) == self._plan.batch:
                break
            if self._backlog[index].message.entity.type == first.message.entity.type:
                deliveries.append(self._from_backlog(index))
        return deliveries

    def _from_backlog(self, index: int) -> Delivery:
        self._backlog[index], self._backlog[-1] = self._backlog[-1], self._backlog[index]
        delivery = self._backlog.pop()
        delivery.times += 1
        return delivery

    async def _deliver(self, process: Process, deliveries: Sequence[Delivery]) -> None:
        """Call the function. What it returns from is done, all of it; what it raises on comes again, all of it."""
        history, weather = self._world.history, self._world.weather
        for delivery in deliveries:
            history.delivered(delivery.message.name, "delivered")
        failed = await self._called(process, deliveries)
        if not failed:
            for delivery in deliveries:
                self._done(delivery, process.outcome(delivery))
            if weather.happens(weather.climate.acknowledgement_lost, "acknowledgement lost"):
                failed = "acknowledgement lost"
        for delivery in deliveries:
            if failed:
                self._come_back(delivery, failed)
            else:
                history.copies.end(delivery.message.name)
        process.in_flight -= len(deliveries)
        if process.alive:
            self._take()

    async def _called(self, process: Process, deliveries: Sequence[Delivery]) -> str:
        """Why the function raised; empty if it did not."""
        entity, first = deliveries[0].message.entity, deliveries[0].message.name
        try:
            await process.process(deliveries, entity)
        except asyncio.CancelledError:
            return "its process died"
        except TryAgainLater:
            return "given back"
        except (HandlerFailed, MessageError):
            return "refused"
        except Exception as error:
            # Clean-up may have taken some of a message's records while its duplicate was being looked into.
            forgotten = any(self._is_forgotten(delivery.message) for delivery in deliveries)
            if not (forgotten and isinstance(error, StoredDataError)):  # Nothing else may come out.
                self._world.history.convict("no_surprise", entity.id, f"{first} raised {error!r}")
            return "refused"
        return ""

    def _is_forgotten(self, message: Message) -> bool:
        now, time = VirtualClock(self._world.loop).now(), message.envelope.judged_by
        return time is not None and now - time > self._plan.lifetimes.oldest_judged(now)

    def _done(self, delivery: Delivery, outcome: str, how: str = "acknowledged") -> None:
        """A delivery came to its end: its message was processed, or else somebody else has it now."""
        if outcome == "processed":
            self._world.history.acknowledge(delivery.message.name, how)
        else:
            self._world.history.delivered(delivery.message.name, f"left after it was {outcome}")

    def _come_back(self, delivery: Delivery, why: str) -> None:
        self._world.history.delivered(delivery.message.name, why)
        if delivery.times >= self._plan.deliveries + (self._plan.batch > 1) * _SETTLED_IN_BATCHES:
            self._world.weather.counted["message given up by the host"] += 1
            self._later(Delivery(delivery.message, delivery.number))  # A poison queue counts anew.
        else:
            self._world.loop.call_later(10 ** self._random.uniform(-1, 2.5), self._arrive, delivery)

    def _later(self, delivery: Delivery, pause: float | None = None) -> None:
        loop = self._world.loop
        soon = 10 ** self._random.uniform(-2, 2)
        loop.call_later(pause or soon, lambda: loop.create_task(self._settle(delivery)))

    async def _settle(self, delivery: Delivery) -> None:
        process, message = self.any_process(), delivery.message
        if process is None:
            self._later(delivery)
            return
        delivery.times += 1
        try:
            outcome = await process.settle(delivery)
        except (TryAgainLater, asyncio.CancelledError):
            self._later(delivery, _POISON_PAUSE)
        except ExactlyOnceError as error:
            self._world.history.convict("no_surprise", message.entity.id, f"settling {message.name} raised {error!r}")
        else:
            self._done(delivery, outcome, "settled")
            weather = self._world.weather
            if weather.happens(weather.climate.acknowledgement_lost, "acknowledgement lost"):
                self._later(delivery, _POISON_PAUSE)
            else:
                self._world.history.copies.end(message.name)

    def _wake(self) -> None:
        """Start processes anew that ended since there was nothing to do."""
        for index in sorted(self._asleep):
            self._start(index)

    def _start(self, index: int) -> None:
        self._asleep.discard(index)
        process = Process(
            self._world, self._random, self._application, self._plan, doomed=self._doom, parked=self._parked
        )
        self._processes[index] = process
        self._world.loop.call_later(self._plan.resting, self._rest, index, process)

    def _rest(self, index: int, process: Process) -> None:
        """End a process that has nothing to do, and look again later if it has."""
        if self._processes[index] is not process:
            return
        if process.is_idle:
            self._leave(index, in_order=self._world.weather.calm or self._random.random() < _IN_ORDER)
        else:
            self._world.loop.call_later(self._plan.resting, self._rest, index, process)

    def _leave(self, index: int, *, in_order: bool) -> None:
        process = self._processes[index]
        if process is None:
            return
        self._processes[index] = None
        self._asleep.add(index)
        if in_order:
            self._world.weather.counted["process ended in order"] += 1
            self._world.loop.create_task(process.end())
        else:
            process.die()

    def _doom(self, process: Process) -> None:
        self._world.loop.call_later(self._random.random() * _CRASH_SOON, self._storm, process)

    def _storm(self, first: Process) -> None:
        if not first.alive:
            return
        if first not in self._processes:  # It is ending.
            first.die()
        storm = self._world.weather.climate.storm
        for index, process in enumerate(self._processes):
            if process is not None and (process is first or self._random.random() < storm):
                self._world.weather.counted["crash"] += 1
                process.die()
                self._processes[index] = None
                self._world.loop.call_later(10 ** self._random.uniform(-1, 2), self._restart, index)

    def _restart(self, index: int) -> None:
        self._start(index)
        for _ in range(min(PREFETCH, len(self._backlog))):
            self._take()
