"""One instance of the application: everything the library runs above the store, put together as hosting does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any, Final, TypeVar

from azure.functions.queue import QueueMessage

from exactlyonce import Entity, Envelope, TryAgainLater
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime, StoreTime
from exactlyonce.effects.effect import Step
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.settlement import Outcome, Returner
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.hosting.upkeep.maintenance import Maintenance
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.hosting.upkeep.sweeper import Swept
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.testing.loop import VirtualClock
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes
from verification.simulation.application import Application
from verification.simulation.sending import SendingWire
from verification.simulation.settling import NotedSettler
from verification.simulation.wire import Surrounding, Wire
from verification.simulation.workload import DESTINATIONS

Result = TypeVar("Result")
_TRIES_OF_A_JOB: Final = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """What every process of an episode is started with.

    Attributes:
        application: the entity types.
        strategies: of tallies; one of them for each process: settings change from deployment to deployment, under way too.
        memory: bytes that it remembers of entities.
        tries: of requests and of attempts.
        patience: seconds that a delivery, or a job, may take.
        deliveries: after how many a message goes to the poison queue.
        batch: most deliveries that one call of a function takes.
        lifetimes: of messages.
        wrong: seconds by which its clock may be wrong.
        resting: seconds without work after which it is ended.
    """

    application: Application
    strategies: tuple[Strategy, ...]
    memory: int
    tries: int
    patience: float
    deliveries: int
    batch: int
    lifetimes: Lifetimes
    wrong: float
    resting: float


@dataclass(frozen=True, slots=True)
class Body:
    """What a trigger delivers.

    Attributes:
        id: of the delivery's copy in its queue.
        entity: that it is for.
        envelope: the message.
        times: how often it was delivered, this time included.
    """

    id: str
    entity: EntityRef
    envelope: Envelope
    times: int

    @property
    def delivered(self) -> QueueMessage:
        """It as a trigger of a storage queue has it."""
        body = self.envelope.to_json().text.encode()
        return QueueMessage(id=self.id, body=body, dequeue_count=self.times)  # type: ignore[no-untyped-call]


class Process:
    """What it remembers dies with it.

    Args:
        world: what all processes share.
        random: the source of chance.
        settings: what it is started with.
        doomed: called when a request is to be its last.
        parked: called with the messages that it parks.

    Attributes:
        in_flight: deliveries it works on.
        alive: it has neither crashed nor ended.
    """

    def __init__(
        self,
        world: Surrounding,
        random: Random,
        settings: Settings,
        doomed: Callable[[Process], None],
        parked: Callable[[str, Envelope], None],
    ) -> None:
        clock = VirtualClock(world.loop, random.uniform(-1, 1) * settings.wrong)
        present = StoreTime(clock)
        wire, sender = Wire(world, lambda: doomed(self), present.compare), SendingWire(world, lambda: doomed(self))
        runtime = Runtime(clock, random, lambda: f"{random.getrandbits(128):032x}", present=present.now)
        application = self._application = settings.application
        self._books = application.protocols.books(wire.perform, runtime)
        addresses = {name: Address(sender, name) for name in DESTINATIONS}
        lifetimes = lambda: settings.lifetimes  # noqa: E731

        def driver(*, remembers: bool, marks: Callable[[], str] | None = None) -> AsyncDriver:
            publisher = Publisher(addresses, marks, remembers=remembers, now=world.loop.time)
            return AsyncDriver(wire, publisher, runtime, lifetimes=lifetimes, books=self._books)

        retrying = Retrying(Backoff(tries=settings.tries, seconds=settings.patience), random)
        senders = frozenset((application.boards.name, application.tallies.name))

        def maintenance(retrying: Retrying, *, remembers: bool = True) -> Maintenance:
            drives = driver(remembers=remembers, marks=runtime.new_transaction)
            return Maintenance(drives, retrying, application.routes, lifetimes, senders)

        self._lanes = application.protocols.lanes(driver(remembers=True), retrying, clock, settings.memory)
        self._mending = maintenance(retrying, remembers=False)
        # Brief, since the sweeper comes again soon.
        self._chores = maintenance(Retrying(Backoff(tries=_TRIES_OF_A_JOB, seconds=settings.patience), random))
        claims, failures, finishing = ClaimChecks(None), Failures(), maintenance(retrying)

        async def ready() -> None:
            """Hosting asks here whether the accounts are as they have to be; so it knows the store's time."""
            present.compare(VirtualClock(world.loop).now())

        returner = Returner(finishing, claims, random)
        giving_up = application.protocols.giving_up(finishing, failures, returner, lifetimes, ready, clock.now)
        self._poison = NotedSettler(
            giving_up,
            claims,
            decides=PoisonSettler(giving_up, claims),
            world=world,
            settled_as=application.shipped,
            fails=application.fails if application.protocols.heals else lambda _: True,
            parked=parked,
        )
        self._receiver = application.protocols.receiver(
            self._lanes, self._mending, claims, failures, self._poison, ready, ready, lifetimes, present.now
        )
        self._types = application.boards, application.tallies.using(random.choice(settings.strategies))
        self._strategy = self._types[1].strategy
        listing = MemoryListing(world.store)
        self._operator = Operator(self._mending, listing, lifetimes, tuple(map(application.shipped, self._types)))
        self._sweeper = application.protocols.sweeper(self._chores, listing, runtime)
        self._batch, self._give_up_after = settings.batch, settings.deliveries
        self._jobs: list[asyncio.Future[Any]] = []
        self.in_flight, self.alive = 0, True

    async def process(self, bodies: Sequence[Body], entity: EntityRef) -> None:
        """Process one delivery, or those of a batch, for entities of one type; raises what they are given back for."""
        messages, type = [body.delivered for body in bodies], self._type_of(entity)
        for body in bodies:
            self.outcome(body)  # That of an earlier delivery says nothing any more.
        if self._batch == 1:
            await self._end_with_me(self._receiver.take(messages[0], type, None))
        else:
            queue = self._application.queue_of(entity)
            await self._end_with_me(self._receiver.take_all(messages, type, queue, None, self._give_up_after))

    async def settle(self, body: Body, entity: EntityRef) -> Outcome:
        """Decide about a message of a poison queue; raises what it stays there for."""
        queue = self._application.queue_of(entity)
        return await self._end_with_me(self._poison.settle(self._type_of(entity), body.delivered, queue))

    def outcome(self, body: Body) -> Outcome:
        """What was decided about a delivery that has ended: it was processed, unless it was given up."""
        return self._poison.outcomes.pop(body.id, "processed")

    async def operate(self, request: Callable[[Operator], Coroutine[Any, Any, Result]]) -> Result | None:
        """Do what a person asks for; None if nobody knows what came of it."""
        try:
            return await self._end_with_me(request(self._operator))
        except (TryAgainLater, asyncio.CancelledError):
            return None

    async def run(self, entity: EntityRef, step: Callable[[Memory], Step[Any]], memory: Memory | None = None) -> Any:
        """Run one of the jobs that look after entities, again until it proves something; None if it does not, or dies."""
        try:
            return await self._end_with_me(self._chores.run(entity, step, memory))
        except (TryAgainLater, asyncio.CancelledError):
            return None

    async def ask(self, envelope: Envelope, entity: EntityRef) -> bool:
        """Process a request; whether it is answered as the first time. Raises what a caller is told in place of an answer."""
        request = replace(envelope, asked=envelope.id)
        processed = await self._end_with_me(self._receiver.ask(request, self._type_of(entity), entity))
        return processed.answer is not None and processed.answer.is_to(envelope.id)

    async def sweep(self, at_least: timedelta) -> Swept | None:
        """Sweep what is unfinished, and has been for so long; None if the process dies meanwhile."""
        try:
            return await self._end_with_me(self._sweeper.sweep(self._types, at_least))
        except asyncio.CancelledError:
            return None

    @property
    def is_idle(self) -> bool:
        """Whether it works on nothing."""
        return not self.in_flight and not self._jobs

    async def end(self) -> None:
        """End in order, with a book that says so if all that it numbered is done."""
        with suppress(asyncio.CancelledError):  # It may die of this.
            await self._end_with_me(self._ended())
        self.die()

    def die(self) -> None:
        """End in the middle of everything."""
        self.alive = False
        self._lanes.abandon()
        self._books.abandon()
        for job in self._jobs:
            job.cancel()

    def _type_of(self, entity: EntityRef) -> Entity[Any]:
        if self._application.is_board(entity):
            return self._application.boards
        return self._application.tallies.using(self._strategy)

    async def _ended(self) -> None:
        await self._lanes.quiesce()
        await self._books.end()

    async def _end_with_me(self, job: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.ensure_future(job)
        self._jobs.append(task)
        try:
            return await task
        finally:
            self._jobs.remove(task)
