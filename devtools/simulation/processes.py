"""One instance of the application: everything the library runs above the store, put together as hosting does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from devtools.simulation.application import Application
from devtools.simulation.loop import VirtualClock
from devtools.simulation.sending import SendingWire
from devtools.simulation.wire import Surrounding, Wire
from devtools.simulation.workload import DESTINATIONS
from exactlyonce import Envelope
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.combining import Assignment, Combiner
from exactlyonce.drivers.publishing import Address, Publisher
from exactlyonce.drivers.retrying import Backoff, Retrying
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.effects import Step
from exactlyonce.handling.attempts import Again, Memory, Strategy
from exactlyonce.identity import EntityRef

_TRIES_OF_A_JOB: Final = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """What every process of an episode is started with.

    Attributes:
        application: the entity types.
        strategies: of tallies; one of them for each process: settings change from deployment to deployment, under way too.
        mark_after: seconds; see `Combiner`.
        tries: of requests and of attempts.
        deliveries: after how many a message goes to the poison queue.
    """

    application: Application
    strategies: tuple[Strategy, ...]
    mark_after: float
    tries: int
    deliveries: int


class Process:
    """What it remembers dies with it.

    Args:
        world: what all processes share.
        random: the source of chance.
        settings: what it is started with.
        doomed: told when a request is to be its last.

    Attributes:
        in_flight: deliveries it works on.
        alive: not crashed yet.
    """

    def __init__(
        self, world: Surrounding, random: Random, settings: Settings, doomed: Callable[[Process], None]
    ) -> None:
        clock = VirtualClock(world.loop)
        sender = SendingWire(world, lambda: doomed(self))
        publisher = Publisher({name: Address(sender, name) for name in DESTINATIONS})
        surroundings = Surroundings(clock, random, lambda: f"{random.getrandbits(64):016x}")
        self._driver = AsyncDriver(Wire(world, lambda: doomed(self)), publisher, surroundings)
        self._retrying = Retrying(Backoff(tries=settings.tries), random)
        self._combiner = Combiner(self._driver, self._retrying, clock, settings.mark_after)
        self._application = settings.application
        self._strategy = random.choice(settings.strategies)
        self._jobs: list[asyncio.Future[Any]] = []
        self.in_flight = 0
        self.alive = True

    async def process(self, entity: EntityRef, envelope: Envelope) -> None:
        """Process one delivery; raises what it is given back for."""
        work = self._application.work(entity)
        strategy = self._application.boards.strategy if self._application.is_board(entity) else self._strategy
        await self._combiner.process(Assignment(entity, strategy, work.handle, work.absent), envelope)

    async def run(self, step: Callable[[Memory], Step[Any]], memory: Memory | None = None) -> Any:
        """Run one of the jobs that look after entities, again until it proves something; None if it does not, or dies."""
        return await self._end_with_me(self._insist(step, memory or Memory()))

    def die(self) -> None:
        """End in the middle of everything."""
        self.alive = False
        self._combiner.abandon()
        for job in self._jobs:
            job.cancel()

    async def _insist(self, step: Callable[[Memory], Step[Any]], memory: Memory) -> Any:
        left = _TRIES_OF_A_JOB
        while left:
            outcome = await self._driver.run(self._retrying.insist(step(memory)))
            if not isinstance(outcome, Again):
                return outcome
            memory = outcome.memory
            left -= not outcome.progressed
        return None

    async def _end_with_me(self, job: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.ensure_future(job)
        self._jobs.append(task)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            self._jobs.remove(task)
